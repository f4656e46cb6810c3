//! The file of values, from the manifest's ConfigMap.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use redisbench_benchmark::api::values::ConfigMapKeyRef;

use crate::manifest::Problem;

const FIELD: &str = "spec.workload.values.content.file.configMapRef";

/// The text that `file` refers to, which is in `map`. The shards check it.
///
/// # Errors
/// If the ConfigMap or its key is missing.
pub fn read(file: Option<&ConfigMapKeyRef>, map: Option<&ConfigMap>) -> Result<Option<String>, Problem> {
    let Some(ConfigMapKeyRef { name, key }) = file else { return Ok(None) };
    let Some(map) = map else {
        let message = format!("ConfigMap {name:?} was not found: add it to the manifest's file");
        return Err(Problem::field(&format!("{FIELD}.name"), message));
    };
    let text = map.data.as_ref().and_then(|data| data.get(key)).cloned();
    let missing = || {
        let known: Vec<&str> = map.data.iter().flat_map(BTreeMap::keys).map(String::as_str).collect();
        let message = format!("ConfigMap {name:?} has no key {key:?} in data; it has: {}", known.join(", "));
        Problem::field(&format!("{FIELD}.key"), message)
    };
    text.map(Some).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_found_or_what_is_missing_is_named() {
        let map = serde_json::json!({"metadata": {"name": "v"}, "data": {"a.txt": "one\n", "b.txt": ""}});
        let map: ConfigMap = serde_json::from_value(map).unwrap();
        let of = |key: &str, map: Option<&ConfigMap>| {
            let file = ConfigMapKeyRef { name: "v".into(), key: key.into() };
            read(Some(&file), map).map_err(|problem| problem.to_string())
        };
        assert_eq!(of("a.txt", Some(&map)), Ok(Some("one\n".to_owned())));
        assert_eq!(read(None, Some(&map)), Ok(None));
        let missing = format!("{FIELD}.key: ConfigMap \"v\" has no key \"c.txt\" in data; it has: a.txt, b.txt");
        assert_eq!(of("c.txt", Some(&map)), Err(missing));
        let absent = format!("{FIELD}.name: ConfigMap \"v\" was not found: add it to the manifest's file");
        assert_eq!(of("a.txt", None), Err(absent));
    }
}
