//! Validation of `spec.sweep`.

use serde_json::Value;

use crate::api::problem::Problem;
use crate::api::sweep::{SweepSpec, entry};
use crate::api::sweepable::{is_sweepable, sweepable};
use crate::api::{crd, schema};

/// Checks that each field of a sweep can be swept, is listed once, and has values that are valid for it.
pub(crate) fn check_sweep(sweep: &[SweepSpec]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut known: Vec<&str> = sweep.iter().map(|entry| entry.field.as_str()).collect();
    for (index, entry) in sweep.iter().enumerate() {
        for (place, one) in entry.with.iter().enumerate() {
            let field = format!("spec.sweep[{index}].with[{place}].field");
            let message = if known.contains(&one.field.as_str()) {
                "is swept twice: remove one of them"
            } else if !is_of_the_sweepable(&one.field) {
                "cannot be swept: name a number, duration or enum of those of sweep[].field, such as load.pipeline"
            } else {
                known.push(&one.field);
                continue;
            };
            problems.push(Problem::new(field, &one.field, message));
        }
        for (field, values, path) in entry.fields() {
            let leaf = leaf(field);
            // Reported before: by the schema's enum, or above.
            if !is_sweepable(leaf) {
                continue;
            }
            for (place, value) in values.iter().enumerate() {
                let at = format!("spec.sweep[{index}]{path}.values[{place}]");
                let before = problems.len();
                schema::check(leaf, &value.to_json(), &at, &mut problems);
                for problem in &mut problems[before..] {
                    problem.message = format!("{}, as {field} is", problem.message);
                }
            }
        }
        let rows: Vec<_> = (0..entry.values.len()).map(|place| entry.row(place)).collect();
        for (place, row) in rows.iter().enumerate().filter(|(place, row)| rows[..*place].contains(row)) {
            let shown: Vec<_> = row.iter().map(|(_, value)| value.to_string()).collect();
            let field = format!("spec.sweep[{index}].values[{place}]");
            let message = "is listed twice: remove one, or set repeats.count";
            problems.push(Problem::new(field, shown.join(", "), message));
        }
    }
    problems
}

fn is_of_the_sweepable(field: &str) -> bool {
    sweepable(&crd::schema()["properties"]["spec"]).iter().any(|known| known == field)
}

/// The schema of a field by its path; null if there is none.
fn leaf(field: &str) -> &'static Value {
    field.split('.').fold(&crd::schema()["properties"]["spec"], |schema, step| match entry(step) {
        (list, Some(_)) => &schema["properties"][list]["items"],
        (property, None) => &schema["properties"][property],
    })
}

/// Problems of swept fields of operations that `operations`, their number, does not have.
pub(crate) fn check_swept_operations(sweep: &[SweepSpec], operations: usize) -> Vec<Problem> {
    let swept = |field: &str| field.split('.').find_map(|step| entry(step).1);
    let all = sweep.iter().enumerate().flat_map(|(index, one)| one.fields().map(move |field| (index, field)));
    let missing = all.filter(|(_, (field, ..))| swept(field).is_some_and(|index| index >= operations));
    missing
        .map(|(index, (field, _, path))| {
            let message =
                format!("is none of the {operations} operations, which are numbered from 0: name one of these");
            Problem::new(format!("spec.sweep[{index}]{path}.field"), field, message)
        })
        .collect()
}

#[cfg(test)]
pub(crate) fn sweepable_fields() -> Vec<String> {
    sweepable(&crd::schema()["properties"]["spec"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_durations_and_enums_can_be_swept() {
        let fields = sweepable_fields();
        for field in [
            "load.pipeline",
            "load.connections",
            "load.openLoop.rate",
            "load.openLoop.arrival",
            "load.openLoop.pacingGrid",
            "load.closedLoop.concurrency",
            "load.pipelineMode",
            "load.timeouts.request",
            "workload.keys.count",
            "workload.keys.pattern.type",
            "workload.keys.pattern.zipf.exponent",
            "workload.values.size.fixed.bytes",
            "workload.seed",
            "workload.operations[0].weight",
            "workload.operations[7].weight",
            "workload.operations[7].rate",
            "shards.count",
        ] {
            assert!(fields.iter().any(|known| known == field), "{field} is not among {fields:?}");
        }
        for field in ["load", "load.stages", "workload.keys.prefix", "workload.operations", "shards.placement"] {
            assert!(!fields.iter().any(|known| known == field), "{field}");
        }
        assert_eq!(
            crd::schema()["properties"]["spec"]["properties"]["sweep"]["items"]["properties"]["field"]["enum"],
            json!(fields)
        );
    }

    fn problems(field: &str, values: &Value) -> Vec<String> {
        let values = serde_json::from_value(values.clone()).unwrap();
        check_sweep(&[SweepSpec { field: field.into(), values, with: Vec::new() }])
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn fields_that_change_together_are_checked_like_the_first() {
        let problems = |with: Value| -> Vec<String> {
            let sweep = json!([{"field": "load.pipeline", "values": [1, 1], "with": with}]);
            let sweep: Vec<SweepSpec> = serde_json::from_value(sweep).unwrap();
            check_sweep(&sweep).iter().map(ToString::to_string).collect()
        };
        assert_eq!(problems(json!([{"field": "load.connections", "values": [10, 20]}])), [""; 0]);
        assert_eq!(
            problems(json!([{"field": "load.connections", "values": [10, 10]}])),
            ["spec.sweep[0].values[1]: 1, 10: is listed twice: remove one, or set repeats.count"]
        );
        assert_eq!(
            problems(json!([{"field": "load.connections", "values": [10, 0]}])),
            ["spec.sweep[0].with[0].values[1]: 0: must be at least 1, as load.connections is"]
        );
        assert_eq!(
            problems(
                json!([{"field": "load.connections", "values": [1, 2]}, {"field": "load.pipeline", "values": [3, 4]}])
            ),
            ["spec.sweep[0].with[1].field: load.pipeline: is swept twice: remove one of them"]
        );
        assert_eq!(
            problems(json!([{"field": "repeats.count", "values": [1, 2]}])),
            [
                "spec.sweep[0].with[0].field: repeats.count: cannot be swept: name a number, duration or enum of those of \
                 sweep[].field, such as load.pipeline"
            ]
        );
    }

    #[test]
    fn a_value_is_one_that_the_field_could_have() {
        assert_eq!(problems("load.pipeline", &json!([1, 10])), [""; 0]);
        assert_eq!(problems("workload.keys.pattern.zipf.exponent", &json!(["0.99", "1.2"])), [""; 0]);
        assert_eq!(problems("load.timeouts.request", &json!(["10ms", "1s"])), [""; 0]);
        assert_eq!(problems("load.openLoop.arrival", &json!(["Constant", "Poisson"])), [""; 0]);
        assert_eq!(
            problems("load.pipeline", &json!(["ten"])),
            ["spec.sweep[0].values[0]: \"ten\": must be a whole number, as load.pipeline is"]
        );
        assert_eq!(
            problems("load.pipeline", &json!([1, 10_001])),
            ["spec.sweep[0].values[1]: 10001: must be at most 10000, as load.pipeline is"]
        );
        assert_eq!(
            problems("load.openLoop.arrival", &json!(["Sometimes"])),
            ["spec.sweep[0].values[0]: Sometimes: must be one of Constant, Poisson, as load.openLoop.arrival is"]
        );
        assert_eq!(
            problems("workload.operations[1].weight", &json!([1, 0])),
            ["spec.sweep[0].values[1]: 0: must be at least 1, as workload.operations[1].weight is"]
        );
        assert_eq!(
            problems("shards.count", &json!([2, 2])),
            ["spec.sweep[0].values[1]: 2: is listed twice: remove one, or set repeats.count"]
        );
    }
}
