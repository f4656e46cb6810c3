//! Reads a benchmark and its full results from a cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::Artifact;

use super::kept::{Reading, ReadingError, finished};
use crate::arguments::ClusterArguments;
use crate::cluster::Cluster;
use crate::cluster::answer::{self, Question};
use crate::manifest::Problem;

/// Reads the benchmark called `name`, without its full results.
///
/// # Errors
/// If it does not exist, has not finished, or cannot be read.
pub async fn object(cluster: &Cluster, name: &str) -> Result<RedisBenchmark, ReadingError> {
    let object = cluster.get(name).await.map_err(ReadingError::Cluster)?;
    finished(&object).map_err(|problem| refused(name, problem))?;
    Ok(object)
}

/// Reads the benchmark called `name`.
///
/// # Errors
/// If it has not finished, or the cluster does not have all of it.
pub async fn read(arguments: &ClusterArguments, name: &str) -> Result<Reading, ReadingError> {
    let cluster = Cluster::connect(arguments).await.map_err(ReadingError::Cluster)?;
    let refused = |problem| refused(name, problem);
    let object = object(&cluster, name).await?;
    let artifacts = object.status.as_ref().map(|status| status.artifacts.clone()).unwrap_or_default();
    let mut reading = Reading { object: Some(object), ..Reading::default() };
    for pieces in documents(&artifacts).map_err(refused)? {
        let mut document = String::new();
        for piece in &pieces {
            document.push_str(&text(&cluster, piece).await?);
        }
        reading.add(&document).map_err(|problem| {
            let place = pieces.first().map(|piece| piece.name.as_str()).unwrap_or_default();
            refused(Problem::field(&format!("status.artifacts[{place}]"), problem.to_string()))
        })?;
    }
    reading.checked().map_err(refused)
}

async fn text(cluster: &Cluster, piece: &Artifact) -> Result<String, ReadingError> {
    let namespace = cluster.namespace.as_str();
    let question = Question { what: "read a part of the result", verb: "get", resource: "configmaps", namespace };
    let map = &piece.config_map;
    let found = Api::<ConfigMap>::namespaced(cluster.client.clone(), namespace).get_opt(map).await;
    let found = found.map_err(|error| ReadingError::Cluster(answer::error(error, question)))?;
    found
        .and_then(|found| found.data?.remove(&piece.name))
        .ok_or_else(|| ReadingError::Refused { place: format!("configmap/{map}"), problem: missing(&piece.name) })
}

fn refused(name: &str, problem: Problem) -> ReadingError {
    ReadingError::Refused { place: format!("redisbenchmark/{name}"), problem }
}

fn missing(name: &str) -> Problem {
    let message = "is missing: the full result was deleted or changed; save the object with kubectl get redisbenchmark \
                   -o json, and read it with -f, for what the status has of it";
    Problem::field(name, message.to_owned())
}

/// The pieces of each document, in order.
fn documents(artifacts: &[Artifact]) -> Result<Vec<Vec<&Artifact>>, Problem> {
    let mut documents = BTreeMap::<&str, BTreeMap<usize, &Artifact>>::new();
    for artifact in artifacts {
        let numbered = artifact.name.rsplit_once('.').and_then(|(name, index)| Some((name, index.parse().ok()?)));
        let (name, index) = numbered.unwrap_or((&artifact.name, 0));
        documents.entry(name).or_default().insert(index, artifact);
    }
    for (name, pieces) in &documents {
        if let Some(gap) = (0..pieces.len()).find(|index| !pieces.contains_key(index)) {
            return Err(missing(&format!("status.artifacts[{name}.{gap:03}]")));
        }
    }
    Ok(documents.into_values().map(|pieces| pieces.into_values().collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifacts(names: &[&str]) -> Vec<Artifact> {
        let artifact = |name: &&str| Artifact { name: (*name).to_owned(), config_map: format!("map-of-{name}") };
        names.iter().map(artifact).collect()
    }

    #[test]
    fn pieces_are_joined_in_order() {
        let listed = artifacts(&["trial-1.result.json", "result.json.001", "experiment.json", "result.json.000"]);
        let found = documents(&listed).unwrap();
        let names = |pieces: &Vec<&Artifact>| pieces.iter().map(|piece| piece.name.clone()).collect::<Vec<_>>();
        assert_eq!(
            found.iter().map(names).collect::<Vec<_>>(),
            [vec!["experiment.json"], vec!["result.json.000", "result.json.001"], vec!["trial-1.result.json"]]
        );
    }

    #[test]
    fn a_missing_piece_is_named() {
        let listed = artifacts(&["result.json.000", "result.json.002"]);
        let problem = documents(&listed).unwrap_err();
        assert_eq!(problem.field, "status.artifacts[result.json.001]");
        assert!(problem.message.starts_with("is missing: "), "{problem}");
    }
}
