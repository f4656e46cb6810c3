//! Times the slices in which a worker makes a live snapshot, during which it sends nothing. `make bench` reads what it prints.
//!
//! Each slice is timed in many snapshots of the same counts, and its shortest time is taken: in the others, the machine did something else.
//! So caches are warm.

use std::time::{Duration, Instant};

use clap::Parser;
use redisbench_loadgen::record::{Period, Recording};
use redisbench_wire::plan::{Arrival, Load, Operation, TrialPlan};

const SECOND: u64 = 1_000_000_000;

/// Options of a measurement.
#[derive(Debug, Parser)]
struct Options {
    /// Operations of the load.
    #[arg(long, default_value_t = 1)]
    operations: u16,
    /// Requests of each operation in each second, with different latencies of up to a second.
    #[arg(long, default_value_t = 100_000)]
    requests: u64,
    /// Seconds since the snapshot before.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Snapshots.
    #[arg(long, default_value_t = 200)]
    snapshots: u32,
}

fn main() {
    let options = Options::parse();
    let recording = recording(&options);
    let mut shortest: Vec<Duration> = Vec::new();
    for _ in 0..options.snapshots {
        let mut slice = 0;
        let mut timed = |begun: Instant| {
            let taken = begun.elapsed();
            match shortest.get_mut(slice) {
                Some(shortest) => *shortest = taken.min(*shortest),
                None => shortest.push(taken),
            }
            slice += 1;
        };
        let begun = Instant::now();
        let mut draft = recording.draft(0);
        timed(begun);
        while !draft.is_whole() {
            let begun = Instant::now();
            recording.sketch(&mut draft);
            timed(begun);
        }
        let begun = Instant::now();
        let made = draft.finish(&recording);
        timed(begun);
        drop(made);
    }
    let longest = shortest.iter().max().copied().unwrap_or_default();
    println!("longest slice: {:.1} us of {} slices", longest.as_secs_f64() * 1e6, shortest.len());
}

/// Counts of an open loop with all histograms, in the middle of a second.
fn recording(options: &Options) -> Recording {
    let mut plan = TrialPlan {
        load: Load::OpenLoop {
            rate_per_second: options.requests,
            stages: Vec::new(),
            arrival: Arrival::Constant,
            pacing_grid_nanoseconds: 0,
            unsent_after_nanoseconds: SECOND,
        },
        ..TrialPlan::basic("")
    };
    plan.workload_mut().operations =
        (0..options.operations).map(|index| Operation::of(&format!("operation-{index}"), 1, "PING")).collect();
    let mut recording = Recording::new(&plan);
    recording.name_node(0, "node", "127.0.0.1:6379");
    recording.begin(0);
    for second in 0..options.seconds {
        recording.come_to(second * SECOND);
        for operation in 0..options.operations {
            recording.scheduled(Period::Measured, operation, options.requests);
            for request in 1..=options.requests {
                let latency = SECOND / options.requests * request;
                recording.sent(Period::Measured, operation, latency);
                recording.responded(operation, latency, 1);
                recording.plain(operation, 0, latency, (1, 1), 0, 9);
            }
        }
    }
    recording
}
