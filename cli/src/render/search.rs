//! The result of a search, and its steps.

use std::fmt::Write as _;

use redisbench_benchmark::api::search::{ObjectiveMetric, SearchSpec};
use redisbench_benchmark::api::status::{
    CellSearch, LimitedBy, SearchEnding, SearchResult, SearchStep, StepOutcome, TrialLine,
};
use redisbench_benchmark::human::{exact_rate, latency};
use redisbench_benchmark::quantile::Quantile;

use super::grid::{Cell, Grid};
use super::paint::{Paint, Style};
use super::trials::{GENERATOR, has_shares, last_step, share_of_generator};

/// The answer in a few words, for the first line.
pub fn answer(found: &SearchResult, paint: Paint) -> String {
    let (good, bad) = (found.last_good_per_second.map(exact_rate), found.first_bad_per_second.map(exact_rate));
    let bold = |text: &str| paint.apply(Style::Bold, text);
    match (found.ending, good, bad) {
        (Some(SearchEnding::Found), Some(good), Some(bad)) => format!("up to {}, not {bad}", bold(&good)),
        (Some(SearchEnding::Found), Some(good), None) => format!("up to {}", bold(&good)),
        (Some(SearchEnding::GeneratorLimited), Some(good), _) => {
            format!("{} or more: limited by the load generator, not the target", bold(&good))
        }
        (Some(SearchEnding::MaxPassed), Some(good), _) => format!("{} or more", bold(&good)),
        (Some(SearchEnding::MinFailed), _, Some(bad)) => format!("below {}", bold(&bad)),
        (None, Some(good), Some(bad)) => format!("between {} and {} so far", bold(&good), bold(&bad)),
        (None, Some(good), None) => format!("{} or more so far", bold(&good)),
        _ => bold("no result"),
    }
}

/// The search on one line, for the setup.
pub fn setup(search: &SearchSpec) -> String {
    let (objective, rate) = (&search.objective, &search.rate);
    let share = |basis_points: Option<u32>| f64::from(basis_points.unwrap_or_default()) / 100.0;
    let wanted = match objective.metric {
        ObjectiveMetric::ResponseTime => {
            let quantile = objective.quantile.as_deref().and_then(Quantile::parse);
            let name = quantile.map_or_else(|| "response time".to_owned(), Quantile::name);
            format!("{name} of at most {}", objective.max.as_ref().map(ToString::to_string).unwrap_or_default())
        }
        ObjectiveMetric::ErrorRate => format!("errors of at most {} %", share(objective.max_basis_points)),
        ObjectiveMetric::AchievedRate => {
            format!("an achieved rate of at least {} %", share(objective.min_basis_points))
        }
    };
    format!(
        "highest rate from {} to {} with {wanted}, tolerance {} %",
        exact_rate(rate.min),
        exact_rate(rate.max),
        f64::from(rate.tolerance_basis_points) / 100.0
    )
}

/// The result, followed by a row for each step.
pub fn table(found: &SearchResult, trials: &[TrialLine], paint: Paint) -> String {
    with_steps(&bracket(found), &notes(found), trials, paint)
}

/// A row for each of several searches, followed by one for each step.
pub fn tables(searches: &[CellSearch], trials: &[TrialLine], paint: Paint) -> String {
    with_steps(&all(searches), &notes_of_all(searches), trials, paint)
}

fn with_steps(results: &Grid, notes: &[String], trials: &[TrialLine], paint: Paint) -> String {
    let mut text = results.text(paint);
    for note in notes {
        let _ = writeln!(text, "{note}");
    }
    text.push_str(&steps(trials).text(paint));
    text
}

/// The setting and the result of each of several searches.
pub fn all(searches: &[CellSearch]) -> Grid {
    let with_targets = searches.iter().any(|search| search.setting.subject().is_some());
    let with_presets = searches.iter().any(|search| search.setting.preset.is_some());
    let with_repeats = searches.iter().any(|search| search.repeat.is_some());
    let parameters: Vec<&String> =
        searches.first().map(|one| one.setting.parameters.keys().collect()).unwrap_or_default();
    let names = [(with_targets, "subject"), (with_presets, "test")].into_iter().filter(|(with, _)| *with);
    let mut heads: Vec<&str> = names.map(|(_, name)| name).collect();
    let texts = heads.len();
    heads.extend(parameters.iter().map(|field| last_step(field)));
    heads.extend(with_repeats.then_some("repeat"));
    heads.extend(["highest rate", "failed at", "steps", "ended", "limited by"]);
    let mut grid = Grid::new("Search", &heads).left(heads.len() - 1).left(heads.len());
    for column in 1..=texts {
        grid = grid.left(column);
    }
    for (search, nth) in searches.iter().zip(1..) {
        let result = &search.result;
        let mut row = vec![Cell::from(nth.to_string())];
        row.extend(with_targets.then(|| Cell::known(search.setting.subject().map(ToOwned::to_owned))));
        row.extend(with_presets.then(|| Cell::known(search.setting.preset.clone())));
        row.extend(parameters.iter().map(|field| Cell::known(search.setting.parameters.get(*field).cloned())));
        row.extend(with_repeats.then(|| Cell::known(search.repeat.map(|repeat| (repeat + 1).to_string()))));
        row.push(highest(result).map_or_else(|| Cell::known(None), |rate| Cell::styled(rate, Style::Bold)));
        row.push(Cell::known(result.first_bad_per_second.map(exact_rate)));
        row.push(Cell::from(search.steps.to_string()));
        row.push(match result.ending {
            Some(ending @ (SearchEnding::Found | SearchEnding::MaxPassed)) => Cell::from(format!("{ending:?}")),
            Some(ending) => Cell::styled(format!("{ending:?}"), Style::Doubtful),
            None => Cell::from("unfinished"),
        });
        row.push(Cell::known(result.limited_by.map(|limit| format!("{limit:?}"))));
        grid.row(row);
    }
    grid
}

/// The rate found, or a bound; none if nothing is known.
fn highest(found: &SearchResult) -> Option<String> {
    let good = found.last_good_per_second.map(exact_rate);
    match found.ending {
        Some(SearchEnding::Found) => good,
        Some(SearchEnding::GeneratorLimited | SearchEnding::MaxPassed) | None => good.map(|good| format!(">= {good}")),
        Some(SearchEnding::MinFailed) => found.first_bad_per_second.map(|bad| format!("< {}", exact_rate(bad))),
        Some(SearchEnding::Inconclusive) => None,
    }
}

/// [`notes`] of several searches, each with its setting.
pub fn notes_of_all(searches: &[CellSearch]) -> Vec<String> {
    let of_one = |search: &CellSearch| {
        let setting = search.name();
        notes(&search.result).into_iter().map(move |note| format!("{setting}: {note}"))
    };
    searches.iter().flat_map(of_one).collect()
}

pub fn steps(trials: &[TrialLine]) -> Grid {
    let setting = |trial: &TrialLine| trial.setting.parts(trial.repeat, last_step).join(", ");
    let is_of_several = trials.iter().any(|trial| !setting(trial).is_empty());
    let with_shares = has_shares(trials);
    let mut heads = vec!["offered", "achieved", "p50", "p99", "errors", "unsent"];
    if is_of_several {
        heads.insert(0, "search");
    }
    heads.extend(with_shares.then_some(GENERATOR));
    heads.extend(["limited by", "objective"]);
    let mut grid = Grid::new("Step", &heads).left(heads.len() - 1).left(heads.len());
    if is_of_several {
        grid = grid.left(1);
    }
    for trial in trials {
        let step = trial.search.as_ref();
        let requests = trial.requests.unwrap_or_default();
        let mut row = vec![Cell::from((trial.index + 1).to_string())];
        row.extend(is_of_several.then(|| Cell::from(setting(trial))));
        row.extend([
            Cell::known(step.map(|step| exact_rate(step.rate_per_second))),
            Cell::known(trial.achieved_per_second.map(exact_rate)),
            Cell::known(trial.p50_nanoseconds.map(latency)),
            Cell::known(trial.p99_nanoseconds.map(latency)),
            Cell::unless_zero(requests.errors, Style::Bad),
            Cell::unless_zero(requests.unsent, Style::Bad),
        ]);
        row.extend(with_shares.then(|| share_of_generator(trial)));
        row.extend([
            Cell::from(step.and_then(|step| step.limited_by).map(|limit| format!("{limit:?}")).unwrap_or_default()),
            step.map_or_else(|| Cell::styled(format!("{:?}", trial.state), Style::Bad), outcome),
        ]);
        grid.row(row);
    }
    grid
}

/// The last good rate and the first bad one.
pub fn bracket(found: &SearchResult) -> Grid {
    let mut grid = Grid::new("Search", &["rate", ""]).left(2);
    if let Some(good) = found.last_good_per_second {
        let how = match found.ending {
            Some(SearchEnding::Found | SearchEnding::GeneratorLimited | SearchEnding::MaxPassed) => {
                "confirmed by three fresh trials"
            }
            None => "so far",
            Some(_) => "not confirmed",
        };
        grid.row([Cell::styled("passed", Style::Good), Cell::styled(exact_rate(good), Style::Bold), Cell::from(how)]);
    }
    if let Some(bad) = found.first_bad_per_second {
        let why = found.why.clone().unwrap_or_default();
        grid.row([Cell::styled("failed", Style::Bad), Cell::styled(exact_rate(bad), Style::Bold), Cell::from(why)]);
        if let Some(limit) = found.limited_by {
            grid.row([Cell::from(""), Cell::from(""), Cell::from(limited(limit, found.component.as_deref()))]);
        }
    }
    grid
}

/// Notes on the result.
pub fn notes(found: &SearchResult) -> Vec<String> {
    let mut notes = Vec::new();
    if found.contradicted > 0 {
        let times = if found.contradicted == 1 { "once".to_owned() } else { format!("{} times", found.contradicted) };
        notes.push(format!("A failed rate passed later ({times}): the target or the load generator is unstable"));
    }
    // Other endings are explained by the message.
    if !matches!(found.ending, Some(SearchEnding::Found)) {
        notes.push(found.message.clone());
    }
    notes
}

fn limited(limit: LimitedBy, component: Option<&str>) -> String {
    let component = component.map_or_else(String::new, |component| format!(" ({component})"));
    match limit {
        LimitedBy::Target => format!("limited by the target{component}"),
        LimitedBy::GeneratorCPU => "limited by the load generator's CPU, not by the target".to_owned(),
        LimitedBy::Client => "limited by the client under test".to_owned(),
        LimitedBy::GeneratorNetwork => format!("limited by the load generator's network{component}, not by the target"),
        LimitedBy::Connections => "limited by the connections: more in flight would be faster".to_owned(),
        LimitedBy::Rate | LimitedBy::Unknown => "the limiting factor is unknown".to_owned(),
    }
}

fn outcome(step: &SearchStep) -> Cell {
    match (step.outcome, step.confirmation) {
        (StepOutcome::Passed, None) => Cell::styled("passed", Style::Good),
        (StepOutcome::Passed, Some(nth)) => Cell::styled(format!("passed, {nth} of 3"), Style::Good),
        (StepOutcome::Failed, _) => {
            Cell::styled(format!("failed: {}", step.why.as_deref().unwrap_or_default()), Style::Bad)
        }
        (StepOutcome::Unusable, _) => {
            Cell::styled(format!("inconclusive: {}", step.why.as_deref().unwrap_or_default()), Style::Doubtful)
        }
    }
}
