//! The targets of docs/evidence/scale.md. They apply to an otherwise idle machine.

use serde_json::Value;

use crate::bench::{STOPS_WITHIN, Shape};

/// The most shards that the targets apply to, of all benchmarks together.
const SHARDS: u32 = 2_000;

/// Fields of a measurement without faults, and the most that each may be.
const WITHOUT_FAULTS: [(&str, f64); 4] = [
    ("operatorCpuCores", 0.3),
    ("operatorPeakMemoryBytes", 250e6),
    ("oldestSnapshotSeconds", 3.0),
    ("secondsToResult", 15.0),
];

/// The same of an aborted measurement. Its processor time and result depend on when it was aborted.
const ABORTED: [(&str, f64); 1] = [("secondsToStop", STOPS_WITHIN)];

/// The targets that the measurement in `line` missed.
pub fn missed(shape: Shape, line: &Value) -> Vec<String> {
    let faults = shape.faults;
    if shape.shards.saturating_mul(shape.benchmarks) > SHARDS {
        return Vec::new();
    }
    let targets: &[(&str, f64)] = if faults.name().is_none() {
        &WITHOUT_FAULTS
    } else if faults.abort && faults.slow_api == 0 {
        &ABORTED
    } else {
        &[]
    };
    let miss = |(name, most): &(&str, f64)| match line[*name].as_f64() {
        Some(value) if value <= *most => None,
        Some(value) => Some(format!("{name}: {value}, more than {most}")),
        None => Some(format!("{name}: not measured")),
    };
    targets.iter().filter_map(miss).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fault::{Cascade, Faults};

    fn shape(shards: u32, faults: Faults) -> Shape {
        Shape { shards, benchmarks: 1, duration: 20, faults, target: ([127, 0, 0, 1], 6379).into() }
    }

    fn measured() -> Value {
        json!({"operatorCpuCores": 0.3, "operatorPeakMemoryBytes": 250_000_000_u64, "oldestSnapshotSeconds": 3.0,
            "secondsToResult": 15.0, "secondsToStop": 2.0})
    }

    fn beyond() -> Value {
        json!({"operatorCpuCores": 0.301, "operatorPeakMemoryBytes": 250_000_001_u64, "oldestSnapshotSeconds": 3.001,
            "secondsToStop": 2.001})
    }

    #[test]
    fn each_missed_target_is_named() {
        let none = Faults::default();
        assert_eq!(missed(shape(2_000, none), &measured()), [""; 0]);
        assert_eq!(
            missed(shape(2_000, none), &beyond()),
            [
                "operatorCpuCores: 0.301, more than 0.3",
                "operatorPeakMemoryBytes: 250000001, more than 250000000",
                "oldestSnapshotSeconds: 3.001, more than 3",
                "secondsToResult: not measured",
            ]
        );
    }

    #[test]
    fn an_aborted_load_must_stop_in_time() {
        let aborted = Faults { abort: true, unreachable: 200, ..Faults::default() };
        assert_eq!(missed(shape(2_000, aborted), &measured()), [""; 0]);
        assert_eq!(missed(shape(2_000, aborted), &beyond()), ["secondsToStop: 2.001, more than 2"]);
    }

    #[test]
    fn other_shapes_have_no_targets() {
        let many = Shape { benchmarks: 51, ..shape(40, Faults::default()) };
        let deleted = Faults { delete: Some(Cascade::Orphan), ..Faults::default() };
        let late = Faults { abort: true, slow_api: 200, ..Faults::default() };
        for shape in [shape(2_001, Faults::default()), many, shape(200, deleted), shape(200, late)] {
            assert_eq!(missed(shape, &beyond()), [""; 0], "{shape:?}");
        }
    }
}
