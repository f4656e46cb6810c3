//! A Kubernetes in memory: an API server with resourceVersions, preconditions and watches, and what stands behind it: the
//! Job controller, the kubelets, the garbage collector.

mod jobs;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::plot::{NAME, NAMESPACE};
use crate::world::BEGINNING;

/// What a watch tells.
#[derive(Clone, Debug)]
pub enum Change {
    Applied(Value),
    Deleted(Value),
}

/// What operators watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Benchmarks,
    Jobs,
    Pods,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Benchmarks, Self::Jobs, Self::Pods];

    fn of(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| path.starts_with(&kind.path()))
    }

    fn path(self) -> String {
        match self {
            Self::Benchmarks => format!("/apis/redisbench.dev/v1alpha1/namespaces/{NAMESPACE}/redisbenchmarks/"),
            Self::Jobs => format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs/"),
            Self::Pods => format!("/api/v1/namespaces/{NAMESPACE}/pods/"),
        }
    }
}

/// The state of the cluster.
#[derive(Default)]
pub struct Cluster {
    objects: BTreeMap<String, Value>,
    version: u64,
    uids: u64,
    watches: Vec<(Kind, mpsc::UnboundedSender<Change>)>,
    /// Indices of a Job that are not tried again.
    given_up: BTreeSet<(String, u32)>,
    failures: BTreeMap<(String, u32), u32>,
}

impl Cluster {
    pub fn benchmark(&self) -> Option<&Value> {
        self.objects.get(&benchmark_path())
    }

    /// All objects of `kind`.
    pub fn list(&self, kind: Kind) -> Vec<Value> {
        self.objects.iter().filter(|(path, _)| path.starts_with(&kind.path())).map(|(_, o)| o.clone()).collect()
    }

    /// What there is, and from now on what changes.
    pub fn watch(&mut self, kind: Kind) -> (Vec<Value>, mpsc::UnboundedReceiver<Change>) {
        let (sender, changes) = mpsc::unbounded_channel();
        self.watches.push((kind, sender));
        (self.list(kind), changes)
    }

    /// Whether anything but the benchmark and what it keeps is left.
    pub fn children(&self) -> Vec<String> {
        let kept = |path: &str| path.contains("/redisbenchmarks/") || path.contains("/configmaps/");
        self.objects.keys().filter(|path| !kept(path)).cloned().collect()
    }

    fn store(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        self.announce(path, &Change::Applied(object.clone()));
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
            self.announce(path, &Change::Deleted(object));
        }
    }

    fn announce(&mut self, path: &str, change: &Change) {
        if let Some(kind) = Kind::of(path) {
            self.watches.retain(|(of, watch)| *of != kind || watch.send(change.clone()).is_ok());
        }
    }
}

pub fn benchmark_path() -> String {
    format!("{}{NAME}", Kind::Benchmarks.path())
}

/// The address of the pod with this UID.
pub fn address_of(uid: &str) -> IpAddr {
    let number: u32 = uid.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let [_, _, high, low] = number.to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(10, 1, high, low))
}

/// Seconds since the beginning as the API words them; a simulation lasts less than a day.
fn timestamp(now: u64) -> String {
    debug_assert_eq!(BEGINNING % 86_400, 0, "the beginning is midnight");
    format!("2026-01-01T{:02}:{:02}:{:02}Z", now / 3600 % 24, now / 60 % 60, now % 60)
}
