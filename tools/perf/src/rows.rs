//! The table: the figures and their gates.

mod against;
mod connections;
mod exact;
mod open;
mod rounds;
mod scaling;

pub use rounds::{Rounds, Turn};

use crate::clients::Operation;
use crate::servers::Kind;
use crate::table::{Measure, Plan};

/// All measurements, in the order of the table.
pub fn all() -> Vec<Plan> {
    let mut plans = Vec::new();
    let null = [(1, 0.52, 0.46), (16, 0.45, 0.40), (64, 0.36, 0.31)];
    let redis = [(1, 0.68, 0.62), (16, 0.60, 0.50), (64, 0.55, 0.42)];
    for (kind, server, gates) in [(Kind::Null(1), "null server", null), (Kind::Redis, "redis-server", redis)] {
        for (pipeline, gate, aim) in gates {
            for operation in [Operation::Get, Operation::Set] {
                let name = operation.name().to_uppercase();
                plans.push(Plan {
                    name: format!("CPU per request against redis-benchmark, {server}, {name}, P={pipeline}"),
                    unit: "",
                    gate: Some(gate),
                    aim: Some(aim),
                    is_exact: false,
                    measure: Box::new(move |bench| against::redis_benchmark(bench, kind, operation, pipeline)),
                });
            }
        }
    }
    let mut add = |name: &str, unit, gate, aim, measure: Measure| {
        let is_exact = name.starts_with("system calls") || name.starts_with("user instructions");
        plans.push(Plan { name: name.to_owned(), unit, gate, aim, is_exact, measure });
    };
    let some = |gate: f64, aim: f64| (Some(gate), Some(aim));
    let (gate, aim) = some(2.1, 2.03);
    add("system calls per batch when saturated, GET, P=16", "", gate, aim, Box::new(exact::system_calls));
    let (gate, aim) = some(300.0, 200.0);
    add("user instructions per request, GET, P=16, closed loop", "", gate, aim, Box::new(exact::closed_instructions));
    let (gate, aim) = some(450.0, 350.0);
    let name = "user instructions per request, GET, P=16, open loop with all histograms";
    add(name, "", gate, aim, Box::new(exact::open_instructions));
    let (gate, aim) = some(1.35, 1.15);
    let name = "CPU per request, three-primary cluster against standalone, GET, P=16";
    add(name, "", gate, aim, Box::new(against::standalone));
    for (pipeline, gate, aim) in [(1, 0.9, 0.75), (16, 0.8, 0.6)] {
        let name = format!("CPU per request against redis-benchmark --tls, redis-server, GET, P={pipeline}");
        let measure = move |bench: &_| against::redis_benchmark(bench, Kind::Tls, Operation::Get, pipeline);
        add(&name, "", Some(gate), Some(aim), Box::new(measure));
    }
    for (pipeline, gate, aim) in [(1, 1.0, 0.25), (64, 2.5, 1.5)] {
        let name = format!("resident memory per connection at 10,000 connections, P={pipeline}");
        add(&name, "KiB", Some(gate), Some(aim), Box::new(move |bench| connections::memory(bench, pipeline)));
    }
    let (gate, aim) = some(0.55, 0.45);
    let name = "CPU per request against redis-benchmark, redis-server, GET, P=1, 10,000 connections";
    add(name, "", gate, aim, Box::new(connections::many));
    for (grid, label, gate, aim) in [(250, "250 µs", 15.0, 9.0), (1000, "1 ms", 7.0, 3.0)] {
        for pipeline in [1, 16] {
            let name = format!("CPU per request, open loop at 20k/s on a grid of {label}, GET, P={pipeline}");
            let measure = move |bench: &_| open::at_a_rate(bench, grid, pipeline);
            add(&name, "µs", Some(gate), Some(aim), Box::new(measure));
        }
    }
    add("CPU per request, two workers against one, null server, GET, P=16", "", None, None, Box::new(scaling::two));
    plans
}
