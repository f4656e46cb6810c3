//! A profile from the samples of one run.

use std::collections::BTreeMap;

use anyhow::Context as _;

use super::samples::{self, Frame};
use super::symbols::{self, Place};
use crate::bench::Bench;
use crate::clients::Load;

/// Samples per second; not a divisor of the kernel's own timers.
const FREQUENCY: u32 = 4999;

/// One client under one load.
#[derive(Debug, Default)]
pub struct Profile {
    /// CPU time of the client per request in microseconds, without perf.
    pub cost: f64,
    /// Number of samples per group, in user code and in the kernel.
    pub user: BTreeMap<&'static str, u64>,
    pub kernel: BTreeMap<&'static str, u64>,
    /// Number of samples per stack, outermost frame first, the input of flame graphs.
    pub stacks: BTreeMap<String, u64>,
}

/// Ours and the floor under the same load.
#[derive(Debug)]
pub struct Pair {
    pub load: Load,
    pub ours: Profile,
    pub floor: Profile,
}

impl Profile {
    /// Samples the command `line`, one of our programs.
    pub fn record(bench: &Bench, line: &str) -> anyhow::Result<Self> {
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
            let inner = places.iter().take_while(|(_, source)| !source.ends_with("/engine/running.rs"));
            (&mut self.user, "user", samples::user_group(places), inner.map(|(name, _)| name.clone()).collect())
        } else {
            (&mut self.user, "user", samples::library_group(first), vec![first.symbol.clone()])
        };
        *groups.entry(group).or_default() += 1;
        let names = names.iter().rev().map(String::as_str);
        let stack = [root, group].into_iter().chain(names).map(|name| name.replace([';', ' '], "_"));
        *self.stacks.entry(stack.collect::<Vec<_>>().join(";")).or_default() += 1;
    }

    pub fn count(&self) -> u64 {
        self.user.values().chain(self.kernel.values()).sum()
    }
}
