use super::*;
use crate::api::sweep::MOST_SWEPT;

/// Client-side apply stores the object as JSON in an annotation, and annotations are limited to 256 KiB. An eighth is left for others.
#[test]
fn it_is_small_enough_for_client_side_apply() {
    let length = DEFINITION.to_string().len();
    assert!(length < 224 << 10, "{length} bytes");
}

#[test]
fn the_typed_definition_keeps_everything() {
    let typed = serde_json::to_value(custom_resource_definition()).unwrap();
    let mut back = typed;
    tidy(&mut back);
    assert_eq!(back, *DEFINITION);
}

/// Calls `check` with the path of every schema below `schema`.
fn visit(schema: &Value, path: &str, check: &mut impl FnMut(&str, &Value)) {
    check(path, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        visit(property, &format!("{path}.{name}"), check);
    }
    for below in ["items", "additionalProperties"] {
        if schema[below].is_object() {
            visit(&schema[below], &format!("{path}[]"), check);
        }
    }
}

#[test]
fn everything_is_bounded() {
    for part in ["spec", "status"] {
        visit(&schema()["properties"][part], part, &mut |path, schema| {
            let bounded = match schema["type"].as_str() {
                Some("array") => schema["maxItems"].is_u64(),
                Some("string") => schema["maxLength"].is_u64() || schema["enum"].is_array(),
                Some("object") => schema["additionalProperties"].is_null() || schema["maxProperties"].is_u64(),
                Some("integer") => {
                    schema["maximum"].is_number() || !path.starts_with("spec") || path.contains("template")
                }
                // Percentiles are decimals, and everybody writes them so: 99.9. They are compared by their digits.
                Some("number") => path == "spec.measurement.percentiles[]" && schema["maximum"].is_number(),
                Some("boolean") => true,
                other => other.is_none() && schema["x-kubernetes-int-or-string"] == true,
            };
            assert!(bounded, "{path} has no bound: {schema}");
        });
    }
}

#[test]
fn everything_is_documented() {
    for part in ["spec", "status"] {
        visit(&schema()["properties"][part], part, &mut |path, schema| {
            let foreign = path.matches('.').count() > 3 && path.starts_with("spec.shards.template.");
            let documented = schema["description"].as_str().is_some_and(|text| text.len() > 3);
            assert!(documented || foreign || path.ends_with("[]"), "{path} has no description");
        });
    }
}

#[test]
fn formats_are_those_of_kubernetes() {
    visit(schema(), "", &mut |path, schema| {
        if let Some(format) = schema["format"].as_str() {
            assert!(["int32", "int64", "date-time"].contains(&format), "{path}: {format}");
        }
    });
}

#[test]
fn lists_with_names_are_maps() {
    visit(schema(), "", &mut |path, schema| {
        if schema["items"]["required"].as_array().is_some_and(|r| r.contains(&json!("name")))
            && path.starts_with(".spec")
            && !path.contains("template")
        {
            assert_eq!(schema["x-kubernetes-list-type"], "map", "{path}");
            assert_eq!(schema["x-kubernetes-list-map-keys"], json!(["name"]), "{path}");
        }
    });
}

/// The API server compares the members of a set as decoded: a default of 50.0 and a stored 50 differ, so the immutability rule rejects
/// every status.
#[test]
fn no_set_is_of_numbers() {
    visit(schema(), "", &mut |path, schema| {
        if schema["x-kubernetes-list-type"] == "set" {
            assert_eq!(schema["items"]["type"], "string", "{path}");
        }
    });
}

#[test]
fn the_rule_of_immutability_names_every_field() {
    let rule = schema()["x-kubernetes-validations"][0]["rule"].as_str().unwrap();
    for field in schema()["properties"]["spec"]["properties"].as_object().unwrap().keys() {
        let fixed = !["suspend", "abort"].contains(&field.as_str());
        assert_eq!(rule.contains(&format!("self.spec.{field} == oldSelf.spec.{field}")), fixed, "{field}");
    }
}

#[test]
fn the_status_has_room_for_all_swept_fields() {
    let status = &schema()["properties"]["status"]["properties"];
    for list in ["trials", "repeats", "searches"] {
        let most = &status[list]["items"]["properties"]["parameters"]["maxProperties"];
        assert_eq!(most.as_u64(), Some(MOST_SWEPT), "{list}");
    }
}

#[test]
fn nothing_in_it_means_something_to_the_chart() {
    assert!(!yaml(&DEFINITION).contains("{{"));
}

#[test]
fn optional_is_not_nullable() {
    assert!(!crd_yaml().contains("nullable"));
}

/// The API server multiplies the length of the text by that of the expression, each in its own unit, and allows a million per rule: `cost`
/// in cel-go's `runtimecost.go`, `PerCallLimit` in Kubernetes' `pkg/apis/cel/config.go`.
#[test]
fn regular_expressions_stay_far_below_what_a_rule_may_cost() {
    let mut expressions = 0;
    visit(schema(), "", &mut |path, at| {
        let rules = at["x-kubernetes-validations"].as_array().into_iter().flatten();
        for rule in rules.filter_map(|rule| rule["rule"].as_str()).filter(|rule| rule.contains(".matches(")) {
            let operations = &schema()["properties"]["spec"]["properties"]["workload"]["properties"]["operations"];
            assert!(rule.contains("self.workload.operations"), "{path}: {rule}");
            let count = operations["maxItems"].as_u64().unwrap();
            let whole = operations["items"]["properties"]["command"]["maxLength"].as_u64().unwrap();
            let cut =
                rule.split_once("substring(0, ").map(|(_, rest)| rest.split_once(')').unwrap().0.parse().unwrap());
            let expression = rule.split_once("matches(r'").unwrap().1.rsplit_once("')").unwrap().0.len() as u64;
            let matching = (cut.unwrap_or(whole) + 1).div_ceil(10) * expression.div_ceil(4);
            // Trimming and cutting go through the text once each; the rest is a handful of steps.
            let cost = count * (matching + 2 * whole.div_ceil(10) + 20);
            assert!(cost < 200_000, "{path}: {cost} for {rule}");
            expressions += 1;
        }
    });
    assert_eq!(expressions, 3);
}

#[test]
fn a_benchmark_that_nobody_has_seen_is_not_current() {
    let default = &schema()["properties"]["status"]["default"];
    assert_eq!(*default, json!({"observedGeneration": -1}));
    // Written back unchanged, it is what the API server would have put there.
    let status: super::super::RedisBenchmarkStatus = serde_json::from_value(default.clone()).unwrap();
    assert_eq!((status.observed_generation, status.phase), (Some(-1), super::super::status::Phase::Pending));
    assert!(schema()["properties"]["status"]["required"].is_null());
}

#[test]
fn the_template_says_what_its_fields_are_and_how_long() {
    let template = &schema()["properties"]["spec"]["properties"]["shards"]["properties"]["template"];
    visit(template, "template", &mut |path, schema| {
        // Kubernetes' own types are described by `kubectl explain pod.spec`, and items and values with their lists and maps.
        let is_ours = path.matches('.').count() <= 1 && !path.ends_with("[]");
        assert_eq!(schema["description"].as_str().is_some_and(|text| text.len() > 3), is_ours, "{path}");
    });
    let at = |path: &str| {
        path.split('.').fold(template, |at, step| if step == "[]" { &at["items"] } else { &at["properties"][step] })
    };
    assert_eq!(at("tolerations")["maxItems"], 16);
    assert_eq!(at("topologySpreadConstraints")["maxItems"], 8);
    assert_eq!(at("imagePullSecrets")["maxItems"], 8);
    assert_eq!(at("annotations")["additionalProperties"]["maxLength"], 8192);
    assert_eq!(at("labels")["additionalProperties"]["maxLength"], 63);
    let nodes = at("affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
    assert_eq!(nodes["maxItems"], 8);
    let expressions = &nodes["items"]["properties"]["matchExpressions"];
    assert_eq!(
        (&expressions["maxItems"], &expressions["items"]["properties"]["values"]["maxItems"]),
        (&json!(8), &json!(64))
    );
    let (first, whole) = ("The key.", "The key. Must be set, e.g. a zone.");
    assert_eq!((first_sentence(whole), first_sentence("One, e.g. This. And that.")), (first, "One, e.g. This."));
}
