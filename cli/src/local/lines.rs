//! The files of the workload, from the manifest's ConfigMaps.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use redisbench_benchmark::api::file::{ConfigMapKeyRef, ShardFile};

use crate::manifest::Problem;

/// The text of `file`, which is in one of `maps`. The shards check it.
///
/// # Errors
/// If the ConfigMap or its key is missing.
pub fn read(file: ShardFile<'_>, maps: &[ConfigMap]) -> Result<String, Problem> {
    let ShardFile { field, source: ConfigMapKeyRef { name, key }, .. } = file;
    let Some(map) = maps.iter().find(|map| map.metadata.name.as_ref() == Some(name)) else {
        let message = format!("ConfigMap {name:?} was not found: add it to the manifest's file");
        return Err(Problem::field(&format!("{field}.name"), message));
    };
    let text = map.data.as_ref().and_then(|data| data.get(key)).cloned();
    text.ok_or_else(|| {
        let known: Vec<&str> = map.data.iter().flat_map(BTreeMap::keys).map(String::as_str).collect();
        let message = format!("ConfigMap {name:?} has no key {key:?} in data; it has: {}", known.join(", "));
        Problem::field(&format!("{field}.key"), message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_found_or_what_is_missing_is_named() {
        const FIELD: &str = "spec.workload.keys.file.configMapRef";
        let map = |name: &str, data: serde_json::Value| {
            serde_json::from_value(serde_json::json!({"metadata": {"name": name}, "data": data})).unwrap()
        };
        let maps: [ConfigMap; 2] =
            [map("other", serde_json::json!({})), map("v", serde_json::json!({"a.txt": "one\n", "b.txt": ""}))];
        let of = |key: &str, maps: &[ConfigMap]| {
            let source = ConfigMapKeyRef { name: "v".into(), key: key.into() };
            read(ShardFile { name: "keys", field: FIELD, source: &source }, maps).map_err(|problem| problem.to_string())
        };
        assert_eq!(of("a.txt", &maps), Ok("one\n".to_owned()));
        let missing = format!("{FIELD}.key: ConfigMap \"v\" has no key \"c.txt\" in data; it has: a.txt, b.txt");
        assert_eq!(of("c.txt", &maps), Err(missing));
        let absent = format!("{FIELD}.name: ConfigMap \"v\" was not found: add it to the manifest's file");
        assert_eq!(of("a.txt", &maps[..1]), Err(absent));
    }
}
