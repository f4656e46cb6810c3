//! A benchmark is a plan of trials: all of them are compiled and checked before the first starts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use redisbench_wire::plan::{Client, Library, Target, TrialPlan, Workload};
use sha2::{Digest as _, Sha256};

use super::preset;
use super::search::{SearchPlan, SearchTrial, of_searches};
use super::sweep::{self, Cell, CellRun, Complaints};
use crate::api::status::{Setting, TrialLine};
use crate::api::sweep::SweepSpec;
use crate::api::{
    Problem, RedisBenchmarkSpec, RedisBenchmarkStatus, Validated, admission, check_search, combinations, json_bytes,
    validate,
};
use crate::human;

/// Maximum bytes of a trial's setting in a status.
const SETTING_BYTES: usize = 256;

/// Maximum bytes of the plans and specs of all trials, as JSON. The operator keeps them in memory, with those of all other benchmarks. A
/// workload that trials share counts once.
const ALL_BYTES: usize = 8 << 20;

/// All trials of a benchmark, in the order in which they run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// At least one; for searches the first of each, whose index is only right for the first search.
    trials: Vec<Trial>,
    /// Rules for further trials, in the order in which the searches run; empty without a search.
    searches: Vec<(Kind, SearchPlan)>,
    /// Time between two trials.
    interval: Duration,
    hash: String,
}

/// One measured execution at fixed parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Its place in the plan, from 0.
    pub index: u32,
    /// Number of trials of the plan; for searches, the maximum.
    pub of: u32,
    pub kind: Kind,
    pub spec: Validated,
    /// Pause before it, during which no shard has a connection.
    pub interval: Duration,
    /// Its role in a search.
    pub search: Option<SearchTrial>,
}

/// Role of a trial among the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// Preset, target, client and swept values.
    pub setting: Setting,
    /// It belongs to the first block of a comparison.
    pub cold: bool,
    /// Number of its cell, from 0. Repeats of each other share a cell. Cells are in the order of the sweep's lists, with presets varying
    /// fastest.
    pub cell: u32,
    /// Number of the repeat within its cell, from 0; none if there is only one.
    pub repeat: Option<u32>,
}

impl Kind {
    /// Its parts as text, for people.
    pub fn parts(&self) -> Vec<String> {
        self.setting.parts(self.repeat, |field| field)
    }
}

/// A trial without its place in the plan.
struct Draft {
    kind: Kind,
    spec: Validated,
}

/// The workloads of the trials so far, by the swept values that make them differ.
#[derive(Default)]
struct Workloads(BTreeMap<Vec<(String, String)>, Arc<Workload>>);

impl Workloads {
    /// Makes `plan`, of a trial of `cell`, share the workload of an earlier trial if they are equal.
    fn share(&mut self, cell: &Cell, plan: &mut Arc<TrialPlan>) {
        let swept = cell.parameters.iter().filter(|(field, _)| sweep::is_of_the_workload(field));
        let swept: Vec<_> = swept.cloned().collect();
        if let Some(known) = self.0.get(&swept).filter(|known| **known == plan.workload) {
            Arc::make_mut(plan).workload = Arc::clone(known);
        } else {
            self.0.insert(swept, Arc::clone(&plan.workload));
        }
    }
}

/// Compiles and checks the spec of a benchmark called `name`.
///
/// # Errors
/// All problems of the spec, in the order of the fields; and a cell of a sweep that could not run.
pub fn compile(spec: &RedisBenchmarkSpec, name: &str) -> Result<Plan, Vec<Problem>> {
    let interval = sweep::check(spec, name)?;
    let base = Cell::only(spec);
    let count = usize::try_from(combinations(spec)).unwrap_or(usize::MAX);
    let sharing = sharing(spec, count);
    // The spec must be valid by itself, too, because the API server validates it that way.
    let several =
        spec.repeats.count > 1 || spec.subjects().len() > 1 || !spec.sweep.is_empty() || spec.workload.preset.len() > 1;
    if !spec.sweep.is_empty() {
        let base = sweep::of_subjects(std::slice::from_ref(&base));
        // Before the cells are made: all of them together might not fit into memory.
        Arrangement { name, repeats: 1, several: false, count, sharing }.trials(&base[0].spec, &base)?;
    }
    let settings = if spec.sweep.is_empty() { vec![base] } else { sweep::cells(spec)? };
    let cells = if spec.subjects().len() > 1 { sweep::of_subjects(&settings) } else { settings };
    let arrangement = Arrangement { name, repeats: spec.repeats.count, several, count, sharing };
    if spec.search.is_some() {
        return Ok(Plan::of_searches(arrangement.searches(spec, &cells)?, interval));
    }
    Ok(Plan::of(arrangement.drafts(spec, &cells)?, interval))
}

/// Number of trials that share each workload, if there are `count` trials.
fn sharing(spec: &RedisBenchmarkSpec, count: usize) -> usize {
    // Each trial of a preset has keys of its own.
    if !spec.workload.preset.is_empty() {
        return 1;
    }
    let changes = |entry: &&SweepSpec| entry.fields().any(|(field, ..)| sweep::is_of_the_workload(field));
    let different: usize = spec.sweep.iter().filter(changes).map(|entry| entry.values.len()).product();
    (count / different.max(1)).max(1)
}

/// The arrangement of cells as trials.
struct Arrangement<'a> {
    name: &'a str,
    repeats: u32,
    /// There is more than one trial, so each needs an end.
    several: bool,
    /// Number of trials of the whole benchmark, or of its searches.
    count: usize,
    /// Number of these that share each workload.
    sharing: usize,
}

impl Arrangement<'_> {
    /// Checks all trials or searches.
    fn trials(&self, spec: &RedisBenchmarkSpec, cells: &[Cell]) -> Result<(), Vec<Problem>> {
        if spec.search.is_some() { self.searches(spec, cells).map(drop) } else { self.drafts(spec, cells).map(drop) }
    }

    /// A trial for each kind of the cells.
    fn drafts(&self, spec: &RedisBenchmarkSpec, cells: &[Cell]) -> Result<Vec<Draft>, Vec<Problem>> {
        let mut workloads = Workloads::default();
        self.each(spec, cells, |cell, kind, drafts: &[Draft]| {
            let spec = match drafts.iter().find(|draft| draft.kind.cell == kind.cell) {
                // Repeats share a spec.
                Some(same) if kind.setting.preset.is_none() => same.spec.clone(),
                _ => self.validated(cell, &cell.spec, &kind, drafts.len(), &mut workloads)?,
            };
            Ok(Draft { kind, spec })
        })
    }

    /// A search for each kind of the cells.
    fn searches(&self, spec: &RedisBenchmarkSpec, cells: &[Cell]) -> Result<Vec<(Kind, SearchPlan)>, Vec<Problem>> {
        let mut problems = Vec::new();
        if let Some(search) = spec.search.as_ref().filter(|_| combinations(spec) > 1) {
            // Problems of the search itself are the same in each cell.
            check_search(spec, search, &mut problems);
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut workloads = Workloads::default();
        self.each(spec, cells, |cell, kind, searches: &[(Kind, SearchPlan)]| {
            // The steps set what a search must not have, so the cell is checked before.
            let found = admission(&cell.spec, self.name);
            if !found.is_empty() {
                return Err(found);
            }
            preset::searchable(kind.setting.preset.as_deref())?;
            let place = searches.len();
            let check = |step: &RedisBenchmarkSpec| self.validated(cell, step, &kind, place, &mut workloads);
            let plan = SearchPlan::compile(spec, &cell.spec, check)?;
            Ok((kind, plan))
        })
    }

    /// Per repeat all cells in order, and per cell its presets in order. `make` also gets what was made before.
    fn each<T>(
        &self,
        spec: &RedisBenchmarkSpec,
        cells: &[Cell],
        mut make: impl FnMut(&Cell, Kind, &[T]) -> Result<T, Vec<Problem>>,
    ) -> Result<Vec<T>, Vec<Problem>> {
        let mut complaints = Complaints::default();
        for cell in cells.iter().filter(|_| spec.search.is_none()) {
            complaints.add(cell, self.general_problems(&cell.spec));
        }
        let presets: Vec<Option<&String>> = match spec.workload.preset.as_slice() {
            [] => vec![None],
            presets => presets.iter().map(Some).collect(),
        };
        let mut all = Vec::new();
        for CellRun { cell: place, repeat, cold } in sweep::runs(spec, cells.len(), self.repeats) {
            let cell = &cells[place];
            for (within, preset) in presets.iter().enumerate() {
                let kind = Kind {
                    setting: Setting {
                        preset: preset.cloned(),
                        target: cell.target.as_ref().map(|(_, name)| name.clone()),
                        client: cell.client.as_ref().map(|(_, name)| name.clone()),
                        parameters: cell.parameters.iter().cloned().collect(),
                    },
                    cold,
                    cell: u32::try_from(place * presets.len() + within).unwrap_or(u32::MAX),
                    repeat: (self.repeats > 1).then_some(repeat),
                };
                match make(cell, kind, &all) {
                    Ok(one) => all.push(one),
                    Err(found) => complaints.add(cell, found),
                }
            }
        }
        let problems = complaints.all();
        if problems.is_empty() { Ok(all) } else { Err(problems) }
    }

    /// Problems of a cell that do not depend on the trial.
    fn general_problems(&self, cell: &RedisBenchmarkSpec) -> Vec<Problem> {
        let mut problems = Vec::new();
        let load = &cell.load;
        let ends = [load.duration.is_some(), load.requests.is_some(), load.requests_per_connection.is_some()];
        if self.several && !ends.contains(&true) && load.stages.is_empty() {
            let rated = cell.workload.operations.iter().any(|operation| operation.rate.is_some());
            let message = if cell.workload.trace.is_some() {
                "lasts as long as the recording, which several trials do not support: set load.duration, during which it repeats"
            } else if rated {
                "has no end, so the first of several trials would never end: set load.duration"
            } else {
                "has no end, so the first of several trials would never end: set load.duration or load.requests"
            };
            problems.push(Problem::new("spec.load", "", message));
        }
        problems
    }

    /// Checks `spec`, which is of `cell`, as the trial or search at `place`. Its plan shares one of `workloads`, or adds its own.
    fn validated(
        &self,
        cell: &Cell,
        spec: &RedisBenchmarkSpec,
        kind: &Kind,
        place: usize,
        workloads: &mut Workloads,
    ) -> Result<Validated, Vec<Problem>> {
        let mut validated = match &kind.setting.preset {
            Some(preset) => preset::trial(spec, self.name, place, preset)?,
            None => validate(spec, self.name)?,
        };
        let index = cell.target.as_ref().map_or(0, |(index, _)| *index);
        Arc::make_mut(&mut validated.plan).target.index = u32::try_from(index).unwrap_or(u32::MAX);
        workloads.share(cell, &mut validated.plan);
        let workload = json_bytes(validated.plan.workload.as_ref());
        let own = json_bytes(validated.plan.as_ref()) - workload + json_bytes(validated.spec.as_ref());
        let bytes = own + workload.div_ceil(self.sharing);
        let room = ALL_BYTES / self.count.max(1);
        if bytes > room {
            let message = format!(
                "plan and spec of a trial take {bytes} bytes, and each of {} trials may take {room}: shorten or remove \
                 commands, scripts or functions, lower preload.data[].elements, or have fewer trials",
                self.count
            );
            return Err(vec![Problem::new("spec.workload", "", message)]);
        }
        Ok(validated)
    }
}

impl Plan {
    fn of(drafts: Vec<Draft>, interval: Duration) -> Self {
        let of = u32::try_from(drafts.len()).unwrap_or(u32::MAX);
        let place = |(index, draft): (u32, Draft)| {
            let Draft { kind, spec } = draft;
            let interval = if index == 0 { Duration::ZERO } else { interval };
            Trial { index, of, kind, spec, interval, search: None }
        };
        let trials: Vec<_> = (0..).zip(drafts).map(place).collect();
        let hash = hash(&trials, &[], interval);
        Self { trials, searches: Vec::new(), interval, hash }
    }

    fn of_searches(searches: Vec<(Kind, SearchPlan)>, interval: Duration) -> Self {
        let of: usize = searches.iter().map(|(_, search)| search.most_steps()).sum();
        let of = u32::try_from(of).unwrap_or(u32::MAX);
        let first = |(kind, search): &(Kind, SearchPlan)| step((0, of), kind, search.first(), interval);
        let trials: Vec<_> = searches.iter().map(first).collect();
        let hash = hash(&trials, &searches, interval);
        Self { trials, searches, interval, hash }
    }

    /// Directs the same trials at another target.
    pub fn retarget(&mut self, change: impl Fn(&mut Target)) {
        self.trials.iter_mut().for_each(|trial| change(&mut Arc::make_mut(&mut trial.spec.plan).target));
        self.searches.iter_mut().for_each(|(_, search)| search.retarget(&change));
        self.hash = hash(&self.trials, &self.searches, self.interval);
    }

    /// Returns whether a trial needs a client library.
    pub fn needs_clients(&self) -> bool {
        let needs = |client: &Client| client.library != Library::Engine;
        self.trials.iter().any(|trial| trial.spec.plan.client.as_ref().is_some_and(needs))
    }

    /// The names of the drivers that trials need, each once.
    pub fn drivers(&self) -> BTreeSet<&str> {
        let clients = self.trials.iter().filter_map(|trial| trial.spec.plan.client.as_ref());
        let drivers = clients.filter_map(|client| match &client.library {
            Library::Driver { name } => Some(name.as_str()),
            _ => None,
        });
        drivers.collect()
    }

    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The first trial of each target, in the order of `spec.targets`.
    pub fn by_target(&self) -> Vec<&Validated> {
        let mut found = BTreeMap::new();
        for Trial { spec, .. } in &self.trials {
            found.entry(spec.plan.target.index).or_insert(spec);
        }
        found.into_values().collect()
    }

    /// The trial at `index`, once those of `lines` have finished; only a search depends on these. None if there is no such trial.
    pub fn trial(&self, index: u32, lines: &[TrialLine]) -> Option<Trial> {
        if self.searches.is_empty() {
            return self.trials.get(index as usize).cloned();
        }
        let before: Vec<_> = lines.iter().filter(|line| line.index < index).cloned().collect();
        if before.len() != index as usize || index >= self.count() {
            return None;
        }
        let steps = of_searches(&before);
        self.searches.iter().find_map(|(kind, search)| {
            let is_own = |lines: &&Vec<TrialLine>| {
                lines.first().is_some_and(|first| (first.cell, first.repeat) == (kind.cell, kind.repeat))
            };
            let own = steps.iter().find(is_own).map_or(&[][..], Vec::as_slice);
            search.next(own).map(|next| step((index, self.count()), kind, next, self.interval))
        })
    }

    /// Sets the setting of the current trial in `status`, if there are several.
    pub fn name_present(&self, status: &mut RedisBenchmarkStatus) {
        let Some(present) = status.trial.as_mut().filter(|present| present.of > 1) else { return };
        let trial = self.trial(present.index, &status.trials);
        present.setting = trial.map(|trial| trial.setting()).filter(|setting| !setting.is_empty());
    }

    /// Number of trials; for a search, the maximum.
    pub fn count(&self) -> u32 {
        self.trials.first().map_or(0, |trial| trial.of)
    }

    /// Bytes of the plans and specs of its trials, as JSON. Those that trials share count once.
    pub fn json_bytes(&self) -> usize {
        let (mut plans, mut workloads, mut specs) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let bytes = |Trial { spec: Validated { plan, spec, .. }, .. }: &Trial| {
            let mut bytes = 0;
            if plans.insert(Arc::as_ptr(plan)) {
                bytes += json_bytes(plan.as_ref());
                if !workloads.insert(Arc::as_ptr(&plan.workload)) {
                    bytes -= json_bytes(plan.workload.as_ref());
                }
            }
            if specs.insert(Arc::as_ptr(spec)) {
                bytes += json_bytes(spec.as_ref());
            }
            bytes
        };
        self.trials.iter().map(bytes).sum()
    }

    /// Identifies the plan: two plans with the same hash run the same trials.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The trial with the most shards, which sizes the Job; the first of several.
    pub fn largest(&self) -> &Validated {
        let largest = self.trials.iter().rev().max_by_key(|trial| trial.spec.plan.shards);
        // There is at least one.
        &largest.unwrap_or(&self.trials[0]).spec
    }

    /// Maximum time of all trials, without preloads and restarts.
    pub fn longest(&self) -> Duration {
        let longest = |trial: &Trial| {
            let Validated { shards, plan, .. } = &trial.spec;
            let measured = Duration::from_nanos(plan.warmup_nanoseconds + plan.bound.longest_nanoseconds());
            trial.interval + shards.prepare_timeout + measured + shards.collect_timeout
        };
        // The first step of a search has the lowest rate and takes longest.
        let steps = |place: usize| self.searches.get(place).map_or(1, |(_, search)| search.most_steps());
        let interval = if self.searches.is_empty() { Duration::ZERO } else { self.interval };
        let all = self.trials.iter().enumerate();
        all.map(|(place, trial)| (longest(trial) + interval) * u32::try_from(steps(place)).unwrap_or(u32::MAX)).sum()
    }
}

impl Trial {
    /// Its difference from the other trials, for people, such as `get, load.connections=8, repeat 2`.
    pub fn setting(&self) -> String {
        let rate = self.search.as_ref().map(|search| human::exact_rate(search.rate));
        let setting = rate.into_iter().chain(self.kind.parts()).collect::<Vec<_>>().join(", ");
        human::shorten(&setting, SETTING_BYTES).into_owned()
    }

    /// Its title for people, such as `trial 2 of 10, get`; empty if it is the only one.
    pub fn title(&self) -> String {
        if self.of == 1 {
            return String::new();
        }
        let place = match &self.search {
            Some(search) => format!("{} at {}", human::place(self.index, None), human::exact_rate(search.rate)),
            None => human::place(self.index, Some(self.of)),
        };
        std::iter::once(place).chain(self.kind.parts()).collect::<Vec<_>>().join(", ")
    }
}

/// A step of the search of `kind`, at its index of the most.
fn step((index, of): (u32, u32), kind: &Kind, (search, spec): (SearchTrial, Validated), interval: Duration) -> Trial {
    let interval = if index == 0 { Duration::ZERO } else { interval };
    Trial { index, of, kind: kind.clone(), spec, interval, search: Some(search) }
}

/// Covers the plan of each trial.
fn hash(trials: &[Trial], searches: &[(Kind, SearchPlan)], interval: Duration) -> String {
    let mut hasher = Sha256::new();
    for (_, search) in searches {
        hasher.update(search.identity());
        hasher.update(interval.as_nanos().to_le_bytes());
    }
    for trial in trials {
        hasher.update(trial.spec.plan.hash("", trial.index));
        hasher.update(trial.interval.as_nanos().to_le_bytes());
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
