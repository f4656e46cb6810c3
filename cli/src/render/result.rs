//! The measured result.

use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::{
    GeneratorShare, Latencies, OperationResult, Requests, ShardOutcome, StageResult, TrialResult,
};

use super::grid::{Cell, Grid};
use super::latencies::{asked, known, latency_grid, latency_row};
use super::paint::{Paint, Style};
use super::{extras, verification};
use redisbench_benchmark::human::{bandwidth, bytes, count, counted, latency, rate};
use redisbench_wire::plan::Topology;

/// Above this, the busiest worker is likely the limit. Below, it still idles now and then.
const BUSY_PERCENT: u32 = 90;

/// A latency is doubtful if the load generator's share exceeds a fifth.
const OWN_BASIS_POINTS: u32 = 2_000;

/// An interval is rough if one of its ends is further away than this share of the value.
const ROUGH: f64 = 0.1;

/// Up to this many operations or stages have rows of precision. More would hide the latencies.
const PRECISE: usize = 16;

/// All tables of a result, most important first, and the notes.
pub fn sections(benchmark: &RedisBenchmark, result: &TrialResult, paint: Paint) -> String {
    // The only node of a standalone target would repeat the total.
    let standalone = benchmark.spec.targets.iter().all(|target| target.kind == Topology::Standalone);
    let mut text: String = grids(result, standalone).iter().map(|grid| grid.text(paint)).collect();
    let notes = notes(result);
    if !notes.is_empty() {
        let notes: Vec<_> = notes.iter().map(|note| paint.apply(Style::Dim, note)).collect();
        text.extend(["\n", &notes.join("\n"), "\n"]);
    }
    text
}

/// The tables of a result, most important first.
pub fn grids(result: &TrialResult, standalone: bool) -> Vec<Grid> {
    let mut grids = vec![latencies(result), throughput(result), requests(result)];
    if !result.stages.is_empty() {
        grids.extend([stages(result), stage_latencies(result)]);
    }
    grids.extend((!result.errors.is_empty()).then(|| errors(result)));
    grids.extend(result.verification.iter().flat_map(verification::grids));
    grids.extend(extras::clients(result.clients.iter().map(|client| (client.name.clone(), client))));
    grids.extend(result.cache.iter().flat_map(extras::cache));
    grids.extend(result.connections.iter().flat_map(extras::connections));
    if !result.nodes.is_empty() && !standalone {
        grids.extend([nodes(result), node_latencies(result)]);
    }
    grids.extend(result.nodes.iter().any(|node| node.server.is_some()).then(|| servers(result)));
    grids.extend((!result.shards.is_empty()).then(|| shards(result)));
    grids
}

/// Empty for a single operation, which would repeat the total.
fn operations(result: &TrialResult) -> &[OperationResult] {
    if result.operations.len() > 1 { &result.operations } else { &[] }
}

fn latencies(result: &TrialResult) -> Grid {
    let asked = asked(&result.response_time);
    let operations = operations(result);
    let are_precise = operations.len() <= PRECISE;
    let mut grid = latency_grid("Latency", &asked);
    add_latencies(&mut grid, "response time", &result.response_time, &asked, true);
    let shares = generators(result, &asked);
    if has_content(&shares) {
        grid.row(shares);
    }
    if let Some(succeeded) = &result.response_time_of_succeeded {
        add_latencies(&mut grid, "response time of succeeded", succeeded, &asked, true);
    }
    for operation in operations {
        let name = format!("  {}", operation.name);
        add_latencies(&mut grid, &name, &operation.response_time, &asked, are_precise);
    }
    if let Some(service) = &result.service_time {
        add_latencies(&mut grid, "service time", service, &asked, true);
        for operation in operations {
            if let Some(service) = &operation.service_time {
                add_latencies(&mut grid, &format!("  {}", operation.name), service, &asked, are_precise);
            }
        }
    }
    grid
}

/// Adds the row of `latencies`, and below it their precision if that `is_precise` and known.
fn add_latencies(grid: &mut Grid, name: &str, latencies: &Latencies, asked: &[&str], is_precise: bool) {
    grid.row(latency_row(name, latencies, asked));
    if is_precise {
        let precision = precision(name, latencies, asked);
        if has_content(&precision) {
            grid.row(precision);
        }
    }
}

/// Returns whether a row has more than its name.
fn has_content(row: &[Cell]) -> bool {
    row.iter().skip(1).any(|cell| !cell.is_empty())
}

/// The load generator's share of each percentile, where known.
fn generators(result: &TrialResult, asked: &[&str]) -> Vec<Cell> {
    let cell = |percentile: &&str| {
        let share = result.generator_share.iter().find(|share| share.percentile == *percentile);
        share.map_or_else(Cell::default, generator)
    };
    std::iter::once(Cell::styled("  generator share", Style::Dim)).chain(asked.iter().map(cell)).collect()
}

/// The load generator's share of one percentile; a lower bound if the time of unread replies is unknown.
fn generator(share: &GeneratorShare) -> Cell {
    if !share.is_known() {
        return Cell::styled("-", Style::Dim);
    }
    let at_least = if share.reading_nanoseconds.is_none() { "at least " } else { "" };
    own_share(at_least, share.basis_points)
}

/// A share of a latency that is the load generator's own.
pub fn own_share(at_least: &str, basis_points: u32) -> Cell {
    let style = if basis_points <= OWN_BASIS_POINTS { Style::Dim } else { Style::Doubtful };
    Cell::styled(format!("{at_least}{} %", basis_points / 100), style)
}

/// The precision of each percentile of the row `name`: the larger distance to an end of its interval, in per cent of the value.
fn precision(name: &str, latencies: &Latencies, asked: &[&str]) -> Vec<Cell> {
    let cell = |percentile: &&str| {
        let found = latencies.percentiles.iter().find(|one| one.percentile == *percentile);
        let Some(found) = found else { return Cell::default() };
        let Some((value, low)) = found.nanoseconds.zip(found.low_nanoseconds) else { return Cell::default() };
        let Some(high) = found.high_nanoseconds else { return Cell::styled("one-sided", Style::Doubtful) };
        let share = high.saturating_sub(value).max(value.saturating_sub(low)) as f64 / value.max(1) as f64;
        // A histogram's precision is a thousandth.
        let percent = (100.0 * share).max(0.1);
        let decimals = usize::from(percent < 9.95);
        let text = format!("{percent:.decimals$} %");
        Cell::styled(text, if share < ROUGH { Style::Dim } else { Style::Doubtful })
    };
    let indent = name.len() - name.trim_start().len();
    let head = Cell::styled(format!("{:indent$}  precision", ""), Style::Dim);
    std::iter::once(head).chain(asked.iter().map(cell)).collect()
}

fn throughput(result: &TrialResult) -> Grid {
    let throughput = &result.throughput;
    let target = throughput.target_per_second;
    let mut heads = vec!["achieved", "slowest second", "fastest second", "sent", "received"];
    let mut row = vec![
        Cell::from(rate(throughput.achieved_per_second)),
        Cell::from(rate(throughput.min_per_second)),
        Cell::from(rate(throughput.max_per_second)),
        Cell::from(bandwidth(result.bandwidth.sent_bytes_per_second)),
        Cell::from(bandwidth(result.bandwidth.received_bytes_per_second)),
    ];
    if let Some(target) = target {
        heads.insert(0, "target");
        row.insert(0, Cell::from(rate(target)));
    }
    row.insert(0, Cell::from("succeeded"));
    let mut grid = Grid::new("Throughput", &heads);
    grid.row(row);
    let empty = 2 + usize::from(target.is_some());
    for operation in operations(result) {
        let Some(own) = operation.bandwidth else { continue };
        let mut row = vec![Cell::from(format!("  {}", operation.name))];
        row.extend(vec![Cell::default(); empty + 1]);
        row.push(Cell::from(bandwidth(own.sent_bytes_per_second)));
        row.push(Cell::from(bandwidth(own.received_bytes_per_second)));
        grid.row(row);
    }
    grid
}

fn requests(result: &TrialResult) -> Grid {
    let all = &result.requests;
    let with_hits = result.operations.iter().any(|operation| operation.misses > 0);
    // The heads spell out the sum that holds in every row.
    let mut heads = vec!["scheduled", "= succeeded", "+ errors", "+ unsent"];
    for (head, value) in [("+ in flight", all.in_flight), ("+ unknown", all.unknown)] {
        if value > 0 {
            heads.push(head);
        }
    }
    heads.push("sent late");
    if all.redirected > 0 {
        heads.push("redirected");
    }
    if with_hits {
        heads.extend(["hits", "misses"]);
    }
    let mut grid = Grid::new("Requests", &heads);
    let mut total = request_row("total", all, all);
    if with_hits && result.operations.len() == 1 {
        add_hits(&mut total, &result.operations[0]);
    }
    grid.row(total);
    for operation in operations(result) {
        let mut row = request_row(&format!("  {}", operation.name), &operation.requests, all);
        if with_hits {
            add_hits(&mut row, operation);
        }
        grid.row(row);
    }
    grid
}

fn add_hits(row: &mut Vec<Cell>, operation: &OperationResult) {
    row.extend([operation.hits, operation.misses].map(|value| Cell::from(count(value))));
}

fn request_row(name: &str, requests: &Requests, all: &Requests) -> Vec<Cell> {
    let mut row = vec![Cell::from(name)];
    row.extend([requests.scheduled, requests.succeeded].map(|value| Cell::from(count(value))));
    row.extend([requests.errors, requests.unsent].map(|value| Cell::unless_zero(value, Style::Bad)));
    for (value, total) in [(requests.in_flight, all.in_flight), (requests.unknown, all.unknown)] {
        if total > 0 {
            row.push(Cell::unless_zero(value, Style::Bad));
        }
    }
    row.push(Cell::from(count(requests.late)));
    if all.redirected > 0 {
        row.push(Cell::from(count(requests.redirected)));
    }
    row
}

fn stages(result: &TrialResult) -> Grid {
    let heads = ["time", "target", "achieved", "requests", "errors", "unsent"];
    let mut grid = Grid::new("By stage", &heads);
    for stage in &result.stages {
        let requests = &stage.requests;
        let asked = match (rate(stage.rate.from), rate(stage.rate.to)) {
            (from, to) if from == to => from,
            (from, to) => format!("{from} to {to}"),
        };
        grid.row([
            Cell::from(stage_name(stage)),
            Cell::from(latency(
                (stage.to_milliseconds - stage.from_milliseconds.min(stage.to_milliseconds)) * 1_000_000,
            )),
            Cell::from(asked),
            Cell::from(rate(stage.achieved_per_second)),
            Cell::from(count(requests.scheduled)),
            Cell::unless_zero(requests.errors, Style::Bad),
            Cell::unless_zero(requests.unsent, Style::Bad),
        ]);
    }
    grid
}

fn stage_latencies(result: &TrialResult) -> Grid {
    let asked = asked(&result.response_time);
    let is_precise = result.stages.len() <= PRECISE;
    let mut grid = latency_grid("Response time by stage", &asked);
    for stage in &result.stages {
        add_latencies(&mut grid, &stage_name(stage), &stage.response_time, &asked, is_precise);
    }
    grid
}

fn stage_name(stage: &StageResult) -> String {
    stage.name.clone().unwrap_or_else(|| format!("stages[{}]", stage.index))
}

fn errors(result: &TrialResult) -> Grid {
    let mut grid = Grid::new("Errors", &["count", "first message"]).left(2);
    for error in &result.errors {
        grid.row([error.kind.clone(), count(error.count), error.first_message.clone()]);
    }
    grid
}

fn nodes(result: &TrialResult) -> Grid {
    let mut grid = Grid::new("Nodes", &["slots", "requests", "of mean", "errors", "redirects"]);
    for node in &result.nodes {
        grid.row([
            Cell::from(node.address.as_str()),
            Cell::from(count(node.slots.into())),
            Cell::from(count(node.requests)),
            Cell::from(format!("{} %", node.imbalance_percent)),
            Cell::unless_zero(node.errors, Style::Bad),
            Cell::from(count(node.redirects)),
        ]);
    }
    grid
}

fn node_latencies(result: &TrialResult) -> Grid {
    let asked = asked(&result.response_time);
    let mut grid = latency_grid("Service time by node", &asked);
    for node in &result.nodes {
        grid.row(latency_row(&node.address, &node.service_time, &asked));
    }
    grid
}

fn servers(result: &TrialResult) -> Grid {
    let heads = ["main thread", "peak", "memory", "after", "keys", "after", "evicted", "expired"];
    let mut grid = Grid::new("Servers", &heads);
    for (node, server) in result.nodes.iter().filter_map(|node| Some((node, node.server?))) {
        let share = |basis_points: Option<u32>| match basis_points {
            None => Cell::from("-"),
            Some(share) => {
                let style = if share < 100 * BUSY_PERCENT { Style::Plain } else { Style::Doubtful };
                Cell::styled(format!("{} %", share / 100), style)
            }
        };
        grid.row([
            Cell::from(node.address.as_str()),
            share(server.cpu_mean_basis_points),
            share(server.cpu_max_basis_points),
            Cell::from(bytes(server.memory_before_bytes)),
            Cell::from(bytes(server.memory_after_bytes)),
            Cell::from(count(server.keys_before)),
            Cell::from(count(server.keys_after)),
            Cell::unless_zero(server.evicted_keys, Style::Bad),
            Cell::from(count(server.expired_keys)),
        ]);
    }
    grid
}

fn shards(result: &TrialResult) -> Grid {
    let heads = ["host", "requests", "errors", "p99", "start skew", "busiest worker", "throttled", "reconnects"];
    let mut grid = Grid::new("Shards", &heads).left(1);
    for shard in &result.shards {
        let (name, style) = match shard.state {
            ShardOutcome::Finished => (shard.index.to_string(), Style::Plain),
            ShardOutcome::Lost => (format!("{} (lost)", shard.index), Style::Bad),
        };
        let busy = if shard.busiest_worker_percent < BUSY_PERCENT { Style::Plain } else { Style::Doubtful };
        grid.row([
            Cell::styled(name, style),
            Cell::from(shard.node.as_str()),
            Cell::from(count(shard.requests.scheduled)),
            Cell::unless_zero(shard.requests.errors, Style::Bad),
            known(shard.p99_nanoseconds),
            Cell::from(latency(shard.start_skew_microseconds.saturating_mul(1000))),
            Cell::styled(format!("{} %", shard.busiest_worker_percent), busy),
            Cell::from(latency(shard.throttled_milliseconds.saturating_mul(1_000_000))),
            Cell::from(count(shard.reconnects)),
        ]);
    }
    grid
}

/// Notes besides the tables: shortened lists, warm-up, preload.
pub fn notes(result: &TrialResult) -> Vec<String> {
    let mut notes: Vec<String> = too_few(result).into_iter().collect();
    if let Some(truncated) = &result.truncated {
        let left_out = [
            (truncated.stages, "stages"),
            (truncated.operations, "operations"),
            (truncated.nodes, "nodes"),
            (truncated.errors, "error kinds"),
            (truncated.shards, "shards"),
            (truncated.findings, "verification findings"),
        ];
        for (number, name) in left_out.into_iter().filter(|(number, _)| *number > 0) {
            notes.push(format!("{} more {name} are only in the artifacts.", count(number)));
        }
        if truncated.percentiles {
            let only = "The intervals of stage, operation and node percentiles are only in the artifacts.";
            notes.push(only.to_owned());
        }
        if truncated.histogram {
            notes.push("The response time distribution is only in the artifacts.".to_owned());
        }
    }
    if result.requests.unsent > 0 {
        let Requests { unsent, unsent_not_connected, unsent_at_end, .. } = result.requests;
        let no_room = unsent.saturating_sub(unsent_not_connected).saturating_sub(unsent_at_end);
        let reasons = [
            (no_room, "timed out waiting for room in a pipeline"),
            (unsent_not_connected, "timed out waiting for a connection"),
            (unsent_at_end, "were still queued when the load ended"),
        ];
        let reasons: Vec<_> = reasons.into_iter().filter(|(number, _)| *number > 0).collect();
        let reasons: Vec<_> = reasons.into_iter().map(|(number, why)| format!("{} {why}", count(number))).collect();
        notes.push(format!("Unsent: {}.", reasons.join(", ")));
    }
    notes.extend(more_than_requests(&result.requests));
    if let Some(preload) = result.preload.filter(|preload| preload.commands > 0) {
        notes.push(format!("Preload: {}, not counted above.", counted(preload.keys, "key")));
    }
    if let Some(warmup) = result.warmup.filter(|warmup| warmup.scheduled > 0) {
        let (scheduled, errors) = (counted(warmup.scheduled, "request"), counted(warmup.errors, "error"));
        notes.push(format!("Warm-up: {scheduled} with {errors}, not counted above."));
    }
    notes
}

/// The number of requests needed by percentiles that are unknown for lack of requests.
fn too_few(result: &TrialResult) -> Option<String> {
    let rows = [Some(&result.response_time), result.response_time_of_succeeded.as_ref(), result.service_time.as_ref()];
    let parts = operations(result).iter().flat_map(|part| [Some(&part.response_time), part.service_time.as_ref()]);
    let shown = rows.into_iter().chain(parts).flatten().flat_map(|latencies| &latencies.percentiles);
    let (needed, percentile) = shown.filter_map(|one| Some((one.needed_requests?, &one.percentile))).max()?;
    Some(format!("Percentiles of too few requests are not shown: p{percentile} needs at least {}.", count(needed)))
}

/// Operations besides the requests, one line each.
fn more_than_requests(requests: &Requests) -> Vec<String> {
    let mut notes = Vec::new();
    if requests.commands > 0 {
        notes.push(format!("Transactions: the successful ones contained {}.", counted(requests.commands, "command")));
    }
    if requests.under_replicated > 0 {
        let number = counted(requests.under_replicated, "request");
        notes.push(format!("Replicas: {number} succeeded with fewer replicas than required."));
    }
    if requests.fills.max(requests.fill_errors) > 0 {
        let (fills, errors) = (counted(requests.fills, "key"), count(requests.fill_errors));
        notes.push(format!("Fills: {fills} written after read misses, {errors} failed; not counted above."));
    }
    notes
}
