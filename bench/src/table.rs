//! What a row of the table is.

use crate::clients::Bench;

/// A figure that is to be measured.
pub struct Plan {
    /// What it is a figure of.
    pub name: String,
    /// What it is counted in; empty for a ratio.
    pub unit: &'static str,
    /// It must not be above this.
    pub gate: Option<f64>,
    /// It should not be above this.
    pub aim: Option<f64>,
    /// It is counted, not timed: the same on every machine.
    pub is_exact: bool,
    /// Measures it.
    pub measure: Measure,
}

/// How a figure is measured.
pub type Measure = Box<dyn Fn(&Bench) -> anyhow::Result<Measured>>;

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// One figure per run or pair, in their order.
    pub samples: Vec<f64>,
    /// What the figures are made of.
    pub detail: String,
    /// The bare system calls in the same place; none where they make no sense.
    pub floor: Option<Floor>,
}

/// What the bare system calls (`redisbench-floor`) cost, measured in the same rounds.
#[derive(Clone, Debug, Default)]
pub struct Floor {
    /// Ours over the floor.
    pub ratios: Vec<f64>,
    /// What the row's figure would be, were the floor in our place.
    pub instead: Vec<f64>,
}

/// A figure that was measured, or why it was not.
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
    /// Without samples if there is nothing yet that could be measured.
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

    /// Whether there is no gate, or it is met. Also of what could not be measured: see [`Self::trouble`].
    pub fn is_met(&self) -> bool {
        match (self.value(), self.gate) {
            (Some(value), Some(gate)) => value <= gate,
            _ => true,
        }
    }

    /// In a word.
    pub fn verdict(&self) -> &'static str {
        match (self.value(), self.gate, self.aim) {
            (None, ..) => "not measured",
            (Some(_), None, _) => "",
            (Some(value), _, Some(aim)) if value <= aim => "pass, aim met",
            (Some(value), Some(gate), _) if value <= gate => "pass",
            _ => "FAIL",
        }
    }

    /// What the bare system calls cost in the same place.
    pub fn floor(&self) -> Option<&Floor> {
        self.outcome.as_ref().ok()?.floor.as_ref()
    }

    /// Why it could not be measured, though it should have been.
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
