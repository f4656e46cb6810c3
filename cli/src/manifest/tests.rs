mod hostile;

use super::*;

/// The shortest manifest.
pub const MINIMAL: &str = "
apiVersion: redisbench.dev/v1alpha1
kind: RedisBenchmark
metadata: {name: a}
spec:
  targets: [{name: redis, type: Standalone, endpoints: ['redis:6379']}]
  workload: {operations: [{name: get, command: GET __key__}]}
  load: {type: ClosedLoop, duration: 10s}
";

fn problems(text: &str) -> Vec<String> {
    parse(text).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn minimal_manifest_gets_its_defaults() {
    let manifest = parse(MINIMAL).unwrap();
    assert_eq!(manifest.benchmark.metadata.name.as_deref(), Some("a"));
    assert_eq!(manifest.benchmark.spec.shards.count, 1);
    assert!(manifest.secrets.is_empty() && manifest.skipped.is_empty());
}

#[test]
fn secrets_are_kept_and_strangers_skipped() {
    let text = format!(
        "{MINIMAL}---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{password: hunter2}}\n\
         ---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: redis}}\n"
    );
    let manifest = parse(&text).unwrap();
    assert_eq!(manifest.secrets.len(), 1);
    assert_eq!(manifest.skipped, ["Deployment redis"]);
    assert!(!format!("{manifest:?}").contains("hunter2"));
}

#[test]
fn the_config_maps_of_the_workload_are_kept() {
    let map = |name: &str| {
        format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a.txt: one}}\n")
    };
    let content = "content: {type: File, file: {configMapRef: {name: v, key: a.txt}}}";
    let used = MINIMAL.replace("GET __key__}]", &format!("SET __key__ __data__}}], values: {{{content}}}"));
    let used = used.replace("values: {", "keys: {file: {configMapRef: {name: k, key: a.txt}}, count: 1}, values: {");
    let manifest = parse(&format!("{used}{}{}{}", map("v"), map("k"), map("other"))).unwrap();
    let names: Vec<_> = manifest.config_maps.iter().filter_map(|map| map.metadata.name.as_deref()).collect();
    assert_eq!((names, manifest.skipped), (vec!["v", "k"], vec!["ConfigMap other".to_owned()]));
    assert_eq!(manifest.config_maps[0].data.as_ref().unwrap()["a.txt"], "one");
    let trace = "trace: {configMapRef: {name: other, key: a.txt}}";
    let replayed = MINIMAL.replace("operations: [{name: get, command: GET __key__}]", trace);
    let manifest = parse(&format!("{replayed}{}{}", map("v"), map("other"))).unwrap();
    assert_eq!((manifest.config_maps.len(), manifest.skipped), (1, vec!["ConfigMap v".to_owned()]));
    let twice = problems(&format!("{used}{}{}{}", map("v"), map("k"), map("v")));
    assert_eq!(twice, ["has ConfigMap \"v\" more than once: remove or rename one"]);
    assert_eq!(parse(&format!("{used}{0}{0}", map("other"))).unwrap().skipped.len(), 2);
    let invalid = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: v}\ndata: {a.txt: 1}\n";
    assert!(problems(&format!("{used}{invalid}"))[0].contains("a ConfigMap is invalid"));
}

#[test]
fn exactly_one_benchmark() {
    assert_eq!(problems(""), ["must contain one RedisBenchmark (redisbench.dev/v1alpha1), has 0"]);
    assert_eq!(
        problems(&format!("{MINIMAL}---{MINIMAL}")),
        ["must contain one RedisBenchmark (redisbench.dev/v1alpha1), has 2"]
    );
}

#[test]
fn newer_version_is_refused() {
    let text = MINIMAL.replace("v1alpha1", "v2");
    assert_eq!(
        problems(&text),
        ["apiVersion \"redisbench.dev/v2\" with kind \"RedisBenchmark\" is not supported; \
          use redisbench.dev/v1alpha1 RedisBenchmark"]
    );
}

#[test]
fn schema_problems_come_all_at_once() {
    let text = MINIMAL.replace("name: a", "name: ''").replace("duration: 10s", "duration: 10s, conections: 3");
    let problems = problems(&text);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert_eq!(problems[0], "metadata.name: is required");
    assert_eq!(problems[1], "spec.load.conections: unknown field; did you mean connections?");
}
