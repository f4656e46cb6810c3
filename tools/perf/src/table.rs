//! A row of the table.

use redisbench_statistics::summary::median;

#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// One figure per run or pair, in order.
    pub samples: Vec<f64>,
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

#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    /// Empty for a ratio.
    pub unit: &'static str,
    /// The upper limit, which fails the row, and the desired one.
    pub gate_and_aim: Option<(f64, f64)>,
    /// The error is the reason why it was not measured.
    pub outcome: Result<Measured, String>,
}

impl Row {
    /// The median of all samples. None if it was not measured.
    pub fn value(&self) -> Option<f64> {
        self.outcome.as_ref().ok().map(|measured| median(&measured.samples))
    }

    /// True if there is no gate, or it is met, or the figure was not measured.
    pub fn is_met(&self) -> bool {
        self.verdict() != "FAIL"
    }

    pub fn verdict(&self) -> &'static str {
        match (self.value(), self.gate_and_aim) {
            (None, _) => "not measured",
            (Some(_), None) => "",
            (Some(value), Some((_, aim))) if value <= aim => "pass, aim met",
            (Some(value), Some((gate, _))) if value <= gate => "pass",
            _ => "FAIL",
        }
    }

    /// The cost of the bare system calls in the same place.
    pub fn floor(&self) -> Option<&Floor> {
        self.outcome.as_ref().ok()?.floor.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_decides() {
        let row = |outcome| Row { name: "r".into(), unit: "", gate_and_aim: Some((0.5, 0.4)), outcome };
        let of = |samples: &[f64]| row(Ok(Measured { samples: samples.to_vec(), ..Measured::default() }));
        assert_eq!((of(&[0.5, 0.5, 9.0]).verdict(), of(&[0.5, 0.5, 9.0]).is_met()), ("pass", true));
        assert_eq!(of(&[0.4]).verdict(), "pass, aim met");
        assert_eq!((of(&[0.51]).verdict(), of(&[0.51]).is_met()), ("FAIL", false));
        let failed = row(Err("why".to_owned()));
        assert_eq!((failed.verdict(), failed.is_met()), ("not measured", true));
    }
}
