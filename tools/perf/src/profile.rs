//! CPU profiles: `perf` samples by function group and system call, of ours and of the floor.
//!
//! Samples by CPU clock (`cpu-clock`), because virtual machines often have no counters. The kernel's part of a call
//! graph is reliable without frame pointers. Of our own part, only the innermost address is used, with its inlined
//! functions from the line tables.

mod report;
mod samples;
mod symbols;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use redisbench_statistics::summary::median;

use crate::bench::Bench;
use crate::clients::{Client, Load};
use crate::machine::{COMMIT, COMPILER, Machine};
use crate::rounds::Rounds;
use crate::servers::{Kind, Servers};
use samples::Frame;
use symbols::Place;

/// Samples per second; not a divisor of the kernel's own timers.
const FREQUENCY: u32 = 4999;

/// One client under one load.
#[derive(Debug, Default)]
struct Profile {
    /// CPU time of the client per request in microseconds, without perf.
    cost: f64,
    /// Number of samples per group, in user code and in the kernel.
    user: BTreeMap<&'static str, u64>,
    kernel: BTreeMap<&'static str, u64>,
    /// Number of samples per stack, outermost frame first, the input of flame graphs.
    stacks: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Pair {
    load: Load,
    ours: Profile,
    floor: Profile,
}

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

impl Profile {
    /// Samples the command `line`, one of our programs.
    fn record(bench: &Bench, line: &str) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir().context("failed to create a directory for perf")?;
        let file = directory.path().join("perf.data").display().to_string();
        bench.run(&format!("perf record -q -e cpu-clock -F {FREQUENCY} -g -o {file} -- {line}"))?;
        let samples = samples::parse(&bench.run(&format!("perf script -F ip,sym,dso -i {file}"))?.output);
        let name = line.split(' ').next().unwrap_or_default();
        let own = |frame: &&Frame| frame.file.rsplit('/').next() == Some(name);
        let innermost: Vec<&Frame> = samples.iter().filter_map(|frames| frames.first()).filter(own).collect();
        let has_kernel = samples.iter().flatten().any(Frame::is_kernel);
        anyhow::ensure!(has_kernel, "perf recorded no kernel samples: check its permissions");
        let program = &innermost.first().with_context(|| format!("perf recorded no samples of {name}"))?.file;
        let places = symbols::places(bench, program, &innermost.iter().map(|frame| frame.at).collect())?;
        let mut profile = Self::default();
        for frames in &samples {
            profile.add(frames, frames.first().filter(own).map(|frame| &places[&frame.at][..]));
        }
        Ok(profile)
    }

    /// Adds a sample. `places` are those of its innermost frame, if that is in our own code.
    fn add(&mut self, frames: &[Frame], places: Option<&[Place]>) {
        let Some(first) = frames.first() else { return };
        let (groups, root, group, names) = if first.is_kernel() {
            let names = frames.iter().take_while(|frame| frame.is_kernel()).map(|frame| frame.symbol.clone());
            (&mut self.kernel, "kernel", samples::kernel_group(frames), names.collect::<Vec<_>>())
        } else if let Some(places) = places {
            // Frames outside the engine are not informative.
            let inner = places.iter().take_while(|(_, source)| !source.ends_with("/engine/handle.rs"));
            (&mut self.user, "user", samples::user_group(places), inner.map(|(name, _)| name.clone()).collect())
        } else {
            (&mut self.user, "user", samples::library_group(first), vec![first.symbol.clone()])
        };
        *groups.entry(group).or_default() += 1;
        let names = names.iter().rev().map(String::as_str);
        let stack = [root, group].into_iter().chain(names).map(|name| name.replace([';', ' '], "_"));
        *self.stacks.entry(stack.collect::<Vec<_>>().join(";")).or_default() += 1;
    }

    fn count(&self) -> u64 {
        self.user.values().chain(self.kernel.values()).sum()
    }
}
