//! The answers of the API server, and the changes that users and other clients make.

use http::Method;
use redisbench_testkit::api_server::{Permitted, Reply, merge, permit};
use redisbench_testkit::status::number;
use serde_json::{Value, json};

use super::{BENCHMARK, Cluster, Kind, is_terminal};
use crate::clock::timestamp;
use crate::scenario::NAMESPACE;

/// A name that a result needs.
const SQUAT: &str = "/api/v1/namespaces/perf/configmaps/cart-result-0";

impl Cluster {
    /// The object at `path`.
    pub fn get(&self, path: &str) -> Option<&Value> {
        self.objects.get(path)
    }

    /// Creates the benchmark unless it exists.
    pub fn apply(&mut self, benchmark: Value, now: u64) {
        if !self.objects.contains_key(BENCHMARK) {
            self.create(BENCHMARK, benchmark, now);
        }
    }

    /// An artifact in the ConfigMap of this name, if it is there in one piece.
    pub fn artifact(&self, name: &str, key: &str) -> Option<Value> {
        let map = self.objects.get(&format!("/api/v1/namespaces/perf/configmaps/cart-result-{name}"))?;
        serde_json::from_str(map["data"][key].as_str()?).ok()
    }

    /// Changes an annotation of the benchmark, as another client may.
    pub fn touch(&mut self) {
        if let Some(mut object) = self.objects.get(BENCHMARK).cloned() {
            object["metadata"]["annotations"]["touched"] = json!(self.version.to_string());
            self.store(BENCHMARK, object);
        }
    }

    /// Changes the spec, as the user may.
    pub fn edit(&mut self, change: Value) {
        if let Some(mut object) = self.objects.get(BENCHMARK).cloned() {
            merge(&mut object["spec"], change);
            object["metadata"]["generation"] = json!(number(&object["metadata"]["generation"]) + 1);
            self.store(BENCHMARK, object);
        }
    }

    /// Takes the name of a result's first piece, if it is free.
    pub fn squat(&mut self) -> bool {
        let free = !self.objects.contains_key(SQUAT);
        if free {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cart-result-0", "namespace": NAMESPACE},
                "data": {"mine": "yes"},
            });
            self.create(SQUAT, object, 0);
        }
        free
    }

    /// Frees that name.
    pub fn leave(&mut self) {
        self.remove(SQUAT);
    }

    /// The reply to a call.
    pub fn serve(&mut self, method: &Method, path: &str, body: Value, now: u64) -> Reply {
        if path.contains("/events") {
            return if *method == Method::GET {
                (200, json!({"kind": "EventList", "apiVersion": "events.k8s.io/v1", "metadata": {}, "items": []}))
            } else {
                (201, body)
            };
        }
        match permit(method.as_str(), path, body, |path| self.objects.get(path)) {
            Err(refusal) => refusal,
            Ok(Permitted::Read(object)) => (200, object),
            Ok(Permitted::Create(path, object)) => {
                let unread = ["/secrets/", "/poddisruptionbudgets/"].iter().any(|kind| path.contains(kind));
                if unread && self.status().is_some_and(is_terminal) {
                    self.late.insert(path.clone());
                }
                (201, self.create(&path, object, now))
            }
            Ok(Permitted::Update(path, object)) => (200, self.store(&path, object)),
            // Its kubelet ends it first.
            Ok(Permitted::Delete(path, mut object)) if Kind::of(&path) == Some(Kind::Pods) => {
                object["metadata"]["deletionTimestamp"] = json!(timestamp(now));
                (200, self.store(&path, object))
            }
            Ok(Permitted::Delete(path, object)) => {
                self.remove(&path);
                (200, object)
            }
        }
    }
}
