use std::iter::repeat;

use redisbench_wire::histogram::{EncodedHistogram, HistogramError};
use redisbench_wire::outage::agreed;
use redisbench_wire::snapshot::{
    Generator, Latency, NodeTally, OperationTally, ReceiveDelay, Sending, Series, Snapshot, Stage, Tally, Verification,
    Window,
};
use redisbench_wire::strain::Strain;
use redisbench_wire::timeline::{Span, Timeline};
use redisbench_wire::topology::{Outage, TopologyReport};
use redisbench_wire::{Detail, limits, timeline};

use super::counts::add_optional;
use super::{CacheRecord, ChurnCounts, Delays, NodeRecord, OperationRecord, Recording, RequestCounts, add_error};
use crate::selfcheck::{Evidence, ObservedMachine};

/// One worker's part of a snapshot.
#[derive(Clone, Debug, Default)]
pub struct WorkerReport {
    /// The instant that its counts belong to.
    pub taken_nanoseconds: u64,
    pub recording: Recording,
    /// Its seconds from [`Meta::from`] on, and the first incomplete one.
    pub seconds: (Vec<Span>, u32),
    pub stage: Stage,
    /// True if it was stopped early.
    pub aborted: bool,
    /// Its own window. `measure_to_nanoseconds` is `u64::MAX` while its number of requests is not used up, or if it has none to send.
    pub window: Window,
    /// Measured slots that are due and not drawn yet.
    pub backlog: u64,
    /// Warm-up slots that are due and not drawn yet.
    pub warmup_backlog: u64,
    /// Keys that its preload wrote or found.
    pub preloaded_keys: u64,
    /// Answered commands of its preload.
    pub preload_commands: u64,
    /// CPU time of its load so far.
    pub cpu_nanoseconds: u64,
    /// Run queue wait of its load so far: ready to run, without a processor.
    pub run_queue_nanoseconds: u64,
    /// Wall time of its load so far.
    pub wall_nanoseconds: u64,
    /// See [`Generator::delayed_nanoseconds`].
    pub delayed_nanoseconds: u64,
    /// See [`Generator::longest_delay_nanoseconds`].
    pub longest_delay_nanoseconds: u64,
    /// See [`Generator::send_delays`].
    pub send_delays: Delays,
    /// See [`Generator::waited_for_room`].
    pub waited_for_room: u64,
    /// Requests in flight times nanoseconds, in a closed loop.
    pub in_flight: u128,
    /// The time for which replies waited in the kernel.
    pub receive_delay: ReceiveDelay,
    /// Limits on sending, from the sampled connections.
    pub sending: Sending,
    /// Requests that ready connections had room for, times nanoseconds, in a closed loop.
    pub room: u128,
    /// Connections that broke and were made again.
    pub reconnects: u64,
    /// Slots that each node owns or serves reads for, in the order of the recording's nodes.
    pub slots: Vec<u32>,
    /// Findings of the verification; `None` if nothing is verified.
    pub verification: Option<Verification>,
    /// Counts of client-side caches; `None` without them.
    pub cache: Option<CacheRecord>,
    /// Connections made and closed; `None` if they have no lifetime.
    pub churn: Option<ChurnCounts>,
    /// Per node, whether it serves reads only.
    pub replicas: Vec<bool>,
    /// Times without replies from slots.
    pub outages: Vec<Outage>,
    /// Outages beyond the limit.
    pub outages_left_out: u64,
}

/// Fields of a snapshot that do not come from workers.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// See [`Snapshot::sequence`].
    pub sequence: u64,
    /// See [`Snapshot::shard`].
    pub shard: u32,
    /// See [`Snapshot::attempt`].
    pub attempt: u32,
    pub detail: Detail,
    /// The first second to include.
    pub from: u32,
}

/// The shard's machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// See [`Generator::host`].
    pub host: String,
    /// See [`Generator::strain`].
    pub strain: Option<Strain>,
    /// The kernel's counters and settings.
    pub seen: ObservedMachine,
}

/// Merges the workers' parts into the shard's snapshot. `operations` are the names in the plan's order, or empty without that breakdown.
///
/// # Errors
/// Fails if a histogram cannot be encoded.
pub fn merge(
    mut reports: Vec<WorkerReport>,
    meta: Meta,
    machine: Machine,
    operations: &[String],
) -> Result<Snapshot, HistogramError> {
    let full = meta.detail == Detail::Full;
    let timeline = timeline(&mut reports, meta.from);
    let window = window(&reports);
    let generator = generator(&reports, machine);
    let stage = reports.iter().map(|report| report.stage).min().unwrap_or(Stage::Waiting);
    let taken_nanoseconds = reports.iter().map(|report| report.taken_nanoseconds).max().unwrap_or_default();
    let aborted = reports.iter().any(|report| report.aborted);
    let sum = |of: fn(&WorkerReport) -> u64| reports.iter().map(of).sum::<u64>();
    let (backlog, warmup_backlog) = (sum(|report| report.backlog), sum(|report| report.warmup_backlog));
    let (preloaded_keys, preload_commands) =
        (sum(|report| report.preloaded_keys), sum(|report| report.preload_commands));
    let mut verification: Option<Verification> = None;
    for found in reports.iter().filter_map(|report| report.verification.as_ref()) {
        verification.get_or_insert_default().add(found);
    }
    let cache = reports.iter().filter_map(|report| report.cache.as_ref()).cloned().reduce(|mut sum, part| {
        sum.add(&part);
        sum
    });
    let churn = reports.iter().filter_map(|report| report.churn.as_ref()).cloned().reduce(|mut sum, part| {
        sum.add(&part);
        sum
    });
    let (slots, replicas) =
        reports.first().map(|report| (report.slots.clone(), report.replicas.clone())).unwrap_or_default();
    let topology = topology(&reports);
    let mut recordings = reports.into_iter().map(|report| report.recording);
    let mut all = recordings.next().unwrap_or_default();
    recordings.for_each(|recording| all.absorb(recording));

    let mut whole = OperationRecord::new(false);
    all.operations.iter().for_each(|record| whole.absorb(record));
    let latency = whole.latency(all.lateness.as_ref().filter(|_| full))?;
    let mut total = in_flight(whole.tally, backlog);
    total.sent_bytes = all.sent_bytes;
    total.received_bytes = all.received_bytes;
    let by_operation = if full && all.operations.len() == operations.len() { operations } else { &[] };
    Ok(Snapshot {
        sequence: meta.sequence,
        shard: meta.shard,
        attempt: meta.attempt,
        taken_nanoseconds,
        stage,
        aborted,
        terminated: false,
        window,
        total,
        warmup: in_flight(all.warmup, warmup_backlog),
        preloaded_keys,
        preload_commands,
        latency,
        series: if full { all.series.into_series() } else { Series::default() },
        timeline,
        operations: by_operation
            .iter()
            .zip(&all.operations)
            .map(|(name, record)| record.tally(name))
            .collect::<Result<_, _>>()?,
        nodes: all
            .nodes
            .unwrap_or_default()
            .into_iter()
            .filter(|_| full)
            // Nodes beyond the first worker's list joined after its map, so they own no slots in it.
            .zip(slots.into_iter().zip(replicas.into_iter().chain(repeat(false))).chain(repeat((0, false))))
            .map(|(node, (slots, replica))| node.tally(slots, replica))
            .collect::<Result<_, _>>()?,
        errors: all.errors,
        verification,
        cache: cache.map(|cache| cache.encode()).transpose()?,
        churn: churn.map(|churn| churn.encode()).transpose()?,
        client: None,
        generator,
        topology,
        servers: None,
    })
}

fn timeline(reports: &mut [WorkerReport], from: u32) -> Timeline {
    // Workers that have finished add nothing to any second.
    let going_on = reports.iter().filter(|report| report.stage != Stage::Done);
    let complete = going_on.map(|report| report.seconds.1).min();
    let spans = reports.iter_mut().flat_map(|report| std::mem::take(&mut report.seconds.0)).collect();
    let spans = timeline::merge(spans);
    let complete = complete.unwrap_or_else(|| spans.last().map_or(from, Span::end));
    let mut timeline = Timeline { from, complete, more: false, spans };
    timeline.cut(limits::TIMELINE_BYTES);
    timeline
}

/// The outages that most of the workers saw.
fn topology(reports: &[WorkerReport]) -> TopologyReport {
    let lists: Vec<&[Outage]> = reports.iter().map(|report| report.outages.as_slice()).collect();
    let mut outages = agreed(&lists, reports.len());
    let beyond = outages.len().saturating_sub(limits::OUTAGES);
    outages.truncate(limits::OUTAGES);
    let left_out = reports.iter().map(|report| report.outages_left_out).sum::<u64>() + beyond as u64;
    TopologyReport { outages, outages_left_out: left_out, ..TopologyReport::default() }
}

/// Counts every request without an outcome as in flight, including the backlog of undrawn slots.
fn in_flight(mut tally: Tally, backlog: u64) -> Tally {
    tally.scheduled += backlog;
    tally.in_flight = tally.scheduled.saturating_sub(tally.succeeded + tally.errors + tally.unsent);
    tally
}

fn window(reports: &[WorkerReport]) -> Window {
    let each = |of: fn(&Window) -> u64| reports.iter().map(move |report| of(&report.window));
    let done = reports.iter().all(|report| report.stage == Stage::Done);
    let first_send = each(|window| window.first_send_nanoseconds).filter(|sent| *sent > 0).min();
    let measure_to = each(|window| window.measure_to_nanoseconds).min().unwrap_or_default();
    let drained = each(|window| window.drained_nanoseconds).max().filter(|_| done);
    Window {
        start_nanoseconds: each(|window| window.start_nanoseconds).max().unwrap_or_default(),
        first_due_nanoseconds: each(|window| window.first_due_nanoseconds).min().unwrap_or_default(),
        first_send_nanoseconds: first_send.unwrap_or_default(),
        measure_from_nanoseconds: each(|window| window.measure_from_nanoseconds).max().unwrap_or_default(),
        measure_to_nanoseconds: if measure_to == u64::MAX { 0 } else { measure_to },
        drained_nanoseconds: drained.unwrap_or_default(),
    }
}

fn generator(reports: &[WorkerReport], machine: Machine) -> Generator {
    let share = |report: &WorkerReport, of: u64| {
        let share = u128::from(of) * 1_000_000 / u128::from(report.wall_nanoseconds.max(1));
        u32::try_from(share.min(1_000_000)).unwrap_or(u32::MAX)
    };
    let longest =
        |of: fn(&WorkerReport) -> u64| reports.iter().map(|report| share(report, of(report))).max().unwrap_or_default();
    let sum = |of: fn(&WorkerReport) -> u64| reports.iter().map(of).sum::<u64>();
    let Evidence { throttled_nanoseconds, processors, stolen_nanoseconds } = machine.seen.evidence;
    Generator {
        host: machine.host,
        workers: reports.len() as u32,
        load_nanoseconds: reports.iter().map(|report| report.wall_nanoseconds).max().unwrap_or_default(),
        busiest_worker_millionths: longest(|report| report.cpu_nanoseconds),
        longest_waiting_worker_millionths: longest(|report| report.run_queue_nanoseconds),
        cpu_nanoseconds: sum(|report| report.cpu_nanoseconds),
        run_queue_nanoseconds: sum(|report| report.run_queue_nanoseconds),
        throttled_nanoseconds,
        processors,
        stolen_nanoseconds,
        strain: machine.strain,
        delayed_nanoseconds: sum(|report| report.delayed_nanoseconds),
        longest_delay_nanoseconds: reports.iter().map(|r| r.longest_delay_nanoseconds).max().unwrap_or_default(),
        send_delays: send_delays(reports),
        waited_for_room: Some(sum(|report| report.waited_for_room)),
        sending: sending(reports),
        receive_delay: receive_delay(reports),
        environment: machine.seen.environment,
        interface: machine.seen.interface,
        idle_millionths: idle_millionths(reports),
        reconnects: sum(|report| report.reconnects),
    }
}

fn sending(reports: &[WorkerReport]) -> Option<Sending> {
    let mut all = Sending::default();
    for Sending {
        connections,
        connection_nanoseconds,
        busy_nanoseconds,
        peer_limited_nanoseconds,
        buffer_limited_nanoseconds,
    } in reports.iter().map(|report| report.sending)
    {
        all.connections += connections;
        all.connection_nanoseconds += connection_nanoseconds;
        all.busy_nanoseconds += busy_nanoseconds;
        all.peer_limited_nanoseconds += peer_limited_nanoseconds;
        all.buffer_limited_nanoseconds += buffer_limited_nanoseconds;
    }
    (all.connections > 0).then_some(all)
}

/// Empty without any delay, as in a closed loop.
fn send_delays(reports: &[WorkerReport]) -> Vec<u64> {
    let mut all = vec![0; Delays::STEPS];
    for report in reports {
        all.iter_mut().zip(report.send_delays.counts()).for_each(|(sum, count)| *sum += count);
    }
    if all.iter().all(|count| *count == 0) { Vec::new() } else { all }
}

/// None without a timestamp: UNIX sockets have none.
fn receive_delay(reports: &[WorkerReport]) -> Option<ReceiveDelay> {
    let mut all = ReceiveDelay { connections: 0, counts: vec![0; Delays::STEPS] };
    for delay in reports.iter().map(|report| &report.receive_delay) {
        all.connections += delay.connections;
        all.counts.iter_mut().zip(&delay.counts).for_each(|(sum, count)| *sum += count);
    }
    all.counts.iter().any(|count| *count > 0).then_some(all)
}

/// 1 - X W / (C P): throughput times latency is the number of requests in flight (Little's law); connections times window is the number
/// that there was room for.
fn idle_millionths(reports: &[WorkerReport]) -> Option<u32> {
    let in_flight: u128 = reports.iter().map(|report| report.in_flight).sum();
    let room: u128 = reports.iter().map(|report| report.room).sum();
    let idle = room.saturating_sub(in_flight).saturating_mul(1_000_000).checked_div(room)?;
    u32::try_from(idle).ok()
}

impl Recording {
    /// A copy for a snapshot. Drops what a live snapshot does not contain, so that less is copied between threads.
    #[must_use]
    pub fn summary(&self, detail: Detail) -> Self {
        let full = detail == Detail::Full;
        let mut operations = if full { self.operations.clone() } else { vec![self.whole()] };
        if let ([own], [copy]) = (&self.operations[..], &mut operations[..]) {
            copy.tally = self.tally_of(own);
        }
        Self {
            operations,
            nodes: self.nodes.as_ref().filter(|_| full).cloned(),
            node_seconds: self.node_seconds,
            lateness: self.lateness.as_ref().filter(|_| full).cloned(),
            errors: self.errors.clone(),
            warmup: self.warmup,
            sent_bytes: self.sent_bytes,
            received_bytes: self.received_bytes,
            counts_read: self.counts_read,
            series: if full { self.series.clone() } else { super::Completions::default() },
            seconds: super::Seconds::default(),
            traces: None,
        }
    }

    /// The sum of all operations.
    fn whole(&self) -> OperationRecord {
        let mut whole = OperationRecord::new(self.lateness.is_some());
        for record in &self.operations {
            whole.absorb_used(record);
        }
        whole
    }

    fn absorb(&mut self, other: Self) {
        self.operations.iter_mut().zip(&other.operations).for_each(|(mine, its)| mine.absorb(its));
        for node in other.nodes.into_iter().flatten() {
            let mine = self.nodes.get_or_insert_default();
            match mine.iter_mut().find(|mine| mine.id == node.id && mine.label == node.label) {
                Some(mine) => mine.absorb(&node),
                None => mine.push(node),
            }
        }
        add_optional(&mut self.lateness, other.lateness.as_ref());
        other.errors.into_iter().for_each(|error| add_error(&mut self.errors, error));
        self.warmup.add(&other.warmup);
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.series.merge(other.series);
    }
}

impl OperationRecord {
    /// Like [`Self::absorb`], for a record of the same worker, whose used buckets are known from its seconds: it runs in the worker during
    /// the load, and so adds only these. Returns the number of their ranges.
    pub(super) fn absorb_used(&mut self, other: &Self) -> usize {
        self.tally.add(&other.tally);
        self.nil_replies += other.nil_replies;
        if other.error_replies.is_some() {
            self.error_replies.get_or_insert_with(RequestCounts::new);
        }
        let mut ranges = 0;
        for (lowest, highest) in other.second.used() {
            ranges += 1;
            let add = |mine: Option<&mut RequestCounts>, its: Option<&RequestCounts>| {
                if let (Some(mine), Some(its)) = (mine, its) {
                    mine.add_range(its, lowest, highest);
                }
            };
            add(Some(&mut self.response), Some(&other.response));
            add(self.service.as_mut(), other.service.as_ref());
            add(self.error_replies.as_mut(), other.error_replies.as_ref());
        }
        ranges
    }

    fn absorb(&mut self, other: &Self) {
        self.tally.add(&other.tally);
        self.nil_replies += other.nil_replies;
        self.response.add(&other.response);
        add_optional(&mut self.service, other.service.as_ref());
        add_optional(&mut self.error_replies, other.error_replies.as_ref());
    }

    fn latency(&self, lateness: Option<&RequestCounts>) -> Result<Latency, HistogramError> {
        let encode = |counts: &RequestCounts| EncodedHistogram::encode(&counts.histogram());
        let optional = |counts: Option<&RequestCounts>| counts.map(encode).transpose();
        Ok(Latency {
            response: encode(&self.response)?,
            service: optional(self.service.as_ref())?,
            error_replies: optional(self.error_replies.as_ref())?,
            lateness: optional(lateness)?,
        })
    }

    fn tally(&self, name: &str) -> Result<OperationTally, HistogramError> {
        Ok(OperationTally {
            name: name.to_owned(),
            tally: in_flight(self.tally, 0),
            nil_replies: self.nil_replies,
            latency: self.latency(None)?,
        })
    }
}

impl NodeRecord {
    fn absorb(&mut self, other: &Self) {
        self.connections += other.connections;
        self.requests += other.requests;
        self.errors += other.errors;
        self.redirects += other.redirects;
        self.service.add(&other.service);
    }

    fn tally(self, slots: u32, replica: bool) -> Result<NodeTally, HistogramError> {
        let service = EncodedHistogram::encode(&self.service.histogram())?;
        Ok(NodeTally {
            id: self.id,
            address: self.label,
            slots,
            replica,
            connections: self.connections,
            requests: self.requests,
            errors: self.errors,
            redirects: self.redirects,
            service,
        })
    }
}
