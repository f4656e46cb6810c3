//! Several trials: one row each.

use std::fmt::Write as _;

use redisbench_benchmark::api::comparison::ComparisonMetric;
use redisbench_benchmark::api::preset::PRESETS;
use redisbench_benchmark::api::status::{
    CellResult, ComparisonOutcome, ComparisonResult, MetricComparison, Setting, TrialLine, TrialOutcome, VerdictValue,
};
use redisbench_benchmark::human::{are, change, count, counted, latency, rate, share};

use super::extras;
use super::grid::{Cell, Grid};
use super::paint::{Paint, Style};
use super::result::own_share;

/// Above this, in any trial, the load generator's own share of a latency is worth a column.
const SHOWN_BASIS_POINTS: u32 = 100;

/// The head of that column.
pub const GENERATOR: &str = "generator";

pub fn grid(trials: &[TrialLine]) -> Grid {
    let with_targets = trials.iter().any(|trial| trial.setting.target.is_some());
    let with_clients = trials.iter().any(|trial| trial.setting.client.is_some());
    let with_cpu = trials.iter().any(|trial| trial.cpu_per_request_nanoseconds.is_some());
    let with_presets = trials.iter().any(|trial| trial.setting.preset.is_some());
    let with_repeats = trials.iter().any(|trial| trial.repeat.is_some());
    let parameters: Vec<&String> =
        trials.first().map(|trial| trial.setting.parameters.keys().collect()).unwrap_or_default();
    let with_misses = trials.iter().any(|trial| trial.misses > Some(0) || takes(trial));
    let with_caches = trials.iter().any(|trial| trial.cache.is_some());
    let mut heads = Vec::new();
    if with_targets || with_clients {
        heads.push(if with_clients { "client" } else { "target" });
    }
    if with_presets {
        heads.push("test");
    }
    heads.extend(parameters.iter().map(|field| last_step(field)));
    if with_repeats {
        heads.push("repeat");
    }
    heads.extend(["rate", "p50", "p99", "succeeded", "errors", "unsent"]);
    if with_misses {
        heads.push("misses");
    }
    if with_caches {
        heads.extend(["cache hits", "invalidations"]);
    }
    if with_cpu {
        heads.push("CPU/request");
    }
    let with_shares = has_shares(trials);
    if with_shares {
        heads.push(GENERATOR);
    }
    heads.extend(["verdict", "limited by"]);
    let mut grid = Grid::new("Trial", &heads);
    for column in 1..=usize::from(with_targets || with_clients) + usize::from(with_presets) {
        grid = grid.left(column);
    }
    grid = grid.left(heads.len() - 1).left(heads.len());
    for trial in trials {
        let mut row = vec![Cell::from((trial.index + 1).to_string())];
        if with_targets || with_clients {
            row.push(Cell::known(trial.setting.subject().map(ToOwned::to_owned)));
        }
        if with_presets {
            row.push(Cell::from(trial.setting.preset.clone().unwrap_or_default()));
        }
        row.extend(parameters.iter().map(|field| Cell::known(trial.setting.parameters.get(*field).cloned())));
        if with_repeats {
            row.push(Cell::known(trial.repeat.map(|repeat| (repeat + 1).to_string())));
        }
        let requests = trial.requests.unwrap_or_default();
        row.push(Cell::known(trial.achieved_per_second.map(rate)));
        row.push(Cell::known(trial.p50_nanoseconds.map(latency)));
        row.push(Cell::known(trial.p99_nanoseconds.map(latency)));
        row.push(Cell::from(count(requests.succeeded)));
        row.extend([requests.errors, requests.unsent].map(|number| Cell::unless_zero(number, Style::Bad)));
        if with_misses {
            row.push(Cell::known(trial.misses.map(|misses| share(misses, requests.succeeded))));
        }
        if with_caches {
            row.push(Cell::known(trial.cache.map(|cache| share(cache.hits, cache.hits.saturating_add(cache.misses)))));
            row.push(Cell::known(trial.cache.map(|cache| count(cache.invalidations))));
        }
        if with_cpu {
            row.push(Cell::known(trial.cpu_per_request_nanoseconds.map(latency)));
        }
        row.extend(with_shares.then(|| share_of_generator(trial)));
        row.push(verdict(trial));
        row.push(Cell::known(trial.limited_by.map(|limit| format!("{limit:?}"))));
        grid.row(row);
    }
    grid
}

/// Returns whether the load generator's share is worth a column.
pub fn has_shares(trials: &[TrialLine]) -> bool {
    trials.iter().any(|trial| trial.generator_share_basis_points > Some(SHOWN_BASIS_POINTS))
}

/// The load generator's largest share of a percentile.
pub fn share_of_generator(trial: &TrialLine) -> Cell {
    trial.generator_share_basis_points.map_or_else(|| Cell::known(None), |share| own_share("", share))
}

/// The table of repeats, and how many cells it omits.
pub fn repeats(cells: &[CellResult], left_out: u64, paint: Paint) -> String {
    let grids = [Some(repeats_grid(cells)), operations_grid(cells), costs_grid(cells)];
    let mut text: String = grids.iter().flatten().map(|grid| grid.text(paint)).collect();
    if left_out > 0 {
        text.push_str(&more(left_out, "cell"));
    }
    text
}

/// For each cell the mean with its interval, and the spread of its runs.
pub fn repeats_grid(cells: &[CellResult]) -> Grid {
    let with_presets = cells.iter().any(|cell| cell.setting.preset.is_some() || cell.setting.subject().is_some());
    let parameters: Vec<&String> =
        cells.first().map(|cell| cell.setting.parameters.keys().collect()).unwrap_or_default();
    let mut heads = Vec::new();
    if with_presets {
        let has = |of: fn(&CellResult) -> bool| cells.iter().any(of);
        heads.push(match (has(|cell| cell.setting.client.is_some()), has(|cell| cell.setting.target.is_some())) {
            (true, _) => "client",
            (false, true) => "target",
            (false, false) => "test",
        });
    }
    heads.extend(parameters.iter().map(|field| last_step(field)));
    heads.extend(["runs", "rate", "95 % CI of mean", "best", "worst", "p99", "95 % CI of mean", "p99 of all"]);
    let with_caches = cells.iter().any(|cell| cell.cache.is_some());
    if with_caches {
        heads.extend(["hits", "95 % CI of mean", "invalidations"]);
    }
    let mut grid = Grid::new("Repeats", &heads);
    if with_presets {
        grid = grid.left(1);
    }
    for cell in cells {
        let mut row = vec![Cell::from((cell.cell + 1).to_string())];
        if with_presets {
            let names: Vec<_> = cell.setting.subject().into_iter().chain(cell.setting.preset.as_deref()).collect();
            row.push(Cell::from(names.join(" ")));
        }
        row.extend(parameters.iter().map(|field| Cell::known(cell.setting.parameters.get(*field).cloned())));
        row.push(Cell::from(cell.trials.len().to_string()));
        let between = |low: String, high: String| format!("{low} to {high}");
        let throughput = cell.throughput.as_ref();
        row.push(Cell::known(throughput.map(|spread| rate(spread.mean_per_second))));
        row.push(Cell::known(
            throughput.map(|spread| between(rate(spread.low_per_second), rate(spread.high_per_second))),
        ));
        let by = if cell.by_p99 { " by p99" } else { "" };
        let (best, worst) = cell.ends().unzip();
        row.extend([best, worst].map(|trial| Cell::known(trial.map(|trial| format!("trial {}{by}", trial + 1)))));
        let p99 = cell.p99.as_ref();
        row.push(Cell::known(p99.map(|spread| latency(spread.mean_nanoseconds))));
        row.push(Cell::known(
            p99.map(|spread| between(latency(spread.low_nanoseconds), latency(spread.high_nanoseconds))),
        ));
        row.push(Cell::known(cell.aggregate.as_ref().and_then(|all| all.p99_nanoseconds).map(latency)));
        if with_caches {
            let hits = cell.cache.map(|cache| cache.hits);
            row.push(Cell::known(hits.map(|hits| rate(hits.mean_per_second))));
            row.push(Cell::known(hits.map(|hits| between(rate(hits.low_per_second), rate(hits.high_per_second)))));
            row.push(Cell::known(cell.cache.map(|cache| rate(cache.mean_invalidations_per_second))));
        }
        grid.row(row);
    }
    grid
}

/// The operations of each cell in its best and its worst run, and over all runs.
pub fn operations_grid(cells: &[CellResult]) -> Option<Grid> {
    let heads = ["run", "operation", "rate", "mean", "p50", "p99", "p99.9"];
    let mut grid = Grid::new("Repeats by operation", &heads).left(1).left(2);
    let mut any = false;
    for (cell, (best, worst)) in cells.iter().filter_map(|cell| Some((cell, cell.ends()?))) {
        let by = if cell.by_p99 { " by p99" } else { "" };
        let names = [
            format!("best{by}, trial {}", best + 1),
            format!("worst{by}, trial {}", worst + 1),
            format!("all {}", cell.trials.len()),
        ];
        for (place, name) in names.iter().enumerate() {
            for operation in &cell.operations {
                any = true;
                let run = [&operation.best, &operation.worst, &operation.average][place];
                let times = [run.mean_nanoseconds, run.p50_nanoseconds, run.p99_nanoseconds, run.p999_nanoseconds];
                let mut row = vec![
                    Cell::from((cell.cell + 1).to_string()),
                    Cell::from(name),
                    Cell::from(operation.name.clone()),
                    Cell::from(rate(run.per_second)),
                ];
                row.extend(times.map(|time| Cell::known(time.map(latency))));
                grid.row(row);
            }
        }
    }
    any.then_some(grid)
}

/// Costs of each cell's client.
pub fn costs_grid(cells: &[CellResult]) -> Option<Grid> {
    extras::clients(cells.iter().filter_map(|cell| {
        let cost = cell.cost.as_ref()?;
        let setting = Setting { target: None, client: Some(cost.name.clone()), ..cell.setting.clone() };
        Some((setting.parts(None, last_step).join(", "), cost))
    }))
}

/// The tables of a comparison: one per target, with its basis and a caution.
pub fn comparison(results: &[ComparisonResult], left_out: u64, paint: Paint) -> String {
    let mut text = String::new();
    for result in results {
        text.push_str(&comparison_grid(result).text(paint));
        let _ = writeln!(text, "{}", basis(result));
        if let Some(caution) = &result.caution {
            let _ = writeln!(text, "{}", paint.apply(Style::Doubtful, caution));
        }
    }
    if left_out > 0 {
        text.push_str(&more(left_out, "comparison"));
    }
    text
}

/// Where further results are.
pub fn more(number: u64, noun: &str) -> String {
    format!("{} {} in the artifact experiment.json\n", counted(number, &format!("more {noun}")), are(number))
}

/// The targets of a comparison, with what else its trials have in common.
pub fn comparison_title(result: &ComparisonResult) -> String {
    let parameters = result.parameters.iter().map(|(field, value)| format!("{}={value}", last_step(field)));
    let setting: String = result.preset.iter().cloned().chain(parameters).map(|part| format!(", {part}")).collect();
    format!("{} against {}{setting}", result.target, result.baseline)
}

/// The difference of a target to the baseline for each metric, and its outcome.
pub fn comparison_grid(result: &ComparisonResult) -> Grid {
    let mut grid = Grid::new(&comparison_title(result), &["change", "interval", "confidence", "outcome"]).left(4);
    for metric in &result.metrics {
        let interval = metric.low_millionths.zip(metric.high_millionths);
        grid.row([
            Cell::from(metric_name(metric.metric)),
            Cell::known(metric.ratio_millionths.map(change)),
            Cell::known(interval.map(|(low, high)| format!("{} to {}", change(low), change(high)))),
            Cell::from(format!("{} %", f64::from(metric.confidence_basis_points) / 100.0)),
            outcome(metric),
        ]);
    }
    grid
}

/// The number of trials behind a comparison.
pub fn basis(result: &ComparisonResult) -> String {
    let left_out = result.left_out;
    let trials = if left_out > 0 { format!("; {} excluded", counted(left_out, "trial")) } else { String::new() };
    match result.pairs {
        0 => format!("{} against {}{trials}", counted(result.trials.into(), "trial"), result.baseline_trials),
        pairs => format!("{} of trials{trials}", counted(pairs.into(), "pair")),
    }
}

fn difference(basis_points: u64) -> String {
    if basis_points >= 90_000 {
        return format!("x {:.1}", basis_points as f64 / 1e4 + 1.0);
    }
    format!("{:.1} %", basis_points as f64 / 100.0)
}

pub fn metric_name(metric: ComparisonMetric) -> &'static str {
    match metric {
        ComparisonMetric::Throughput => "throughput",
        ComparisonMetric::MeanResponseTime => "mean response time",
        ComparisonMetric::P50 => "p50",
        ComparisonMetric::P99 => "p99",
        ComparisonMetric::P999 => "p99.9",
        ComparisonMetric::CpuPerRequest => "CPU per request",
    }
}

fn outcome(metric: &MetricComparison) -> Cell {
    match (metric.outcome, metric.detectable_basis_points) {
        (ComparisonOutcome::Faster, _) => Cell::styled("Faster", Style::Good),
        (ComparisonOutcome::Slower, _) => Cell::styled("Slower", Style::Bad),
        (ComparisonOutcome::NoDifference, _) => Cell::from("No relevant difference"),
        (ComparisonOutcome::Inconclusive, None) => Cell::from("Inconclusive"),
        (ComparisonOutcome::Inconclusive, Some(detectable)) => {
            Cell::from(format!("Inconclusive: detectable from {}", difference(detectable)))
        }
    }
}

/// The last part of a field's path, because columns are narrow.
pub fn last_step(field: &str) -> &str {
    field.rsplit('.').next().unwrap_or(field)
}

/// True if its requests remove data and may find nothing left, so that the misses are worth showing.
fn takes(trial: &TrialLine) -> bool {
    PRESETS.iter().any(|preset| preset.takes() && trial.setting.preset.as_deref() == Some(preset.name))
}

fn verdict(trial: &TrialLine) -> Cell {
    match (trial.state, trial.verdict) {
        (TrialOutcome::Completed, Some(VerdictValue::Valid)) => Cell::styled("Valid", Style::Good),
        (TrialOutcome::Completed, Some(VerdictValue::Degraded)) => Cell::styled("Degraded", Style::Doubtful),
        (TrialOutcome::Completed, Some(VerdictValue::Invalid)) => Cell::styled("Invalid", Style::Bad),
        (state, _) => Cell::styled(format!("{state:?}"), Style::Bad),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_share_of_the_load_generator_has_a_column_from_one_per_cent_on() {
        let text = |shares: [Option<u32>; 2]| {
            let line = |(index, share): (u32, Option<u32>)| {
                json!({"index": index, "state": "Completed", "attempt": 1, "verdict": "Valid", "limitedBy": "Rate",
                    "generatorShareBasisPoints": share})
            };
            let lines = [0, 1].into_iter().zip(shares).map(line).collect::<Vec<_>>();
            grid(&serde_json::from_value::<Vec<TrialLine>>(json!(lines)).unwrap()).text(Paint::none())
        };
        assert!(!text([Some(100), None]).contains("generator"));
        let text = text([Some(2_490), None]);
        let rows: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert!(rows[1].ends_with("unsent generator verdict limited by"), "{text}");
        assert!(rows[2].ends_with("24 % Valid Rate") && rows[3].ends_with("- Valid Rate"), "{text}");
    }

    #[test]
    fn the_share_of_writes_up_to_which_caching_pays_is_in_one_table() {
        let text = |cache: serde_json::Value| {
            let line = |index: u32, weight: &str, cache: &serde_json::Value| {
                json!({"index": index, "cell": index, "state": "Completed", "attempt": 1, "verdict": "Valid", "limitedBy": "Rate",
                    "parameters": {"workload.operations[1].weight": weight}, "cache": cache})
            };
            let lines = [line(0, "1", &cache), line(1, "400", &serde_json::Value::Null)];
            grid(&serde_json::from_value::<Vec<TrialLine>>(json!(lines)).unwrap()).text(Paint::none())
        };
        assert!(!text(json!(null)).contains("cache"));
        let text = text(json!({"hits": 9_000, "misses": 1_000, "hitBasisPoints": 9_000, "invalidations": 54_272}));
        let rows: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert!(rows[1].ends_with("unsent cache hits invalidations verdict limited by"), "{text}");
        assert!(rows[2].ends_with("9,000 (90.0 %) 54,272 Valid Rate") && rows[3].ends_with("- - Valid Rate"), "{text}");
    }

    #[test]
    fn repeats_show_each_operation_in_the_best_and_the_worst_run_and_over_all() {
        let run = |per_second: u64, p99: Option<u64>| json!({"perSecond": per_second, "p99Nanoseconds": p99});
        let operation = |name: &str, factor: u64| {
            let run = |per_second: u64, p99: Option<u64>| run(factor * per_second, p99);
            let (best, worst) = (run(1_000, Some(500_000)), run(500, Some(3_000_000)));
            json!({"name": name, "best": best, "worst": worst, "average": run(750, None)})
        };
        let throughput = json!({"meanPerSecond": 1_500, "medianPerSecond": 1_500, "standardDeviationPerSecond": 7, "lowPerSecond": 1,
            "highPerSecond": 2_000, "bestTrial": 3, "worstTrial": 1});
        let mut cell = json!({"cell": 0, "trials": [1, 3], "throughput": throughput});
        let text =
            |cell: &serde_json::Value| repeats(&[serde_json::from_value(cell.clone()).unwrap()], 0, Paint::none());
        assert!(!text(&cell).contains("operation"));
        assert!(text(&cell).contains("   trial 4   trial 2   "), "{}", text(&cell));
        cell["operations"] = json!([operation("get", 1), operation("set", 2)]);
        cell["cache"] = json!({"hits": throughput, "meanInvalidationsPerSecond": 54_000});
        let text = text(&cell);
        let rows: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert!(rows[1].ends_with("p99 of all hits 95 % CI of mean invalidations"), "{text}");
        assert!(rows[2].ends_with("- - - 1.50k/s 1/s to 2.00k/s 54.0k/s"), "{text}");
        assert_eq!(
            rows[rows.len() - 7..],
            [
                "Repeats by operation run operation rate mean p50 p99 p99.9",
                "1 best, trial 4 get 1.00k/s - - 500 µs -",
                "1 best, trial 4 set 2.00k/s - - 500 µs -",
                "1 worst, trial 2 get 500/s - - 3.00 ms -",
                "1 worst, trial 2 set 1.00k/s - - 3.00 ms -",
                "1 all 2 get 750/s - - - -",
                "1 all 2 set 1.50k/s - - - -",
            ]
        );
        let p99 = json!({"meanNanoseconds": 1, "medianNanoseconds": 1, "standardDeviationNanoseconds": 1, "lowNanoseconds": 1,
            "highNanoseconds": 2, "bestTrial": 1, "worstTrial": 3});
        (cell["byP99"], cell["p99"]) = (json!(true), p99);
        let text = repeats(&[serde_json::from_value(cell).unwrap()], 0, Paint::none());
        assert!(text.contains("   trial 2 by p99   trial 4 by p99   "), "{text}");
        assert!(text.contains("best by p99, trial 2") && text.contains("worst by p99, trial 4"), "{text}");
    }

    #[test]
    fn numbers_of_one_are_singular() {
        assert_eq!(more(1, "cell"), "1 more cell is in the artifact experiment.json\n");
        let result = json!({"target": "a", "baseline": "b", "pairs": 1, "trials": 1, "baselineTrials": 1, "leftOut": 1,
            "outcome": "Inconclusive", "metrics": []});
        let mut result: ComparisonResult = serde_json::from_value(result).unwrap();
        assert_eq!(basis(&result), "1 pair of trials; 1 trial excluded");
        result.pairs = 0;
        assert_eq!(basis(&result), "1 trial against 1; 1 trial excluded");
    }

    #[test]
    fn a_comparison_says_how_much_more_or_less() {
        let result = json!({
            "target": "proxy", "baseline": "direct", "pairs": 4, "trials": 4, "baselineTrials": 5, "leftOut": 2, "outcome": "Slower",
            "parameters": {"load.pipeline": "10"}, "caution": "the load generator was the limit",
            "metrics": [
                {"metric": "Throughput", "outcome": "Slower", "ratioMillionths": 912_345, "lowMillionths": 900_000,
                 "highMillionths": 925_000, "confidenceBasisPoints": 9_500},
                {"metric": "P99", "outcome": "Inconclusive", "ratioMillionths": 1_100_000, "lowMillionths": 500_000,
                 "highMillionths": 25_000_000, "confidenceBasisPoints": 9_875, "detectableBasisPoints": 240_000},
                {"metric": "P999", "outcome": "Inconclusive", "confidenceBasisPoints": 9_875},
            ],
        });
        let text = comparison(&[serde_json::from_value(result).unwrap()], 3, Paint::none());
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines[lines.len() - 7..],
            [
                "proxy against direct, pipeline=10 change interval confidence outcome",
                "throughput -8.77 % -10.00 % to -7.50 % 95 % Slower",
                "p99 +10.00 % -50.00 % to x 25.0 98.75 % Inconclusive: detectable from x 25.0",
                "p99.9 - - 98.75 % Inconclusive",
                "4 pairs of trials; 2 trials excluded",
                "the load generator was the limit",
                "3 more comparisons are in the artifact experiment.json",
            ]
        );
    }
}
