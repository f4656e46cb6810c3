//! An in-memory Kubernetes: objects with resourceVersions, preconditions and watches, and how its API server, Job controller, kubelets and
//! garbage collector change them.

mod jobs;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Bound;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::clock::timestamp;
pub use jobs::Index;

#[derive(Clone, Debug)]
pub enum Change {
    Applied(Value),
    Deleted(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Benchmarks,
    Jobs,
    Pods,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Benchmarks, Self::Jobs, Self::Pods];

    /// The kind of the object at `path`.
    pub fn of(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| path.starts_with(kind.path()))
    }

    fn path(self) -> &'static str {
        match self {
            Self::Benchmarks => "/apis/redisbench.dev/v1alpha1/namespaces/perf/redisbenchmarks/",
            Self::Jobs => "/apis/batch/v1/namespaces/perf/jobs/",
            Self::Pods => "/api/v1/namespaces/perf/pods/",
        }
    }
}

#[derive(Default)]
pub struct Cluster {
    objects: BTreeMap<String, Value>,
    version: u64,
    uids: u64,
    watches: Vec<(Kind, mpsc::UnboundedSender<Change>)>,
    /// Secrets and budgets that a previously frozen operator created after the end. They are deleted with the benchmark.
    late: BTreeSet<String>,
    /// Indices of a Job that are not retried any more.
    given_up: BTreeSet<(String, u32)>,
    failures: BTreeMap<(String, u32), u32>,
}

impl Cluster {
    /// The benchmark's status. None if it was deleted.
    pub fn status(&self) -> Option<&Value> {
        self.objects.get(BENCHMARK).map(|benchmark| &benchmark["status"])
    }

    /// All objects of `kind`, with their paths.
    fn all(&self, kind: Kind) -> impl Iterator<Item = (&String, &Value)> {
        let within = self.objects.range::<str, _>((Bound::Included(kind.path()), Bound::Unbounded));
        within.take_while(move |(path, _)| path.starts_with(kind.path()))
    }

    /// All objects of `kind`.
    pub fn list(&self, kind: Kind) -> Vec<Value> {
        self.all(kind).map(|(_, object)| object.clone()).collect()
    }

    /// The existing objects, and a channel of later changes.
    pub fn watch(&mut self, kind: Kind) -> (Vec<Value>, mpsc::UnboundedReceiver<Change>) {
        let (sender, changes) = mpsc::unbounded_channel();
        self.watches.push((kind, sender));
        (self.list(kind), changes)
    }

    /// Remaining objects besides the benchmark and its ConfigMaps.
    pub fn children(&self) -> Vec<String> {
        let kept = |path: &str| path.contains("/redisbenchmarks/") || path.contains("/configmaps/");
        self.objects.keys().filter(|path| !kept(path) && !self.late.contains(*path)).cloned().collect()
    }

    fn store(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        self.announce(path, &object, Change::Applied);
        object
    }

    fn create(&mut self, path: &str, mut object: Value, now: u64) -> Value {
        self.uids += 1;
        object["metadata"]["uid"] = json!(format!("uid-{}", self.uids));
        object["metadata"]["creationTimestamp"] = json!(timestamp(now));
        self.store(path, object)
    }

    fn remove(&mut self, path: &str) {
        if let Some(object) = self.objects.remove(path) {
            self.version += 1;
            self.announce(path, &object, Change::Deleted);
        }
    }

    fn announce(&mut self, path: &str, object: &Value, change: fn(Value) -> Change) {
        if let Some(kind) = Kind::of(path) {
            self.watches.retain(|(of, watch)| *of != kind || watch.send(change(object.clone())).is_ok());
        }
    }
}

/// The path of the benchmark.
pub const BENCHMARK: &str = "/apis/redisbench.dev/v1alpha1/namespaces/perf/redisbenchmarks/cart";

/// The address of the pod with this UID.
pub fn address_of(uid: &str) -> IpAddr {
    let number: u32 = uid.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let [_, _, high, low] = number.to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(10, 1, high, low))
}

/// Returns whether the phase in a benchmark's status is final.
pub fn is_terminal(status: &Value) -> bool {
    matches!(status["phase"].as_str(), Some("Succeeded" | "Failed" | "Aborted"))
}
