//! The cache of pods with an index by run, so that a reconciliation reads only the pods of its own run.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::runtime::reflector::store::{Writer, WriterDropped};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::Event;

use crate::build::{RUN_LABEL, Run};

/// The pods of each run by name. The key is the namespace and the label: anyone can label a pod of another namespace with this run.
type Runs = HashMap<(String, String), BTreeMap<String, Arc<Pod>>>;

/// Reads the cache. Clones share it.
#[derive(Clone)]
pub struct PodStore {
    all: Store<Pod>,
    runs: Arc<RwLock<Runs>>,
}

/// Fills the cache from the events of a watch.
pub struct PodWriter {
    writer: Writer<Pod>,
    store: PodStore,
}

/// An empty cache.
pub fn store() -> (PodStore, PodWriter) {
    let (all, writer) = reflector::store();
    let store = PodStore { all, runs: Arc::default() };
    (store.clone(), PodWriter { writer, store })
}

impl PodStore {
    /// Waits until the pods have been listed once.
    ///
    /// # Errors
    /// If the writer was dropped before.
    pub(super) async fn wait_until_ready(&self) -> Result<(), WriterDropped> {
        self.all.wait_until_ready().await
    }

    /// The pods of `run`, ordered by name.
    pub(super) fn of_run(&self, run: &Run) -> Vec<Arc<Pod>> {
        let runs = self.runs.read().unwrap_or_else(PoisonError::into_inner);
        let pods = runs.get(&(run.namespace.clone(), run.id.clone()));
        pods.map(|pods| pods.values().cloned().collect()).unwrap_or_default()
    }
}

impl PodWriter {
    /// Applies an event of the watch, like [`Writer::apply_watcher_event`].
    pub fn apply_watcher_event(&mut self, event: &Event<Pod>) {
        let all = &self.store.all;
        // Locked until both are changed, so that a reader of a filled cache finds the pods of its run.
        let mut runs = self.store.runs.write().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Apply(pod) | Event::Delete(pod) => {
                let key = ObjectRef::from_obj(pod);
                // Its labels may have changed, so the cached pod tells which run lists it.
                if let Some(former) = all.get(&key) {
                    remove(&mut runs, &former);
                }
                self.writer.apply_watcher_event(event);
                if let Some(pod) = all.get(&key) {
                    add(&mut runs, pod);
                }
            }
            Event::Init | Event::InitApply(_) => self.writer.apply_watcher_event(event),
            Event::InitDone => {
                self.writer.apply_watcher_event(event);
                *runs = Runs::new();
                for pod in all.state() {
                    add(&mut runs, pod);
                }
            }
        }
    }
}

/// The namespace and run of a pod. None if it has no label.
fn run_of(pod: &Pod) -> Option<(String, String)> {
    Some((pod.namespace()?, pod.labels().get(RUN_LABEL)?.clone()))
}

fn add(runs: &mut Runs, pod: Arc<Pod>) {
    if let Some(run) = run_of(&pod) {
        runs.entry(run).or_default().insert(pod.name_any(), pod);
    }
}

fn remove(runs: &mut Runs, pod: &Pod) {
    let Some(run) = run_of(pod) else { return };
    let Some(pods) = runs.get_mut(&run) else { return };
    pods.remove(&pod.name_any());
    if pods.is_empty() {
        runs.remove(&run);
    }
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectMeta;
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 3] = ["a", "b", "c"];
    const NAMESPACES: [&str; 2] = ["perf", "other"];
    const RUNS: [&str; 3] = ["r1", "r2", "r3"];

    fn pod(name: &str, namespace: &str, run: Option<&str>) -> Pod {
        let labels = run.map(|run| BTreeMap::from([(RUN_LABEL.to_owned(), run.to_owned())]));
        let (name, namespace) = (Some(name.to_owned()), Some(namespace.to_owned()));
        Pod { metadata: ObjectMeta { name, namespace, labels, ..ObjectMeta::default() }, ..Pod::default() }
    }

    fn run(namespace: &str, id: &str) -> Run {
        Run { namespace: namespace.into(), benchmark: "cart".into(), uid: "u-1".into(), id: id.into() }
    }

    /// Any event of a watch: its lists begin, break off and end anywhere, and a pod's labels change.
    fn event() -> impl Strategy<Value = Event<Pod>> {
        let place = (0..NAMES.len(), 0..NAMESPACES.len(), proptest::option::of(0..RUNS.len()));
        (0..8, place).prop_map(|(kind, (name, namespace, run))| {
            let pod = pod(NAMES[name], NAMESPACES[namespace], run.map(|run| RUNS[run]));
            match kind {
                0 => Event::Init,
                1 => Event::InitDone,
                2 | 3 => Event::InitApply(pod),
                4 => Event::Delete(pod),
                _ => Event::Apply(pod),
            }
        })
    }

    /// The pods of a run, by a scan of all.
    fn scanned(store: &PodStore, namespace: &str, id: &str) -> Vec<Arc<Pod>> {
        let of_run = |pod: &Pod| {
            pod.namespace().as_deref() == Some(namespace)
                && pod.labels().get(RUN_LABEL).is_some_and(|label| label == id)
        };
        let mut pods = store.all.state_filter(of_run);
        pods.sort_by_key(|pod| pod.name_any());
        pods
    }

    proptest! {
        #[test]
        fn the_index_equals_a_scan_after_every_event(events in proptest::collection::vec(event(), 0..60)) {
            let (store, mut writer) = store();
            for event in &events {
                writer.apply_watcher_event(event);
                let mut filled = 0;
                for (namespace, id) in NAMESPACES.iter().flat_map(|namespace| RUNS.map(|id| (*namespace, id))) {
                    let found = store.of_run(&run(namespace, id));
                    filled += usize::from(!found.is_empty());
                    prop_assert_eq!(found, scanned(&store, namespace, id));
                }
                // Runs without pods take no memory.
                prop_assert_eq!(store.runs.read().unwrap().len(), filled);
            }
        }
    }

    #[test]
    fn a_relist_and_a_changed_label_leave_no_pod_behind() {
        let (store, mut writer) = store();
        let names = |id: &str| store.of_run(&run("perf", id)).iter().map(|pod| pod.name_any()).collect::<Vec<_>>();
        for name in ["b", "a", "c"] {
            writer.apply_watcher_event(&Event::Apply(pod(name, "perf", Some("r1"))));
        }
        writer.apply_watcher_event(&Event::Apply(pod("a", "other", Some("r1"))));
        assert_eq!(names("r1"), ["a", "b", "c"]);
        writer.apply_watcher_event(&Event::Apply(pod("b", "perf", Some("r2"))));
        // A deletion whose object has no labels any more.
        writer.apply_watcher_event(&Event::Delete(pod("c", "perf", None)));
        assert_eq!((names("r1"), names("r2")), (vec!["a".to_owned()], vec!["b".to_owned()]));
        for event in [Event::Init, Event::InitApply(pod("d", "perf", Some("r2")))] {
            writer.apply_watcher_event(&event);
        }
        assert_eq!(names("r2"), ["b"], "the list is not complete yet");
        writer.apply_watcher_event(&Event::InitDone);
        assert_eq!((names("r1"), names("r2")), (Vec::new(), vec!["d".to_owned()]));
    }
}
