//! A manifest: a file with one RedisBenchmark, its Secrets, and possibly other objects.

pub mod documents;
mod problem;
pub mod written;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use redisbench_benchmark::api::{self, RedisBenchmark, target};
use redisbench_benchmark::plan::{self, Plan};
use serde_json::Value;

pub use problem::Problem;

/// The API server accepts objects of 1.5 MiB, and a file may have several.
const LARGEST_FILE: u64 = 8 << 20;

const API_GROUP: &str = "redisbench.dev";
pub const API_VERSION: &str = "redisbench.dev/v1alpha1";
pub const KIND: &str = "RedisBenchmark";

/// A parsed manifest. Its benchmark is not validated yet.
#[derive(Clone)]
pub struct Manifest {
    pub benchmark: RedisBenchmark,
    /// The benchmark as written, without defaults.
    pub document: Value,
    /// The Secrets in the same file.
    pub secrets: Vec<Secret>,
    /// The ConfigMaps in the same file that `workload` refers to.
    pub config_maps: Vec<ConfigMap>,
    /// Other objects in the file, as `Kind name`.
    pub skipped: Vec<String>,
}

impl fmt::Debug for Manifest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The `Debug` of Secrets would print their content.
        formatter.debug_struct("Manifest").field("benchmark", &self.benchmark).finish_non_exhaustive()
    }
}

/// Loads the manifest in `file`; `-` is standard input.
///
/// # Errors
/// All problems of the file, as far as it could be parsed.
pub fn load(file: &Path) -> Result<Manifest, Vec<Problem>> {
    let text = documents::read(file, LARGEST_FILE)?;
    parse(&text)
}

/// Parses a manifest.
///
/// # Errors
/// All problems of the text, as far as it could be parsed.
pub fn parse(text: &str) -> Result<Manifest, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut benchmarks = Vec::new();
    let mut secrets = Vec::new();
    let (mut maps, mut config_maps) = (Vec::new(), Vec::new());
    let mut skipped = Vec::new();
    for document in documents::split(text)? {
        let [version, kind] = ["apiVersion", "kind"].map(|field| document[field].as_str().unwrap_or_default());
        match (version, kind) {
            (API_VERSION, KIND) => benchmarks.extend(read_benchmark(document, &mut problems)),
            ("v1", "Secret") => secrets.extend(read_secret(document, &mut problems)),
            ("v1", "ConfigMap") => maps.push(document),
            ("" | API_VERSION, _) | (_, "" | KIND) => problems.push(unknown_type(version, kind)),
            _ if version.split('/').next() == Some(API_GROUP) => problems.push(unknown_type(version, kind)),
            (_, kind) => skipped.push(format!("{kind} {}", name_of(&document))),
        }
    }
    let mut names = BTreeSet::new();
    for document in maps {
        let workload = benchmarks.last().map(|(benchmark, _)| &benchmark.spec.workload);
        if workload.is_some_and(|workload| workload.files().any(|file| file.source.name == name_of(&document))) {
            // A cluster would keep the last one.
            if !names.insert(name_of(&document).to_owned()) {
                let message = format!("has ConfigMap {:?} more than once: remove or rename one", name_of(&document));
                problems.push(Problem::file(message));
            }
            config_maps.extend(read_config_map(document, &mut problems));
        } else {
            skipped.push(format!("ConfigMap {}", name_of(&document)));
        }
    }
    if problems.is_empty() && benchmarks.len() != 1 {
        let message = format!("must contain one {KIND} ({API_VERSION}), has {}", benchmarks.len());
        problems.push(Problem::file(message));
    }
    match benchmarks.pop() {
        Some((benchmark, document)) if problems.is_empty() => {
            Ok(Manifest { benchmark, document, secrets, config_maps, skipped })
        }
        _ => Err(problems),
    }
}

/// Checks `document`, which did not come from a file, like one that did. `secrets` are those that it refers to.
pub fn of(document: Value, secrets: Vec<Secret>) -> Result<Manifest, Vec<Problem>> {
    let mut problems = Vec::new();
    match read_benchmark(document, &mut problems) {
        Some((benchmark, document)) => {
            Ok(Manifest { benchmark, document, secrets, config_maps: Vec::new(), skipped: Vec::new() })
        }
        None => Err(problems),
    }
}

fn unknown_type(version: &str, kind: &str) -> Problem {
    let message = format!("apiVersion {version:?} with kind {kind:?} is not supported; use {API_VERSION} {KIND}");
    Problem::file(message)
}

fn read_benchmark(document: Value, problems: &mut Vec<Problem>) -> Option<(RedisBenchmark, Value)> {
    let before = problems.len();
    if document["metadata"]["name"].as_str().is_none_or(str::is_empty) {
        problems.push(Problem::field("metadata.name", "is required".to_owned()));
    }
    match api::read(&document) {
        Ok(benchmark) if problems.len() == before => return Some((benchmark, document)),
        Ok(_) => {}
        Err(found) => problems.extend(found.into_iter().map(Problem::from)),
    }
    None
}

fn read_secret(document: Value, problems: &mut Vec<Problem>) -> Option<Secret> {
    // The parser's own message could quote secret data.
    serde_json::from_value(document)
        .map_err(|_| {
            let message = "a Secret is invalid: each value of data must be base64, and each value of stringData text";
            problems.push(Problem::file(message.to_owned()));
        })
        .ok()
}

fn read_config_map(document: Value, problems: &mut Vec<Problem>) -> Option<ConfigMap> {
    serde_json::from_value(document)
        .map_err(|error| problems.push(Problem::file(format!("a ConfigMap is invalid: {error}"))))
        .ok()
}

fn name_of(document: &Value) -> &str {
    document["metadata"]["name"].as_str().unwrap_or_default()
}

/// Validates a benchmark as the operator does, and returns its trials.
pub fn compile(benchmark: &RedisBenchmark) -> Result<Plan, Vec<Problem>> {
    let name = benchmark.metadata.name.as_deref().unwrap_or_default();
    plan::compile(&benchmark.spec, name).map_err(|problems| problems.into_iter().map(Problem::from).collect())
}

/// Why a valid benchmark cannot run on a cluster, if its targets only exist on one machine.
pub fn of_one_machine(benchmark: &RedisBenchmark) -> Option<Problem> {
    target::of_one_machine(&benchmark.spec.targets).map(Problem::from)
}

#[cfg(test)]
pub mod tests;
