//! Counts of what was called different, beside the promise.

use std::fmt::Write as _;

use redisbench_statistics::{Confidence, share};

use super::run::{PAIRS, Run, SUBJECTS};
use crate::comparison::{Comparison, Metric};
use crate::markdown;

/// The share of comparisons of equal subjects that may call a difference, at the default confidence of 95 %.
const PROMISE: f64 = 0.05;

/// The most reasons that are listed of comparisons that are not usable.
const LISTED: usize = 5;

const METRICS: [&str; 6] = ["Throughput", "MeanResponseTime", "P50", "P99", "P999", "CpuPerRequest"];

/// The property that is counted.
type Property = fn(&Comparison) -> bool;

/// Comparisons with a property, of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    part: u64,
    whole: u64,
}

impl Count {
    fn of<'a>(all: impl Iterator<Item = &'a Comparison>, is: Property) -> Self {
        all.fold(Self { part: 0, whole: 0 }, |count, one| Self {
            part: count.part + u64::from(is(one)),
            whole: count.whole + 1,
        })
    }

    fn is_kept(self) -> bool {
        self.part <= share::most(self.whole, PROMISE, Confidence::USUAL)
    }

    /// With its share and the exact interval.
    fn text(self) -> String {
        let Self { part, whole } = self;
        if whole == 0 {
            return "-".to_owned();
        }
        let interval = share::exact(part, whole, Confidence::USUAL);
        format!(
            "{part} of {whole}: {:.1} % ({:.1} to {:.1} %)",
            100.0 * part as f64 / whole as f64,
            100.0 * interval.lower,
            100.0 * interval.upper
        )
    }
}

fn requested(found: &Comparison) -> bool {
    found.metrics.first().is_some_and(Metric::is_finding)
}

fn any_other(found: &Comparison) -> bool {
    found.metrics.iter().skip(1).any(Metric::is_finding)
}

/// The results of all runs.
pub struct Report<'a>(pub &'a [Run]);

impl Report<'_> {
    fn usable(&self) -> impl Iterator<Item = &Comparison> {
        self.0.iter().filter_map(|run| run.outcome.as_ref().ok())
    }

    /// The runs that are not usable, with their reasons.
    pub fn failed(&self) -> Vec<String> {
        self.0.iter().filter(|run| run.outcome.is_err()).map(ToString::to_string).collect()
    }

    fn promised(&self) -> [(&'static str, Count); 2] {
        [
            ("the requested metric", Count::of(self.usable(), requested)),
            ("any of the other metrics", Count::of(self.usable(), any_other)),
        ]
    }

    /// Returns whether no more was called different than is promised.
    pub fn is_kept(&self) -> bool {
        self.promised().iter().all(|(_, count)| count.is_kept())
    }

    /// The tables, and what did not count.
    pub fn tables(&self) -> String {
        let whole = self.usable().count() as u64;
        let promised = self.promised().map(|(name, count)| {
            let verdict = if count.is_kept() { "kept" } else { "BROKEN" };
            [name.to_owned(), format!("at most {} %", 100.0 * PROMISE), count.text(), verdict.to_owned()]
        });
        let of_subject = SUBJECTS.iter().map(|subject| {
            let own = || {
                let runs = self.0.iter().filter(move |run| run.subject == subject);
                runs.filter_map(|run| run.outcome.as_ref().ok())
            };
            let [first, others] = [requested as Property, any_other].map(|is| Count::of(own(), is).text());
            [subject.name.to_owned(), subject.metric.to_owned(), first, others]
        });
        let of_metric = METRICS.iter().map(|name| {
            let known = self.usable().flat_map(|found| &found.metrics);
            let known: Vec<_> = known.filter(|metric| metric.name == *name && metric.interval.is_some()).collect();
            let different = known.iter().filter(|metric| metric.is_finding()).count();
            [(*name).to_owned(), known.len().to_string(), different.to_string()]
        });
        format!(
            "{}\nThe promise is broken if the whole interval is above it: from {} of {whole} on.\n\n{}\n{}{}",
            markdown::table(["called different", "promise", "measured", ""], promised),
            share::most(whole, PROMISE, Confidence::USUAL) + 1,
            markdown::table(
                ["client and load", "requested metric", "called different", "any other metric called different"],
                of_subject
            ),
            markdown::table(["metric", "comparisons in which it is known", "called different"], of_metric),
            self.left_out(),
        )
    }

    fn left_out(&self) -> String {
        let mut text = String::new();
        let (whole, counted) = self.usable().fold((0, 0), |(whole, pairs), one| (whole + PAIRS, pairs + one.pairs));
        if counted < whole {
            let missing = whole - counted;
            let _ =
                writeln!(text, "\n{missing} of {whole} pairs do not count, because one of their trials was Invalid.");
        }
        let failed = self.failed();
        if !failed.is_empty() {
            let (count, all) = (failed.len(), self.0.len());
            let _ = writeln!(text, "\n{count} of {all} comparisons are not usable and not counted:\n");
            text.extend(failed.iter().take(LISTED).map(|why| format!("- {}\n", why.replace(['\n', '|'], " "))));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(place: usize, outcomes: [&str; 2], pairs: u64) -> Run {
        let metric = |(name, outcome): (&str, &str)| Metric {
            name: name.to_owned(),
            outcome: outcome.to_owned(),
            ratio: Some(1.0),
            interval: Some(redisbench_statistics::Interval { lower: 0.9, upper: 1.1 }),
        };
        let metrics = ["CpuPerRequest", "P50"].into_iter().zip(outcomes).map(metric).collect();
        Run { subject: &SUBJECTS[place], outcome: Ok(Comparison { pairs, metrics, ..Comparison::default() }) }
    }

    #[test]
    fn the_requested_metric_and_the_others_are_counted_apart() {
        let mut runs = vec![
            run(0, ["Faster", "Inconclusive"], 5),
            run(0, ["NoDifference", "Slower"], 4),
            run(1, ["Inconclusive", "NoDifference"], 5),
        ];
        runs.push(Run { subject: &SUBJECTS[2], outcome: Err("no | port".to_owned()) });
        let report = Report(&runs);
        assert_eq!(report.promised().map(|(_, count)| (count.part, count.whole)), [(1, 3), (1, 3)]);
        let text = report.tables();
        for part in [
            "| the requested metric | at most 5 % | 1 of 3: 33.3 % (0.8 to 90.6 %) | kept |\n",
            "above it: from 2 of 3 on.\n",
            "| redis-rs, open loop | CpuPerRequest | 1 of 2: ",
            "| redis-rs, closed loop | Throughput | - | - |\n",
            "| P50 | 3 | 1 |\n",
            "| P999 | 0 | 0 |\n",
            "\n1 of 15 pairs do not count",
            "\n1 of 4 comparisons are not usable and not counted:\n\n- redis-rs, closed loop   no   port\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
    }

    #[test]
    fn more_than_chance_breaks_the_promise() {
        let runs = |wrong: usize| -> Vec<Run> {
            (0..200)
                .map(|number| run(0, [if number < wrong { "Slower" } else { "Inconclusive" }, "NoDifference"], 5))
                .collect()
        };
        assert!(Report(&runs(16)).is_kept());
        assert!(!Report(&runs(17)).is_kept());
        assert!(Report(&runs(17)).tables().contains("| BROKEN |"));
    }
}
