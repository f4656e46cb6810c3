//! The changes that controllers and kubelets make: to Jobs, their pods, and objects without an owner.

use redisbench_testkit::status::list;
use serde_json::{Value, json};

use super::{Cluster, Kind, address_of};
use crate::clock::timestamp;

const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const RETRIES: u32 = 3;

/// The state of an index of a Job.
pub enum Index {
    /// Succeeded, or not retried any more.
    Over,
    /// It has a pod, or will get one.
    Active,
    /// It needs a pod.
    Vacant,
}

/// Returns whether the Job's policy gives up the index of a pod that ended with this exit code.
fn fails_index(job: &Value, code: i64) -> bool {
    let is_listed = |rule: &Value| list(&rule["onExitCodes"]["values"]).iter().any(|listed| *listed == code);
    let rules = list(&job["spec"]["podFailurePolicy"]["rules"]).iter();
    rules.filter(|rule| rule["action"] == "FailIndex").any(is_listed)
}

impl Cluster {
    /// Deletes all objects of `kind`.
    pub fn remove_all(&mut self, kind: Kind) {
        let paths: Vec<String> = self.all(kind).map(|(path, _)| path.clone()).collect();
        for path in &paths {
            self.remove(path);
        }
    }

    /// Deletes objects without an owner, except pods: these get a deletion timestamp. Returns the pods, and whether it deleted anything,
    /// which may have owned other objects.
    pub fn collect_garbage(&mut self, now: u64) -> (Vec<Value>, bool) {
        let uids: Vec<String> =
            self.objects.values().filter_map(|o| Some(o["metadata"]["uid"].as_str()?.into())).collect();
        let orphaned = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|owners| owners.iter().all(|owner| !uids.iter().any(|uid| owner["uid"] == uid.as_str())))
        };
        let orphans: Vec<(String, Value)> =
            self.objects.iter().filter(|(_, o)| orphaned(o)).map(|(path, o)| (path.clone(), o.clone())).collect();
        let (pods, others): (Vec<_>, Vec<_>) =
            orphans.into_iter().partition(|(path, _)| Kind::of(path) == Some(Kind::Pods));
        for (path, _) in &others {
            self.remove(path);
        }
        let pods: Vec<Value> =
            pods.into_iter().map(|(_, pod)| pod).filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).collect();
        for pod in &pods {
            self.mark_deleted(pod, now);
        }
        (pods, !others.is_empty())
    }

    /// Deletes the pod with this UID.
    pub fn remove_pod(&mut self, uid: &str) {
        if let Some((path, _)) = self.pod(uid) {
            self.remove(&path);
        }
    }

    /// Sets the final phase of a pod whose container has ended. False if it has one or is gone.
    pub fn end_container(&mut self, uid: &str, code: i32) -> bool {
        let Some((path, mut pod)) = self.pod(uid) else { return false };
        if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
            return false;
        }
        pod["status"]["phase"] = json!(if code == 0 { "Succeeded" } else { "Failed" });
        pod["status"]["containerStatuses"] = json!([{
            "name": "loadgen", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": code, "reason": if code == 137 { "OOMKilled" } else { "Error" }}},
        }]);
        self.store(&path, pod);
        true
    }

    /// Counts the failed pods of an index. Calls `retried` with the exit code of each that the Job's policy allows to retry.
    pub fn sync_index(&mut self, job: &Value, index: u32, retried: impl Fn(Option<i64>)) -> Index {
        let uid = job["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let pods: Vec<Value> = self.pods_of(&uid, index);
        let phase = |pod: &Value| pod["status"]["phase"].as_str().unwrap_or_default().to_owned();
        if pods.iter().any(|pod| phase(pod) == "Succeeded") || self.given_up.contains(&(uid.clone(), index)) {
            return Index::Over;
        }
        if pods.iter().any(|pod| phase(pod) != "Failed") {
            return Index::Active;
        }
        // Counts every failed pod once, by a mark that only the controller sees.
        let mut state = if pods.is_empty() { Index::Vacant } else { Index::Active };
        for mut pod in pods {
            if !pod["metadata"]["annotations"]["counted"].is_null() {
                continue;
            }
            state = Index::Vacant;
            let path = format!("{}{}", Kind::Pods.path(), pod["metadata"]["name"].as_str().unwrap_or_default());
            let code = pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"].as_i64();
            let disrupted = pod["status"]["conditions"].as_array().is_some_and(|all| !all.is_empty())
                || !pod["metadata"]["deletionTimestamp"].is_null();
            pod["metadata"]["annotations"]["counted"] = json!("yes");
            self.store(&path, pod);
            if disrupted {
                continue;
            }
            let failures = self.failures.entry((uid.clone(), index)).or_default();
            *failures += 1;
            let is_final = code.is_some_and(|code| fails_index(job, code));
            if !is_final {
                retried(code);
            }
            if is_final || *failures > RETRIES {
                self.given_up.insert((uid.clone(), index));
                state = Index::Over;
            }
        }
        state
    }

    /// Sets the final condition of a Job whose indices are all over.
    pub fn finish_job(&mut self, job: &Value, completions: u32) {
        let uid = job["metadata"]["uid"].as_str().unwrap_or_default();
        let path = format!("{}{}", Kind::Jobs.path(), job["metadata"]["name"].as_str().unwrap_or_default());
        let failed = (0..completions).any(|index| self.given_up.contains(&(uid.to_owned(), index)));
        if let Some(mut job) = self.objects.get(&path).filter(|job| job["status"].is_null()).cloned() {
            job["status"] = json!({"conditions": [
                {"type": if failed { "Failed" } else { "Complete" }, "status": "True"}
            ]});
            self.store(&path, job);
        }
    }

    /// Creates a pod for an index, and returns its UID. None if the Job is gone or the index has a pod.
    pub fn create_pod(&mut self, job: &Value, index: u32, now: u64) -> Option<String> {
        let uid = job["metadata"]["uid"].as_str().unwrap_or_default();
        let there = self.all(Kind::Jobs).any(|(_, job)| job["metadata"]["uid"] == uid);
        let active = self.pods_of(uid, index).iter().any(|pod| pod["status"]["phase"] != "Failed");
        if !there || active {
            return None;
        }
        let failures = self.failures.get(&(uid.to_owned(), index)).copied().unwrap_or(0);
        let name = format!("{}-{index}-{}", job["metadata"]["name"].as_str().unwrap_or_default(), self.uids);
        let mut labels = job["spec"]["template"]["metadata"]["labels"].clone();
        labels[INDEX] = json!(index.to_string());
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": job["metadata"]["namespace"], "labels": labels,
                "annotations": {FAILURES: failures.to_string()},
                "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": uid,
                    "controller": true,
                }],
            },
            "spec": {"containers": [{"name": "loadgen"}], "nodeName": format!("node-{index}")},
            "status": {"phase": "Pending"},
        });
        let pod = self.create(&format!("{}{name}", Kind::Pods.path()), pod, now);
        Some(pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
    }

    /// Gives a pending pod its address, and returns its run. None if it is gone or no longer pending.
    pub fn run_pod(&mut self, uid: &str) -> Option<String> {
        let (path, mut pod) = self.pod(uid)?;
        if !pod["metadata"]["deletionTimestamp"].is_null() || pod["status"]["phase"] != "Pending" {
            return None;
        }
        pod["status"] = json!({"phase": "Running", "podIP": address_of(uid).to_string()});
        let run = pod["metadata"]["labels"]["redisbench.dev/run"].as_str().unwrap_or_default().to_owned();
        self.store(&path, pod);
        Some(run)
    }

    /// The pods that run shard `index`, with their UIDs.
    pub fn running_pods(&self, index: u32) -> Vec<Value> {
        let index = index.to_string();
        let runs =
            |pod: &Value| pod["metadata"]["labels"][INDEX] == index.as_str() && pod["status"]["phase"] == "Running";
        self.all(Kind::Pods).map(|(_, pod)| pod).filter(|pod| runs(pod)).cloned().collect()
    }

    /// The pod with this UID, and its path.
    fn pod(&self, uid: &str) -> Option<(String, Value)> {
        let (path, pod) = self.all(Kind::Pods).find(|(_, pod)| pod["metadata"]["uid"] == uid)?;
        Some((path.clone(), pod.clone()))
    }

    fn pods_of(&self, job: &str, index: u32) -> Vec<Value> {
        let index = index.to_string();
        let of = |pod: &Value| {
            pod["metadata"]["ownerReferences"][0]["uid"] == job && pod["metadata"]["labels"][INDEX] == index.as_str()
        };
        self.all(Kind::Pods).map(|(_, pod)| pod).filter(|pod| of(pod)).cloned().collect()
    }

    fn change_pod(&mut self, pod: &Value, change: impl FnOnce(&mut Value)) {
        if let Some((path, mut pod)) = self.pod(pod["metadata"]["uid"].as_str().unwrap_or_default()) {
            change(&mut pod);
            self.store(&path, pod);
        }
    }

    /// Sets the deletion timestamp of a pod.
    pub fn mark_deleted(&mut self, pod: &Value, now: u64) {
        self.change_pod(pod, |pod| pod["metadata"]["deletionTimestamp"] = json!(timestamp(now)));
    }

    /// Gives a pod the condition of an eviction.
    pub fn mark_disrupted(&mut self, pod: &Value) {
        self.change_pod(pod, |pod| {
            pod["status"]["conditions"] = json!([{"type": "DisruptionTarget", "status": "True"}]);
        });
    }
}
