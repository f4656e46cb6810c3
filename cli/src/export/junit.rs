//! `JUnit` XML: one suite per judged result, with the verdict, verification, thresholds and search as test cases. As with the exit codes
//! of `local` and `run`, a threshold that could not be judged has not failed: its test case is skipped.

use std::fmt::Write as _;

use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::{
    Phase, SearchEnding, ThresholdOutcome, ThresholdStatus, Verdict, VerdictValue, VerificationResult,
};
use redisbench_benchmark::report::conditions::{condition, find};
use redisbench_wire::snapshot::VerificationCounts;

use super::error::ExportError;
use super::trials::{setting, trials};
use crate::reading::Reading;

/// The outcome of a test case, with its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Passed,
    /// Passed, with something to read.
    Noted,
    Skipped,
    Failed,
    /// Not measured to the end.
    Error,
}

struct Case {
    name: String,
    ending: Ending,
    message: String,
}

struct Suite {
    name: String,
    seconds: f64,
    cases: Vec<Case>,
}

struct Judged<'a> {
    verdict: Option<&'a Verdict>,
    verification: Option<&'a VerificationResult>,
    thresholds: &'a [ThresholdStatus],
}

pub fn write(reading: &Reading) -> Result<Vec<u8>, ExportError> {
    let suites = match &reading.object {
        // Its status has judged all trials together.
        Some(object) => vec![of_object(reading, object)],
        None => trials(reading)?
            .iter()
            .map(|trial| Suite {
                name: setting(trial)
                    .map_or_else(|| trial.benchmark.clone(), |own| format!("{}: {own}", trial.benchmark)),
                seconds: seconds(trial.synchronization.common_window_milliseconds),
                cases: cases(&Judged {
                    verdict: Some(&trial.verdict),
                    verification: trial.result.verification.as_ref(),
                    thresholds: &trial.thresholds,
                }),
            })
            .collect(),
    };
    Ok(xml(reading.name(), &suites).into_bytes())
}

fn of_object(reading: &Reading, object: &RedisBenchmark) -> Suite {
    let status = object.status.clone().unwrap_or_default();
    let failed = find(&status, condition::FAILED).map(|failed| failed.message.clone()).unwrap_or_default();
    let ending = match status.phase {
        Phase::Succeeded => Ending::Passed,
        _ => Ending::Error,
    };
    let message = if ending == Ending::Passed { String::new() } else { format!("{:?}: {failed}", status.phase) };
    let mut all = vec![Case { name: "run".to_owned(), ending, message }];
    all.extend(cases(&Judged {
        verdict: status.verdict.as_ref(),
        verification: status.result.as_ref().and_then(|result| result.verification.as_ref()),
        thresholds: &status.thresholds,
    }));
    let single = status.search.iter().map(|found| ("search".to_owned(), found));
    let several = status.searches.iter().map(|search| (format!("search: {}", search.name()), &search.result));
    for (name, found) in single.chain(several) {
        let ending = match found.ending {
            Some(SearchEnding::Found | SearchEnding::MaxPassed) => Ending::Noted,
            Some(SearchEnding::MinFailed) => Ending::Failed,
            Some(SearchEnding::Inconclusive | SearchEnding::GeneratorLimited) | None => Ending::Error,
        };
        all.push(Case { name, ending, message: found.message.clone() });
    }
    let measured = reading.measurements.iter().map(|trial| trial.synchronization.common_window_milliseconds);
    Suite { name: reading.name().to_owned(), seconds: seconds(measured.fold(0, u64::saturating_add)), cases: all }
}

fn cases(judged: &Judged<'_>) -> Vec<Case> {
    let verdict = judged.verdict.map(|verdict| {
        let reasons = verdict.reasons.iter().map(|reason| format!("{:?}: {}", reason.reason, reason.message));
        let message = reasons.collect::<Vec<_>>().join("\n");
        let ending = match verdict.value {
            VerdictValue::Invalid => Ending::Failed,
            _ if message.is_empty() => Ending::Passed,
            VerdictValue::Valid | VerdictValue::Degraded => Ending::Noted,
        };
        Case { name: format!("verdict {:?}", verdict.value), ending, message }
    });
    let verification = judged.verification.map(|found| {
        let VerificationCounts { mismatched, lost_writes, lost_keys, corrupt, .. } = found.counts;
        Case {
            name: "verification".to_owned(),
            ending: if found.counts.is_wrong() { Ending::Failed } else { Ending::Passed },
            message: if found.counts.is_wrong() {
                format!("{lost_writes} lost writes, {lost_keys} lost keys, {corrupt} corrupt values, {mismatched} wrong types")
            } else {
                String::new()
            },
        }
    });
    let thresholds = judged.thresholds.iter().map(|threshold| Case {
        name: format!("threshold {}", threshold.name),
        ending: match threshold.outcome {
            ThresholdOutcome::Passed => Ending::Noted,
            ThresholdOutcome::NotJudged | ThresholdOutcome::Pending => Ending::Skipped,
            ThresholdOutcome::Failed => Ending::Failed,
        },
        message: threshold.message.clone(),
    });
    verdict.into_iter().chain(verification).chain(thresholds).collect()
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1e3
}

fn xml(name: &str, suites: &[Suite]) -> String {
    let all = || suites.iter().flat_map(|suite| &suite.cases);
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "<testsuites name=\"{}\" {}>", escaped(name), counts(all()));
    for suite in suites {
        let (name, seconds) = (escaped(&suite.name), suite.seconds);
        let _ = writeln!(text, "  <testsuite name=\"{name}\" {} time=\"{seconds:.3}\">", counts(suite.cases.iter()));
        for case in &suite.cases {
            let (case_name, message) = (escaped(&case.name), escaped(&case.message));
            let _ = write!(text, "    <testcase classname=\"{name}\" name=\"{case_name}\"");
            let _ = match case.ending {
                Ending::Passed => writeln!(text, "/>"),
                Ending::Noted => writeln!(text, "><system-out>{message}</system-out></testcase>"),
                Ending::Skipped => writeln!(text, "><skipped message=\"{message}\"/></testcase>"),
                Ending::Failed => writeln!(text, "><failure message=\"{message}\"/></testcase>"),
                Ending::Error => writeln!(text, "><error message=\"{message}\"/></testcase>"),
            };
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn counts<'a>(cases: impl Iterator<Item = &'a Case> + Clone) -> String {
    let of = |ending| cases.clone().filter(|case| case.ending == ending).count();
    let [failures, errors, skipped] = [Ending::Failed, Ending::Error, Ending::Skipped].map(of);
    format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"", cases.count())
}

/// For an attribute or an element. Characters that XML cannot have are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_text_and_nothing_else() {
        let hostile = "</failure>&\"'\u{0}\u{1b}[31m\n]]>";
        assert_eq!(escaped(hostile), "&lt;/failure&gt;&amp;&quot;'\u{fffd}\u{fffd}[31m&#10;]]&gt;");
    }
}
