//! Cells of a sweep: one spec for each combination of values, and the order in which they run.

use std::time::Duration;

use crate::api::client::ClientSpec;
use crate::api::repeats::RepeatsSpec;
use crate::api::sweep::{SweepOrder, set};
use crate::api::target::TargetSpec;
use crate::api::{GoDuration, Problem, RedisBenchmarkSpec, admission, check_sweep, check_swept_operations, validate};

/// Maximum interval between two trials.
const LONGEST_INTERVAL: Duration = Duration::from_secs(3600);

/// Maximum reported problems of single cells.
const TOLD: usize = 5;

/// One combination of the values of a sweep.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// The swept fields with their values, in the order of the sweep.
    pub parameters: Vec<(String, String)>,
    /// Index and name of the target, if there are several.
    pub target: Option<(usize, String)>,
    /// Index and name of the client, if there are several.
    pub client: Option<(usize, String)>,
    /// A spec that makes one trial for each of its presets.
    pub spec: RedisBenchmarkSpec,
}

impl Cell {
    /// The only cell of a spec without a sweep.
    pub(super) fn only(spec: &RedisBenchmarkSpec) -> Self {
        let mut own = spec.clone();
        own.repeats = RepeatsSpec::default();
        own.sweep.clear();
        own.sweep_order = SweepOrder::default();
        own.comparison = None;
        Self { parameters: Vec::new(), target: None, client: None, spec: own }
    }

    /// Its values for people, such as `load.pipeline=10, shards.count=2`.
    pub(super) fn describe(&self) -> String {
        let values: Vec<_> = self.parameters.iter().map(|(field, value)| format!("{field}={value}")).collect();
        values.join(", ")
    }
}

/// Returns whether a swept field changes the workload.
pub(super) fn is_of_the_workload(field: &str) -> bool {
    field.starts_with("workload.")
}

/// Checks the spec as the API server does, and what it does not check of repeats and sweep. Returns the time between two trials.
pub(super) fn check(spec: &RedisBenchmarkSpec, name: &str) -> Result<Duration, Vec<Problem>> {
    let one_cell = spec.sweep.is_empty() && spec.search.is_none() && spec.workload.preset.is_empty();
    // Of a single setting, all problems are reported at once.
    let mut problems = if one_cell && spec.subjects().len() == 1 {
        validate(spec, name).err().unwrap_or_default()
    } else {
        admission(spec, name)
    };
    problems.extend(check_sweep(&spec.sweep));
    problems.extend(check_swept_operations(&spec.sweep, spec.workload.operations.len()));
    let interval = spec.repeats.interval.parse().ok().filter(|interval| *interval <= LONGEST_INTERVAL);
    if interval.is_none() {
        let message = format!("must be from 0s to {}", GoDuration::from(LONGEST_INTERVAL));
        problems.push(Problem::new("spec.repeats.interval", &spec.repeats.interval, message));
    }
    match interval {
        Some(interval) if problems.is_empty() => Ok(interval),
        _ => Err(problems),
    }
}

/// All cells, in the order of the lists: the last one varies fastest.
pub(super) fn cells(spec: &RedisBenchmarkSpec) -> Result<Vec<Cell>, Vec<Problem>> {
    let base = Cell::only(spec);
    let unreadable = |error: serde_json::Error| vec![Problem::new("spec.sweep", "", error.to_string())];
    let plain = serde_json::to_value(&base.spec).map_err(unreadable)?;
    let mut cells = vec![(Vec::new(), plain)];
    for entry in &spec.sweep {
        let each = cells.iter().flat_map(|(parameters, json)| {
            (0..entry.values.len()).map(move |place| {
                let (mut parameters, mut json) = (parameters.clone(), json.clone());
                for (field, value) in entry.row(place) {
                    parameters.push((field.to_owned(), value.to_string()));
                    set(&mut json, field, value);
                }
                (parameters, json)
            })
        });
        cells = each.collect();
    }
    let read = |(parameters, json)| {
        Ok(Cell { parameters, target: None, client: None, spec: serde_json::from_value(json).map_err(unreadable)? })
    };
    cells.into_iter().map(read).collect()
}

/// Splits each of `cells` by what is compared; the subjects of a cell are consecutive.
pub(super) fn of_subjects(cells: &[Cell]) -> Vec<Cell> {
    let of_cell = |base: &Cell| -> Vec<Cell> {
        if base.spec.load.clients.len() > 1 {
            let clients = base.spec.load.clients.iter().enumerate();
            let cell = |(index, client): (usize, &ClientSpec)| {
                let mut spec = base.spec.clone();
                spec.load.clients = vec![client.clone()];
                Cell { client: Some((index, client.name.clone())), spec, ..base.clone() }
            };
            return clients.map(cell).collect();
        }
        let targets = base.spec.targets.iter().enumerate();
        let cell = |(index, target): (usize, &TargetSpec)| {
            let spec = RedisBenchmarkSpec { targets: vec![target.clone()], ..base.spec.clone() };
            Cell { target: Some((index, target.name.clone())), spec, ..base.clone() }
        };
        targets.map(cell).collect()
    };
    cells.iter().flat_map(of_cell).collect()
}

/// One run of a cell.
pub(super) struct CellRun {
    pub cell: usize,
    pub repeat: u32,
    pub cold: bool,
}

/// The order in which `count` cells run, `repeats` times each.
pub(super) fn runs(spec: &RedisBenchmarkSpec, count: usize, repeats: u32) -> Vec<CellRun> {
    let subjects = spec.subjects().len();
    if subjects < 2 {
        let run = |cell, repeat| CellRun { cell, repeat, cold: false };
        let of_repeat = |repeat| order(spec, count, repeat).into_iter().map(move |cell| run(cell, repeat));
        return (0..repeats).flat_map(of_repeat).collect();
    }
    // One setting after another, each with all its blocks, so that compared trials run close together.
    let of_setting = |setting: usize| {
        let run = move |place: redisbench_statistics::comparison::Place| CellRun {
            cell: setting * subjects + place.subject,
            repeat: u32::try_from(place.pass).unwrap_or(u32::MAX),
            cold: place.is_cold(),
        };
        redisbench_statistics::comparison::order(subjects, repeats as usize).into_iter().map(run)
    };
    order(spec, count / subjects, 0).into_iter().flat_map(of_setting).collect()
}

/// The order in which `count` cells run in repeat `repeat`.
pub(super) fn order(spec: &RedisBenchmarkSpec, count: usize, repeat: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    if spec.sweep_order == SweepOrder::Listed {
        return order;
    }
    // Fisher-Yates shuffle. The random numbers are our own: another version of a crate must not change the plan of a run.
    let mut state = spec.workload.seed ^ (u64::from(repeat) << 56);
    for left in (2..=count).rev() {
        let chosen = (u128::from(splitmix(&mut state)) * left as u128) >> 64;
        order.swap(left - 1, usize::try_from(chosen).unwrap_or(0));
    }
    order
}

/// `SplitMix64` (Steele, Lea and Flood 2014).
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Problems of cells. With a sweep, each is reported as a problem of the sweep that names the cell.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    problems: Vec<Problem>,
    untold: usize,
}

impl Complaints {
    pub(super) fn add(&mut self, cell: &Cell, found: Vec<Problem>) {
        for problem in found {
            // A cell has a single target and a single client, so its problems name index 0.
            let renamed = |field: &str, of: &str, subject: &Option<(usize, String)>| {
                let index = subject.as_ref().map_or(0, |(index, _)| *index);
                field.replacen(&format!("{of}[0]"), &format!("{of}[{index}]"), 1)
            };
            let field = renamed(&problem.field, "spec.targets", &cell.target);
            let field = renamed(&field, "spec.load.clients", &cell.client);
            let problem = Problem { field, ..problem };
            let problem = if cell.parameters.is_empty() {
                problem
            } else {
                let value = if problem.value.is_empty() { String::new() } else { format!("{}: ", problem.value) };
                let message = format!("{}: {value}{}", problem.field, problem.message);
                Problem { field: "spec.sweep".to_owned(), value: cell.describe(), message }
            };
            // A problem of all cells is reported once.
            if self.problems.contains(&problem) {
                continue;
            }
            if !cell.parameters.is_empty() && self.problems.len() >= TOLD {
                self.untold += 1;
            } else {
                self.problems.push(problem);
            }
        }
    }

    pub(super) fn all(mut self) -> Vec<Problem> {
        if self.untold > 0 {
            let message = format!("{} more problems of other cells", self.untold);
            self.problems.push(Problem::new("spec.sweep", "", message));
        }
        self.problems
    }
}

#[cfg(test)]
mod tests;
