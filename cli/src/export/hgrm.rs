//! Percentiles as printed by HdrHistogram, in milliseconds. Lines with `#` are comments.

use std::fmt::Write as _;

use super::distribution::Distribution;
use super::error::ExportError;
use super::milliseconds::milliseconds;
use super::trials::only;
use crate::reading::Reading;

pub fn write(reading: &Reading) -> Result<Vec<u8>, ExportError> {
    let all = Distribution::of(only(reading)?)?;
    let mut text = format!("{:>14} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    for step in all.steps() {
        let value = milliseconds(step.nanoseconds);
        // Writing to a string cannot fail.
        let _ = write!(text, "{value:>14.6} {:.12} {:>10}", step.quantile, step.count);
        let _ = match 1.0 - step.quantile {
            rest if rest > 0.0 => writeln!(text, " {:>14.2}", 1.0 / rest),
            _ => writeln!(text),
        };
    }
    let answered = &all.answered;
    if all.unknown() == 0 {
        let (mean, deviation) = (answered.mean() / 1e6, answered.stdev() / 1e6);
        let _ = writeln!(text, "#[Mean    = {mean:>12.6}, StdDeviation   = {deviation:>12.6}]");
    } else {
        let _ = writeln!(
            text,
            "# {} of {} requests had no answer, and count as longer than any: percentiles beyond the last line are unknown",
            all.unknown(),
            all.all
        );
    }
    let max = milliseconds(answered.max());
    let _ = writeln!(text, "#[Max     = {max:>12.6}, Total count    = {:>12}]", all.all);
    Ok(text.into_bytes())
}
