//! CPU profiles: `perf` samples by function group and system call, of ours and of the floor.
//!
//! Samples by CPU clock (`cpu-clock`), because virtual machines often have no counters. The kernel's part of a call
//! graph is reliable without frame pointers. Of our own part, only the innermost address is used, with its inlined
//! functions from the line tables.

mod report;
mod samples;
mod symbols;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use crate::clients::{Bench, Load, Operation, borrowed};
use crate::machine::{self, Machine};
use crate::process::run;
use crate::rows::{Rounds, Turn};
use crate::servers::{Kind, Servers};
use crate::table::median;
use samples::Frame;

const LIMIT: Duration = Duration::from_secs(120);
/// Samples per second; not a divisor of the kernel's own timers.
const FREQUENCY: &str = "4999";

/// One client under one load.
#[derive(Debug)]
struct Profile {
    /// CPU time of the client per request in microseconds, without perf.
    cost: f64,
    /// Number of samples per group, in user code and in the kernel.
    user: BTreeMap<&'static str, u64>,
    kernel: BTreeMap<&'static str, u64>,
    /// Number of samples per stack, outermost frame first, the input of flame graphs.
    stacks: BTreeMap<String, u64>,
}

/// A load and its two profiles.
#[derive(Debug)]
struct Pair {
    load: Load,
    ours: Profile,
    floor: Profile,
}

/// Profiles, and prints and writes the result.
///
/// # Errors
/// If something cannot be measured or written.
pub fn profile(bench: &Bench, write: Option<&Path>, stacks: Option<&Path>) -> anyhow::Result<()> {
    let machine = Machine::look(bench, &[machine::COMMIT, machine::COMPILER, machine::PERF])?;
    println!("{machine}");
    // About three seconds for our client.
    let loads = [
        (1, Operation::Get, 400_000),
        (16, Operation::Get, 6_000_000),
        (64, Operation::Get, 20_000_000),
        (16, Operation::Set, 6_000_000),
    ];
    let mut pairs = Vec::new();
    for (pipeline, operation, requests) in loads {
        let load = Load::closed(operation, pipeline, bench.requests(requests));
        let servers = Servers::start(bench, Kind::Null(1), &bench.server())?;
        let turns: Vec<Turn<'_>> = vec![
            ("ours", Box::new(|| bench.ours(&servers, &load, &bench.client()))),
            ("floor", Box::new(|| bench.floor(&servers, &load))),
        ];
        let rounds = Rounds::run(bench, turns)?;
        let cost = |index| median(&rounds.client(index)).unwrap_or(0.0);
        let ours = sampled(bench, &bench.drive(&servers, &load)?, cost(0))?;
        let floor = sampled(bench, &bench.floor_words(&servers, &load)?, cost(1))?;
        let pair = Pair { load, ours, floor };
        println!("{}", report::section(&pair));
        pairs.push(pair);
    }
    if let (Some(path), Some(pair)) = (stacks, pairs.get(1)) {
        let text: String = pair.ours.stacks.iter().map(|(stack, count)| format!("{stack} {count}\n")).collect();
        std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    if let Some(path) = write {
        let text = report::document(&machine, bench, &pairs);
        std::fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))?;
        println!("written to {}", path.display());
    }
    Ok(())
}

fn sampled(bench: &Bench, words: &[String], cost: f64) -> anyhow::Result<Profile> {
    let directory = tempfile::tempdir().context("failed to create a directory for perf")?;
    let file = directory.path().join("perf.data").to_string_lossy().into_owned();
    let record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", FREQUENCY, "-g", "-o", &file, "--"];
    run(&[record.as_slice(), &borrowed(words)].concat(), &bench.client(), LIMIT).context("failed to sample")?;
    let text = run(&["perf", "script", "-F", "ip,sym,dso", "-i", &file], &bench.server(), LIMIT)?.output;
    let samples = samples::parse(&text);
    anyhow::ensure!(
        samples.iter().flatten().any(Frame::is_kernel),
        "perf recorded no kernel samples: check its permissions"
    );
    let program = Path::new(&words[0]).canonicalize().context("failed to find the program that was sampled")?;
    let program = program.to_string_lossy();
    let own = |frames: &&Vec<Frame>| frames.first().filter(|frame| frame.file == program).map(|frame| frame.at);
    let offsets: BTreeSet<u64> = samples.iter().filter_map(|frames| own(&frames)).collect();
    let places = symbols::places(&program, &offsets)?;
    Ok(grouped(&samples, &program, &places, cost))
}

/// Sorts samples into groups.
fn grouped(samples: &[Vec<Frame>], program: &str, places: &HashMap<u64, samples::Places>, cost: f64) -> Profile {
    let mut profile = Profile { cost, user: BTreeMap::new(), kernel: BTreeMap::new(), stacks: BTreeMap::new() };
    for frames in samples {
        let Some(first) = frames.first() else { continue };
        let (groups, root, group, names) = if first.is_kernel() {
            let names = frames.iter().take_while(|frame| frame.is_kernel()).map(|frame| frame.symbol.clone());
            (&mut profile.kernel, "kernel", samples::kernel_group(frames), names.collect::<Vec<_>>())
        } else if first.file == program {
            let nothing = Vec::new();
            let places = places.get(&first.at).unwrap_or(&nothing);
            // Frames outside the engine are not informative.
            let inner = places.iter().take_while(|(_, source)| !source.ends_with("/engine/handle.rs"));
            let names = inner.map(|(name, _)| name.clone());
            (&mut profile.user, "user", samples::user_group(places), names.collect())
        } else {
            (&mut profile.user, "user", samples::library_group(first), vec![first.symbol.clone()])
        };
        *groups.entry(group).or_default() += 1;
        let clean = |name: &String| name.replace([';', ' '], "_");
        let frames = names.iter().rev().map(clean);
        let stack: Vec<String> = [root.to_owned(), clean(&group.to_owned())].into_iter().chain(frames).collect();
        *profile.stacks.entry(stack.join(";")).or_default() += 1;
    }
    profile
}

impl Profile {
    fn count(&self) -> u64 {
        self.user.values().sum::<u64>() + self.kernel.values().sum::<u64>()
    }
}
