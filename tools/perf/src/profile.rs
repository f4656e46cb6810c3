//! CPU profiles: `perf` samples by function group and system call, of ours and of the floor.
//!
//! Samples by CPU clock (`cpu-clock`), because virtual machines often have no counters. The kernel's part of a call
//! graph is reliable without frame pointers. Of our own part, only the innermost address is used, with its inlined
//! functions from the line tables.

mod recorded;
mod report;
mod samples;
mod symbols;

use std::path::Path;

use anyhow::Context as _;
use redisbench_statistics::summary::median;

use crate::bench::Bench;
use crate::clients::{Client, Load};
use crate::machine::{COMMIT, COMPILER, Machine};
use crate::rounds::Rounds;
use crate::servers::{Kind, Servers};
use recorded::{Pair, Profile};

/// Profiles, and prints and writes the result.
pub fn profile(bench: &Bench, stacks: Option<&Path>) -> anyhow::Result<()> {
    let machine = Machine::look(bench, &[COMMIT, COMPILER, ("perf", "perf --version")])?;
    // About three seconds for our client.
    let loads = [(1, "get", 400_000), (16, "get", 6_000_000), (64, "get", 20_000_000), (16, "set", 6_000_000)];
    let mut pairs = Vec::new();
    for (pipeline, operation, requests) in loads {
        let load = Load::closed(operation, pipeline, bench.requests(requests));
        let servers = Servers::start(bench, Kind::Null(1))?;
        let clients = [Client::Ours, Client::Floor];
        let rounds = Rounds::run(bench, &clients.map(|client| (client.name(), client, &servers, load)))?;
        let [ours, floor] = clients.map(|client| Profile::record(bench, &client.line(&servers, &load)));
        let cost = |turn| median(&rounds.figure(turn, None));
        let pair = Pair { load, ours: Profile { cost: cost(0), ..ours? }, floor: Profile { cost: cost(1), ..floor? } };
        println!("{}", report::section(&pair));
        pairs.push(pair);
    }
    if let (Some(path), Some(pair)) = (stacks, pairs.get(1)) {
        let text: String = pair.ours.stacks.iter().map(|(stack, count)| format!("{stack} {count}\n")).collect();
        std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    bench.write(|| report::document(&machine, bench, &pairs))
}
