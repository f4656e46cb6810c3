//! The table, for a terminal and for the documents.

mod figures;
mod floor;

use crate::bench::Bench;
use crate::machine::Machine;
use crate::markdown;
use crate::table::Row;
use figures::{number, spread, value, with_unit};

/// A row, printed once measured.
pub fn line(row: &Row) -> String {
    let measured = match &row.outcome {
        Ok(measured) => measured.detail.clone(),
        Err(error) => format!("failed: {error}"),
    };
    format!("{}: {} {}\n    {measured}", row.name, value(row), row.verdict())
}

/// All rows, for a terminal.
pub fn summary(rows: &[Row]) -> String {
    format!("{}\n{}", table(rows), floor::table(rows))
}

pub fn document(machine: &Machine, bench: &Bench, rows: &[Row]) -> String {
    let floor = floor::table(rows);
    let floor = if floor.is_empty() { floor } else { format!("{}\n{floor}\n", floor::INTRODUCTION) };
    format!(
        "{}{}\n{floor}## How\n\n{HOW}\n## The samples of each figure\n\nMedians; \"server\" is the server's own CPU time per \
         request. Samples are in the order of measurement.\n\n{}",
        machine.header(bench, "Cost of the load generator", "bench"),
        table(rows),
        rows.iter().map(detail).collect::<String>(),
    )
}

fn table(rows: &[Row]) -> String {
    let cells = |row: &Row| {
        let limit =
            |limit: Option<f64>| limit.map_or_else(String::new, |limit| with_unit(&limit.to_string(), row.unit));
        let samples = row.outcome.as_ref().map_or(&[][..], |measured| &measured.samples);
        let (gate, aim) = row.gate_and_aim.unzip();
        [row.name.clone(), value(row), spread(samples), limit(gate), limit(aim), row.verdict().to_owned()]
    };
    markdown::table(["what", "measured", "lowest to highest", "gate", "aim", "verdict"], rows.iter().map(cells))
}

const HOW: &str = "\
- One worker, 50 connections, 100-byte values, 100,000 keys, unless a row states otherwise. P is the number of requests in
  flight per connection.
- Client and server each have their own processor (`taskset`) and use loopback. Ours is the bare engine
  (`tools/perf/src/bin/drive.rs`) with all histograms: total, per operation, per node.
- CPU is the user and system time of the whole client process, from start to exit, divided by the requests that the server
  counted.
- Ratios come from pairs, ours and theirs in alternation, because a machine's speed drifts. The figure is the median of the
  pairs' ratios.
- The null server (`redisbench-loadgen null-server`) replies immediately and stores no keys. With it, the client is the limit;
  with redis-server, mostly the server is.
- With TLS, redis-server has a self-signed certificate with a P-256 key, which both clients trust.
- With 10,000 connections, the cost of connecting is subtracted for every client: the cost of a run with one request per
  connection, in the same round.
- System calls (`strace -f -c`) and instructions (callgrind) are those of the whole process, as the difference between runs
  with two numbers of requests. The lowest of five counts is used, because a server that waits for its processor only adds
  to the work of a saturated worker. The open loop is behind its schedule (1M/s), so its batches are full too. At lower rates
  they are smaller, and a request costs more.
- Large values have 4 connections and 4 keys, 4 GiB in each run. The time per byte should hardly depend on the size: caches hold
  less of a larger value, but no byte is copied more often.
- The delay by live snapshots is how much later sends are (p99) with 500 snapshots per second than without, in four pairs of
  runs of 2 s for each pair of the other rows. A slice of 100 µs in each snapshot would take 5 % of the time, so p99 would show it.
  The machine itself dominates higher quantiles. The thread that encodes the snapshots shares the server's processor, so that the
  worker has its own.
- The longest slice is that of live snapshots of counts that stand still, in an open loop with all histograms and 100,000 different
  latencies of each operation per second. Each slice's shortest time of 200 is taken, so its data are in caches, and nothing
  interrupts it.
- Memory per connection is the peak resident memory (`VmHWM`) with 10,000 connections minus that with 1, divided by 9,999. It
  excludes the kernel's socket buffers.
";

fn detail(row: &Row) -> String {
    match &row.outcome {
        Err(error) => format!("- {}: failed: {error}\n", row.name),
        Ok(measured) => {
            let samples: Vec<String> = measured.samples.iter().map(|sample| number(*sample)).collect();
            format!("- {}: {}. Samples: {}.\n", row.name, measured.detail, samples.join(", "))
        }
    }
}
