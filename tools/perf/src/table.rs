//! A row of the table.

use crate::clients::Bench;

/// A figure to be measured.
pub struct Plan {
    /// Its name.
    pub name: String,
    /// Its unit; empty for a ratio.
    pub unit: &'static str,
    /// Its upper limit, which fails the row.
    pub gate: Option<f64>,
    /// Its desired upper limit.
    pub aim: Option<f64>,
    /// True if it is counted, not timed, and so the same on every machine.
    pub is_exact: bool,
    /// Measures it.
    pub measure: Measure,
}

/// The measurement of a figure.
pub type Measure = Box<dyn Fn(&Bench) -> anyhow::Result<Measured>>;

/// The result of a measurement.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// One figure per run or pair, in order.
    pub samples: Vec<f64>,
    /// Details of the figures.
    pub detail: String,
    /// The bare system calls in the same place. None if they do not apply.
    pub floor: Option<Floor>,
}

/// The cost of the bare system calls (`redisbench-floor`), measured in the same rounds.
#[derive(Clone, Debug, Default)]
pub struct Floor {
    /// Ours over the floor.
    pub ratios: Vec<f64>,
    /// The row's figure with the floor in our place.
    pub instead: Vec<f64>,
}

/// A measured figure, or the reason why it was not measured.
#[derive(Clone, Debug)]
pub struct Row {
    /// See [`Plan`].
    pub name: String,
    /// See [`Plan`].
    pub unit: &'static str,
    /// See [`Plan`].
    pub gate: Option<f64>,
    /// See [`Plan`].
    pub aim: Option<f64>,
    /// Without samples if nothing could be measured yet.
    pub outcome: Result<Measured, String>,
}

impl Plan {
    /// Measures.
    pub fn perform(self, bench: &Bench) -> Row {
        let outcome = (self.measure)(bench).map_err(|error| format!("{error:#}"));
        Row { name: self.name, unit: self.unit, gate: self.gate, aim: self.aim, outcome }
    }
}

impl Row {
    /// The median of all samples.
    pub fn value(&self) -> Option<f64> {
        self.outcome.as_ref().ok().and_then(|measured| median(&measured.samples))
    }

    /// True if there is no gate, or it is met, or the figure could not be measured: see [`Self::trouble`].
    pub fn is_met(&self) -> bool {
        match (self.value(), self.gate) {
            (Some(value), Some(gate)) => value <= gate,
            _ => true,
        }
    }

    /// The verdict in a word.
    pub fn verdict(&self) -> &'static str {
        match (self.value(), self.gate, self.aim) {
            (None, ..) => "not measured",
            (Some(_), None, _) => "",
            (Some(value), _, Some(aim)) if value <= aim => "pass, aim met",
            (Some(value), Some(gate), _) if value <= gate => "pass",
            _ => "FAIL",
        }
    }

    /// The cost of the bare system calls in the same place.
    pub fn floor(&self) -> Option<&Floor> {
        self.outcome.as_ref().ok()?.floor.as_ref()
    }

    /// Why the measurement failed.
    pub fn trouble(&self) -> Option<String> {
        self.outcome.as_ref().err().map(|error| format!("{}: {error}", self.name))
    }
}

/// The middle one, or the mean of the two in the middle.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(*lower, *upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(samples: &[f64]) -> Row {
        let outcome = Ok(Measured { samples: samples.to_vec(), ..Measured::default() });
        Row { name: "r".into(), unit: "", gate: Some(0.5), aim: Some(0.4), outcome }
    }

    #[test]
    fn the_median_decides() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!((row(&[0.5, 0.5, 9.0]).verdict(), row(&[0.5, 0.5, 9.0]).is_met()), ("pass", true));
        assert_eq!(row(&[0.4]).verdict(), "pass, aim met");
        assert_eq!((row(&[0.51]).verdict(), row(&[0.51]).is_met()), ("FAIL", false));
        assert_eq!((row(&[]).verdict(), row(&[]).is_met()), ("not measured", true));
    }
}
