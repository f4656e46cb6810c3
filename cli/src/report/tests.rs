use redisbench_wire::timeline::Buckets;
use serde_json::Value;

use super::curve::Curve;
use super::intervals::intervals;
use super::sample::{SMALL, Size, measurement, reading};
use super::*;
use crate::export::tests::with_findings;

/// The limit of a report.
const BYTES: usize = 2_000_000;
/// The most that thousands of shards may add to it: a point of a plot each, and the rows of a table that has at most 100.
const SHARDS: usize = 200_000;

const HOSTILE: &str = "</style></title><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;";

fn sum_of_heat_map(page: &str) -> u64 {
    let (_, json) = page.split_once("id=\"heat-counts\">").unwrap();
    let cells: Value = serde_json::from_str(json.split_once("</script>").unwrap().0).unwrap();
    let columns = cells["rowsAndCounts"].as_array().unwrap();
    assert!(columns.len() <= 600 && cells["nanoseconds"].as_array().unwrap().len() <= 60);
    assert_eq!(columns.len(), cells["seconds"].as_array().unwrap().len());
    let counts = columns.iter().flat_map(|column| column.as_array().unwrap().iter().skip(1).step_by(2));
    counts.map(|count| count.as_u64().unwrap()).sum()
}

#[test]
fn the_heat_map_holds_every_succeeded_request() {
    for seconds in [1, 59, 601, 3_700] {
        let reading = reading(Size { seconds, rate: 40, ..SMALL }, "cache");
        let page = page(&reading, None).unwrap();
        assert_eq!(sum_of_heat_map(&page), reading.measurements[0].result.requests.succeeded);
    }
}

#[test]
fn intervals_are_merged_and_bounded() {
    let whole = measurement(Size { seconds: 1_300, rate: 20, ..SMALL }, 0, "cache");
    let mut seconds = whole.seconds.clone();
    // Idle seconds are not listed.
    seconds.drain(700..900);
    let sent: u64 = seconds.iter().map(|second| second.total.counts.succeeded).sum();
    let merged = intervals(&seconds, 600);
    assert!(merged.len() <= 600);
    assert_eq!(merged.iter().map(|interval| interval.counts.succeeded).sum::<u64>(), sent);
    assert_eq!(merged.iter().map(|interval| interval.response.count()).sum::<u64>(), sent);
    assert!(merged.windows(2).all(|pair| pair[0].to == pair[1].from), "a gap or an overlap");
    let idle: Vec<_> = merged.iter().filter(|interval| interval.counts.succeeded == 0).collect();
    assert_eq!(idle.iter().map(|interval| interval.to - interval.from).sum::<u32>() / 10, 20);
    assert_eq!((merged[0].from, merged[merged.len() - 1].to), (2, 1_302));
}

#[test]
fn a_load_too_slow_for_percentiles_over_time_has_no_plot_of_them() {
    let mut reading = reading(SMALL, "cache");
    let has = |reading: &Reading| {
        let page = page(reading, None).unwrap();
        (page.contains("id=\"quantiles\""), page.contains("too few requests for percentiles"))
    };
    assert_eq!(has(&reading), (true, false));
    for second in &mut reading.measurements[0].seconds {
        second.total.response = Buckets::default();
    }
    assert_eq!(has(&reading), (false, true));
}

#[test]
fn the_curve_has_the_percentiles_of_the_result() {
    let whole = measurement(SMALL, 0, "cache");
    let curve = Curve::new([&whole]).unwrap().unwrap();
    assert_eq!(curve.at("99"), whole.result.response_time.p99_nanoseconds);
    assert_eq!(curve.at("99.9"), whole.result.response_time.p999_nanoseconds);
    assert!(whole.result.response_time.p99_nanoseconds.is_some());
    // Of 24,000 requests, too few are beyond p99.99.
    assert_eq!(curve.at("99.99"), None);
    let solid_then_broken: Vec<_> = curve.lines(chart::Role::First);
    assert!(matches!(solid_then_broken.last(), Some(chart::Mark::Line(chart::Role::Unsure, _))));
}

#[test]
fn the_largest_run_has_a_report_of_two_megabytes() {
    for seconds in [600, 3_600] {
        let size = Size { trials: 100, seconds, operations: 64, nodes: 1_024, shards: 2_000, rate: 200 };
        for name in ["cache", HOSTILE] {
            let page = page(&reading(size, name), Some(0)).unwrap();
            assert!(page.len() <= BYTES, "{} bytes of {seconds} seconds", page.len());
        }
    }
}

/// `--nocapture` prints the sizes.
#[test]
fn the_number_of_shards_hardly_matters_for_the_size() {
    let bytes = [1, 200, 2_000].map(|shards| {
        let bytes = page(&reading(Size { seconds: 600, shards, ..SMALL }, "cache"), None).unwrap().len();
        println!("{shards:>5} shards: {bytes:>9} bytes");
        assert!(bytes <= BYTES, "{bytes} bytes with {shards} shards");
        bytes
    });
    assert!(bytes[2] <= bytes[0] + SHARDS, "{bytes:?}");
}

#[test]
fn nothing_of_a_name_is_markup() {
    let page = page(&reading(Size { trials: 8, ..SMALL }, HOSTILE), Some(0)).unwrap();
    assert!(page.contains("&lt;script&gt;alert(1)"), "the name is missing");
    assert_eq!(page.matches("<script").count(), 1, "more than the counts of the heat map");
    for part in ["<img", "alert(1)</script>"] {
        assert!(!page.contains(part), "{part}");
    }
}

#[test]
fn plots_and_tables_have_text_and_nothing_is_fetched() {
    for trials in [1, 8] {
        let page = page(&reading(Size { trials, ..SMALL }, "cache"), Some(0)).unwrap();
        let count = |part: &str| page.matches(part).count();
        let plots = count("<svg class=\"plot\"");
        assert!(plots >= 5, "{plots} plots");
        for part in ["<figure", "<figcaption", "<desc", "<details"] {
            assert_eq!(count(part), plots, "{part}");
        }
        assert_eq!(count("<table"), count("<caption"));
        for part in ["http:", "https:", "src=", "url(", "@import", "<link"] {
            assert_eq!(count(part), 0, "{part}");
        }
    }
}

#[test]
fn every_reason_has_its_advice_in_the_page() {
    let whole = reading(SMALL, "cache");
    let page = page(&whole, None).unwrap();
    for reason in &whole.measurements[0].verdict.reasons {
        let advice = maud::html! { (advice::about(reason.reason)) }.into_string();
        assert!(page.contains(&advice), "{advice}");
    }
}

#[test]
fn an_unknown_trial_is_named() {
    let error = page(&reading(SMALL, "cache"), Some(7)).unwrap_err();
    assert_eq!(error.to_string(), "--trial 7: there is no full result of it; there are: 0");
    let empty = Reading::default();
    assert!(page(&empty, None).unwrap().contains("Nothing was measured."));
}

#[test]
fn a_finding_names_its_trials() {
    let message = "the throughput fell by 31 % in the second half of the measurement";
    let whole = with_findings(message);
    let results = Reading { object: None, ..whole.clone() };
    for reading in [whole, results] {
        let page = page(&reading, None).unwrap();
        let finding = format!("Unsteady, trial 1 of 2, load.connections=8</h3><p>{message}</p>");
        assert!(page.contains(&finding), "{page}");
        assert!(page.contains("Misses, trial 1 of 2, trial 2 of 2</h3>"), "{page}");
        assert!(!page.contains("Trial</h3>"), "{page}");
    }
}

#[test]
fn the_best_of_trials_that_met_one_rate_has_the_lowest_p99() {
    let answer = |field: &str| {
        let mut reading = with_findings("a message");
        let status = reading.object.as_mut().unwrap().status.as_mut().unwrap();
        for (line, p99) in status.trials.iter_mut().zip([3_000_000, 2_000_000]) {
            line.p99_nanoseconds = Some(p99);
            line.setting.parameters = [(field.to_owned(), p99.to_string())].into();
        }
        several::answers(&reading).remove(0)
    };
    let by_p99 =
        "All trials met the requested rate. Lowest p99, with connections=2000000: 2.00 ms (of a single trial).";
    assert_eq!(answer("load.connections"), by_p99);
    assert_eq!(answer("load.openLoop.rate"), "Highest throughput, with rate=2000000: 501/s (of a single trial).");
}
