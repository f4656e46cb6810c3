//! A benchmark is a plan of trials: all of them are compiled, and checked, before the first starts.

use std::time::Duration;

use redisbench_wire::plan::{ShardPlan, Target};
use sha2::{Digest as _, Sha256};

use super::{plans_of, preset, shard_plan};
use crate::api::{Problem, RedisBenchmarkSpec, Validated, validate};

/// The most trials of a benchmark. Its status has a line for each, and must fit into what the API server keeps.
pub const MOST_TRIALS: u64 = 250;

/// All trials of a benchmark, in the order in which they run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// At least one.
    trials: Vec<Trial>,
    hash: String,
}

/// One measured execution at fixed parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Its place in the plan, from 0.
    pub index: u32,
    /// How many trials the plan has.
    pub of: u32,
    /// What it is one of.
    pub kind: Kind,
    /// What it runs.
    pub spec: Validated,
    /// How long nobody has a connection before it.
    pub interval: Duration,
}

/// What a trial is among the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// The entry of `workload.preset` that it runs.
    pub preset: Option<String>,
}

/// A trial before it has its place.
struct Draft {
    kind: Kind,
    spec: Validated,
}

/// Compiles and checks the spec of a benchmark called `name`.
///
/// # Errors
/// Everything that is wrong with it, in the order of the fields; and a plan of more than [`MOST_TRIALS`].
pub fn compile(spec: &RedisBenchmarkSpec, name: &str) -> Result<Plan, Vec<Problem>> {
    let drafts = if spec.workload.preset.is_empty() {
        vec![Draft { kind: Kind::default(), spec: validate(spec, name)? }]
    } else {
        presets(spec, name)?
    };
    Ok(Plan::of(drafts))
}

/// A trial for each entry of `workload.preset`.
fn presets(spec: &RedisBenchmarkSpec, name: &str) -> Result<Vec<Draft>, Vec<Problem>> {
    let wanted = &spec.workload.preset;
    if wanted.len() as u64 > MOST_TRIALS {
        let message = format!("makes {} trials, and {MOST_TRIALS} is the most: remove some", wanted.len());
        return Err(vec![Problem::new("spec.workload.preset", "", message)]);
    }
    let mut problems = preset::check(spec);
    let mut drafts = Vec::with_capacity(wanted.len());
    for (trial, preset) in wanted.iter().enumerate() {
        match preset::trial(spec, name, trial, preset) {
            Ok(validated) => drafts.push(Draft { kind: Kind { preset: Some(preset.clone()) }, spec: validated }),
            // What is wrong with all of them is said once.
            Err(found) => {
                for problem in found {
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                }
            }
        }
    }
    if problems.is_empty() { Ok(drafts) } else { Err(problems) }
}

impl Plan {
    fn of(drafts: Vec<Draft>) -> Self {
        let of = u32::try_from(drafts.len()).unwrap_or(u32::MAX);
        let place = |(index, draft): (u32, Draft)| {
            let Draft { kind, spec } = draft;
            Trial { index, of, kind, spec, interval: Duration::ZERO }
        };
        let trials: Vec<_> = (0..).zip(drafts).map(place).collect();
        let hash = hash(&trials);
        Self { trials, hash }
    }

    /// The same trials against another target.
    pub fn retarget(&mut self, change: impl Fn(&mut Target)) {
        self.trials.iter_mut().for_each(|trial| change(&mut trial.spec.target));
        self.hash = hash(&self.trials);
    }

    /// All of them, in their order.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The trial at `index`.
    pub fn trial(&self, index: u32) -> Option<&Trial> {
        self.trials.get(index as usize)
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.trials.len()).unwrap_or(u32::MAX)
    }

    /// Says which plan it is: two plans with one hash run the same.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The trial with the most shards, by which the pods are made; of several, the first.
    pub fn largest(&self) -> &Validated {
        let largest = self.trials.iter().rev().max_by_key(|trial| trial.spec.shards.count);
        // There is one at least.
        &largest.unwrap_or(&self.trials[0]).spec
    }

    /// The longest that all trials may take, but for preloads and restarts.
    pub fn longest(&self) -> Duration {
        let longest = |trial: &Trial| {
            let shards = &trial.spec.shards;
            let measured = trial.spec.warmup + trial.spec.bound.longest();
            trial.interval + shards.prepare_timeout + measured + shards.collect_timeout
        };
        self.trials.iter().map(longest).sum()
    }
}

impl Trial {
    /// The plans of its shards in the run `run`, in the order of their indices.
    pub fn plans(&self, run: &str) -> Vec<ShardPlan> {
        plans_of(&self.spec, run, self.index)
    }

    /// What it is, for people, such as `trial 2 of 10, get`; empty for an only one.
    pub fn title(&self) -> String {
        if self.of == 1 {
            return String::new();
        }
        let mut title = format!("trial {} of {}", self.index + 1, self.of);
        if let Some(preset) = &self.kind.preset {
            title.push_str(", ");
            title.push_str(preset);
        }
        title
    }
}

/// Over what the first shard does in each trial: the other shards' plans follow from it.
fn hash(trials: &[Trial]) -> String {
    let mut hasher = Sha256::new();
    for trial in trials {
        hasher.update(shard_plan(&trial.spec, "", trial.index, 0).hash());
        hasher.update(trial.interval.as_nanos().to_le_bytes());
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[path = "trials_tests.rs"]
mod tests;
