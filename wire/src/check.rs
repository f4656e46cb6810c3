//! Checks that a snapshot is plausible. It bounds everything that is added up or compared later, so that no sum over all shards can
//! overflow, and an invalid snapshot of one shard does not spoil the measurements of the others.

use crate::histogram::{EncodedHistogram, Kind};
use crate::limits::{self, LARGEST_COUNT, LARGEST_INSTANT_NANOSECONDS};
use crate::outage;
use crate::probe::Probe;
use crate::snapshot::{Latency, NodeTally, OperationTally, ServerNode, Snapshot, Stage, Tally};
use crate::timeline::{NodePart, Outcomes, SPAN_SECONDS, Span, SpanPart};
use crate::topology::SLOTS;

impl Snapshot {
    /// Checks the snapshot against the contract: bounds of lists, counts and instants; that requests add up, in total and over operations,
    /// nodes and kinds of error; and that every histogram has as many values as the counters.
    ///
    /// # Errors
    /// A description of the first violation, for people. The snapshot must not be used.
    pub fn check(&self) -> Result<(), String> {
        self.check_lengths()?;
        self.check_instants()?;
        check_tally("the total", &self.total)?;
        check_tally("the warm-up", &self.warmup)?;
        if self.stage == Stage::Done && !self.aborted && self.total.in_flight > 0 {
            return Err(format!("{} requests in flight after the end", self.total.in_flight));
        }
        count("preloaded keys", self.preloaded_keys)?;
        count("preload commands", self.preload_commands)?;
        count("reconnects", self.generator.reconnects)?;
        sum("sends by delay", self.generator.send_delays.iter().copied())?;
        count("requests that waited for room", self.generator.waited_for_room.unwrap_or(0))?;
        if let Some(delay) = &self.generator.receive_delay {
            sum("reads by delay", delay.counts.iter().copied())?;
        }
        if let Some(interface) = &self.generator.interface {
            count("bytes received by the interface", interface.received_bytes)?;
            count("bytes sent by the interface", interface.sent_bytes)?;
        }
        check_latency("the total", &self.latency, &self.total)?;
        if let Some(lateness) = &self.latency.lateness {
            histogram("lateness", lateness, Kind::Request)?;
        }
        if let Some(client) = &self.client {
            let time = |what, nanoseconds| at_most(what, nanoseconds, "any clock", LARGEST_INSTANT_NANOSECONDS);
            time("processor time of the client", client.user_nanoseconds)?;
            time("processor time of the client in the kernel", client.system_nanoseconds)?;
            count("context switches of the client", client.context_switches)?;
            count("memory of the client", client.peak_bytes)?;
        }
        self.check_verification()?;
        self.check_churn()?;
        self.check_cache()?;
        self.check_operations()?;
        self.check_nodes()?;
        let errors = sum("errors by kind", self.errors.iter().map(|error| error.count))?;
        at_most("errors by kind", errors, "errors", self.total.errors)?;
        self.check_topology()?;
        self.check_servers()?;
        sum("completions over time", self.series.completed.iter().copied())?;
        self.check_timeline()
    }

    fn check_timeline(&self) -> Result<(), String> {
        let timeline = &self.timeline;
        let last = timeline.spans.last().map_or(0, Span::end).max(timeline.complete);
        at_most("seconds", last.into(), "a trial may have", limits::TRIAL_SECONDS.into())?;
        let (mut next, mut all, mut warmup) = (0, Outcomes::default(), Outcomes::default());
        let (mut sent, mut received, mut of_nodes) = (0_u64, 0_u64, 0_u64);
        for span in &timeline.spans {
            if !SPAN_SECONDS.contains(&span.seconds) || span.second % span.seconds != 0 || span.second < next {
                return Err(format!("seconds {} to {} are not a valid span", span.second, span.end()));
            }
            next = span.end();
            span.parts.iter().try_for_each(check_part)?;
            for NodePart { requests, errors, service, .. } in &span.nodes {
                at_most("errors of a node in a second", *errors, "its requests", *requests)?;
                equal("service times of a node in a second", service.count(), requests - errors)?;
                of_nodes = of_nodes.saturating_add(*requests);
            }
            let counts = span.counts();
            at_most("bytes sent by operation in a second", counts.sent_bytes, "bytes sent", span.sent_bytes)?;
            at_most(
                "bytes received by operation in a second",
                counts.received_bytes,
                "bytes received",
                span.received_bytes,
            )?;
            all.add(&counts);
            warmup.add(&span.warmup);
            sent = sent.saturating_add(span.sent_bytes);
            received = received.saturating_add(span.received_bytes);
        }
        let with_an_outcome = self.total.succeeded.saturating_add(self.total.errors);
        at_most("requests of nodes over all seconds", of_nodes, "those with an outcome", with_an_outcome)?;
        let whole = timeline.from == 0 && !timeline.more && !timeline.spans.is_empty();
        let compare = if whole { equal } else { fits };
        for (what, seconds, tally) in [("measured", all, &self.total), ("of the warm-up", warmup, &self.warmup)] {
            let of = |count: &str| format!("requests, {count} {what} over all seconds");
            let total = Outcomes::of(tally);
            // Requests that are due but not yet taken from the schedule belong to no second.
            fits(&of("scheduled"), seconds.scheduled, total.scheduled)?;
            compare(&of("succeeded"), seconds.succeeded, total.succeeded)?;
            compare(&of("failed"), seconds.errors, total.errors)?;
            compare(&of("unsent"), seconds.unsent, total.unsent)?;
            compare(&of("unanswered"), seconds.unanswered, total.unanswered)?;
            compare(&of("late"), seconds.late, total.late)?;
            compare(&of("overflowing"), seconds.overflow, total.overflow)?;
        }
        compare("bytes sent over all seconds", sent, self.total.sent_bytes)?;
        compare("bytes received over all seconds", received, self.total.received_bytes)
    }

    fn check_topology(&self) -> Result<(), String> {
        let topology = &self.topology;
        count("changes of the map", topology.changes_left_out)?;
        count("outages", topology.outages_left_out)?;
        let ranges = topology.changes.iter().flat_map(|change| &change.slots);
        if ranges.clone().any(|range| range.first > range.last || range.last >= SLOTS) {
            return Err("slots out of range".to_owned());
        }
        if !topology.outages.iter().all(outage::is_sound) {
            return Err("an invalid outage".to_owned());
        }
        let changes = topology.changes.iter().map(|change| change.at_nanoseconds);
        let instants = changes.chain(topology.outages.iter().map(|outage| outage.until_nanoseconds));
        match instants.max() {
            Some(at) if at > LARGEST_INSTANT_NANOSECONDS => Err(format!("a change at {at} ns, which is out of range")),
            _ => Ok(()),
        }
    }

    fn check_servers(&self) -> Result<(), String> {
        let Some(servers) = &self.servers else { return Ok(()) };
        at_most("servers", servers.nodes.len() as u64, "a snapshot may have", limits::NODES as u64)?;
        let not_compared = servers.not_compared.len() as u64;
        at_most("commands that are not compared", not_compared, "a mix may have", limits::OPERATIONS as u64)?;
        servers.nodes.iter().try_for_each(check_server)
    }

    fn check_lengths(&self) -> Result<(), String> {
        let bounds = [
            ("operations", self.operations.len(), limits::OPERATIONS),
            ("nodes", self.nodes.len(), limits::NODES),
            ("errors", self.errors.len(), limits::ERROR_KINDS),
            (
                "steps of delay",
                self.generator.receive_delay.as_ref().map_or(0, |d| d.counts.len()),
                limits::DELAY_STEPS,
            ),
            ("steps of send delay", self.generator.send_delays.len(), limits::DELAY_STEPS),
            ("series points", self.series.completed.len(), limits::SERIES_POINTS),
            ("changes of the map", self.topology.changes.len(), limits::CHANGES),
            ("outages", self.topology.outages.len(), limits::OUTAGES),
        ];
        match bounds.into_iter().find(|(_, length, bound)| length > bound) {
            Some((what, length, bound)) => Err(format!("{length} {what} in a snapshot, beyond {bound}")),
            None => Ok(()),
        }
    }

    fn check_instants(&self) -> Result<(), String> {
        let (window, generator) = (&self.window, &self.generator);
        let sending = generator.sending.unwrap_or_default();
        let instants = [
            ("the time of the snapshot", self.taken_nanoseconds),
            ("the start", window.start_nanoseconds),
            ("the first due time", window.first_due_nanoseconds),
            ("the first send", window.first_send_nanoseconds),
            ("the begin of the window", window.measure_from_nanoseconds),
            ("the end of the window", window.measure_to_nanoseconds),
            ("the last outcome", window.drained_nanoseconds),
            ("the interval of the series", self.series.interval_nanoseconds),
            ("processor time", generator.cpu_nanoseconds),
            ("waiting for a processor", generator.run_queue_nanoseconds),
            ("throttled time", generator.throttled_nanoseconds),
            ("stolen time", generator.stolen_nanoseconds),
            ("the time of sampled connections", sending.connection_nanoseconds),
            ("busy sending", sending.busy_nanoseconds),
            ("held up by the peer", sending.peer_limited_nanoseconds),
            ("held up by the send buffer", sending.buffer_limited_nanoseconds),
            ("the time of the interface", generator.interface.as_ref().map_or(0, |interface| interface.nanoseconds)),
            ("delayed time", generator.delayed_nanoseconds),
            ("the longest delay", generator.longest_delay_nanoseconds),
            ("the time of the load", generator.load_nanoseconds),
        ];
        match instants.into_iter().find(|(_, at)| *at > LARGEST_INSTANT_NANOSECONDS) {
            Some((what, at)) => Err(format!("{what} is {at} ns, which is out of range")),
            None => Ok(()),
        }
    }

    fn check_verification(&self) -> Result<(), String> {
        let Some(verification) = &self.verification else { return Ok(()) };
        verification.counts.all().into_iter().try_for_each(|number| count("what was verified", number))?;
        let findings = verification.findings.len() as u64;
        at_most("findings", findings, "a snapshot may have", limits::FINDINGS as u64)?;
        let last = verification.findings.iter().map(|finding| finding.at_nanoseconds).max().unwrap_or(0);
        at_most("the time of a finding", last, "any clock", LARGEST_INSTANT_NANOSECONDS)
    }

    fn check_churn(&self) -> Result<(), String> {
        let Some(churn) = &self.churn else { return Ok(()) };
        count("closed connections", churn.closed)?;
        equal("connect times", histogram("connect times", &churn.connect, Kind::Request)?, churn.made)?;
        let Some(handshakes) = &churn.tls_handshake else { return Ok(()) };
        let handshakes = histogram("TLS handshakes", handshakes, Kind::Request)?;
        at_most("TLS handshakes", handshakes, "connections made", churn.made)
    }

    fn check_cache(&self) -> Result<(), String> {
        let Some(cache) = &self.cache else { return Ok(()) };
        let counts = &cache.counts;
        counts.all().into_iter().try_for_each(|number| count("what a cache counted", number))?;
        at_most("stale hits", counts.stale_hits, "hits", counts.hits)?;
        at_most("invalidations of other keys", counts.not_cached, "invalidations", counts.invalidations)?;
        let timed = histogram("invalidation times", &cache.invalidation, Kind::Request)?;
        at_most("invalidation times", timed, "invalidations", counts.invalidations)
    }

    fn check_operations(&self) -> Result<(), String> {
        if self.operations.is_empty() {
            return Ok(());
        }
        for OperationTally { name, tally, nil_replies, latency } in &self.operations {
            check_tally(name, tally)?;
            check_latency(name, latency, tally)?;
            at_most("nil replies", *nil_replies, "succeeded", tally.succeeded)?;
        }
        let over_all = |what, of: fn(&Tally) -> u64| sum(what, self.operations.iter().map(|part| of(&part.tally)));
        equal("succeeded", over_all("succeeded", |tally| tally.succeeded)?, self.total.succeeded)?;
        equal("errors", over_all("errors", |tally| tally.errors)?, self.total.errors)?;
        equal("unsent", over_all("unsent", |tally| tally.unsent)?, self.total.unsent)?;
        let sent = over_all("bytes sent", |tally| tally.sent_bytes)?;
        at_most("bytes sent by operation", sent, "bytes sent", self.total.sent_bytes)?;
        let received = over_all("bytes received", |tally| tally.received_bytes)?;
        at_most("bytes received by operation", received, "bytes received", self.total.received_bytes)?;
        // Requests that are due but not yet taken from the schedule belong to no operation.
        let scheduled = over_all("scheduled", |tally| tally.scheduled)?;
        at_most("scheduled by operation", scheduled, "scheduled", self.total.scheduled)
    }

    fn check_nodes(&self) -> Result<(), String> {
        for NodeTally { requests, errors, service, address, .. } in &self.nodes {
            at_most("errors of a node", *errors, "its requests", *requests)?;
            let answered = histogram(address, service, Kind::Node)?;
            equal("service times of a node", answered, requests - errors)?;
        }
        let requests = sum("requests of nodes", self.nodes.iter().map(|node| node.requests))?;
        at_most("requests of nodes", requests, "those with an outcome", self.total.succeeded + self.total.errors)?;
        let redirects = sum("redirects of nodes", self.nodes.iter().map(|node| node.redirects))?;
        at_most("redirects of nodes", redirects, "redirects", self.total.redirect_hops)
    }
}

impl Probe {
    /// Checks the values that are added up or compared later.
    ///
    /// # Errors
    /// A description of the first violation, for people. The probe must not be used.
    pub fn check(&self) -> Result<(), String> {
        check_tally("the probe", &self.tally)?;
        count("the room of the probe", self.room)?;
        count("the room of the trial", self.of_room)?;
        at_most("succeeded in the probe", self.succeeded, "all of it", self.tally.succeeded)?;
        let time = self.nanoseconds.max(self.mean_nanoseconds);
        at_most("the time of the probe", time, "any clock", LARGEST_INSTANT_NANOSECONDS)
    }
}

/// Servers count for years, so only the counts that are added up have a shard's bounds.
fn check_server(node: &ServerNode) -> Result<(), String> {
    let whose = &node.address;
    for sample in [node.before, node.after].into_iter().flatten() {
        at_most("the time of a reply", sample.taken_nanoseconds, "any clock", LARGEST_INSTANT_NANOSECONDS)?;
    }
    if let Some(cpu) = node.cpu {
        at_most("the time of a server", cpu.nanoseconds, "any clock", LARGEST_INSTANT_NANOSECONDS)?;
    }
    let Some(commands) = node.commands else { return Ok(()) };
    count(whose, commands.calls)?;
    count(whose, commands.rejected.unwrap_or_default())?;
    count(whose, commands.foreign)?;
    count(whose, commands.microseconds)?;
    at_most("failed calls", commands.failed, "calls", commands.calls)
}

fn check_tally(whose: &str, tally: &Tally) -> Result<(), String> {
    // All other counts are parts of these.
    for number in [
        tally.scheduled,
        tally.redirect_hops,
        tally.deferral_hops,
        tally.fills,
        tally.fill_errors,
        tally.sent_bytes,
        tally.received_bytes,
    ] {
        count(whose, number)?;
    }
    if !tally.balances() {
        return Err(format!("a snapshot whose requests do not add up, in {}", limits::message(whose)));
    }
    at_most("unanswered", tally.unanswered, "errors", tally.errors)?;
    let reasons = tally.unsent_not_connected.saturating_add(tally.unsent_at_end);
    at_most("unsent by reason", reasons, "unsent", tally.unsent)?;
    let deferrals = tally.cluster_down_hops.saturating_add(tally.loading_hops);
    at_most("deferrals by kind", deferrals, "deferrals", tally.deferral_hops)?;
    at_most("under-replicated", tally.under_replicated, "succeeded", tally.succeeded)?;
    at_most("overflow", tally.overflow, "succeeded", tally.succeeded)?;
    at_most("late", tally.late, "scheduled", tally.scheduled)?;
    at_most("redirected", tally.redirected, "scheduled", tally.scheduled)?;
    at_most("the longest overflow", tally.overflow_max_nanoseconds, "any clock", LARGEST_INSTANT_NANOSECONDS)
}

/// Every histogram must match its counters.
fn check_latency(whose: &str, latency: &Latency, tally: &Tally) -> Result<(), String> {
    let response = histogram(whose, &latency.response, Kind::Request)?;
    equal("response times", response, tally.succeeded - tally.overflow)?;
    if let Some(service) = &latency.service {
        equal("service times", histogram(whose, service, Kind::Request)?, tally.succeeded)?;
    }
    let answered_errors = tally.errors - tally.unanswered;
    match &latency.error_replies {
        Some(replies) => equal("error replies", histogram(whose, replies, Kind::Request)?, answered_errors),
        None => equal("error replies", 0, answered_errors),
    }
}

fn check_part(part: &SpanPart) -> Result<(), String> {
    let SpanPart { counts, response, service, error_replies } = part;
    at_most("unanswered in a second", counts.unanswered, "errors", counts.errors)?;
    at_most("overflow in a second", counts.overflow, "succeeded", counts.succeeded)?;
    equal("response times in a second", response.count(), counts.succeeded - counts.overflow)?;
    if !service.is_empty() {
        equal("service times in a second", service.count(), counts.succeeded)?;
    }
    equal("error replies in a second", error_replies.count(), counts.errors - counts.unanswered)
}

/// The number of values in `encoded`.
fn histogram(whose: &str, encoded: &EncodedHistogram, kind: Kind) -> Result<u64, String> {
    encoded.count(kind).map_err(|error| format!("{error}, of {}", limits::message(whose)))
}

fn count(what: &str, number: u64) -> Result<(), String> {
    if number > LARGEST_COUNT {
        return Err(format!("{number} in {}, which is out of range", limits::message(what)));
    }
    Ok(())
}

fn sum(what: &str, mut parts: impl Iterator<Item = u64>) -> Result<u64, String> {
    let sum = parts.try_fold(0_u64, u64::checked_add).unwrap_or(u64::MAX);
    count(what, sum)?;
    Ok(sum)
}

fn at_most(what: &str, part: u64, of: &str, whole: u64) -> Result<(), String> {
    if part > whole { Err(format!("{part} {what}, more than {of}: {whole}")) } else { Ok(()) }
}

fn fits(what: &str, parts: u64, whole: u64) -> Result<(), String> {
    at_most(what, parts, "the counters", whole)
}

fn equal(what: &str, parts: u64, whole: u64) -> Result<(), String> {
    if parts == whole { Ok(()) } else { Err(format!("{parts} {what}, but the counters have {whole}")) }
}
