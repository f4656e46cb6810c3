//! Behind the API server: Jobs create pods, pods create processes, and objects without an owner are deleted.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use redisbench_benchmark::conductor::GRACE_PERIOD;
use redisbench_testkit::status::list;
use redisbench_wire::exit::ABANDONED;
use serde_json::{Value, json};

use super::{Cluster, Kind, address_of};
use crate::clock::timestamp;
use crate::shards;
use crate::world::{World, lock};

const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const RETRIES: u32 = 3;

/// Returns whether the Job's policy gives up the index of a pod that ended with this exit code.
fn fails_index(job: &Value, code: i64) -> bool {
    let is_listed = |rule: &Value| list(&rule["onExitCodes"]["values"]).iter().any(|listed| *listed == code);
    let rules = list(&job["spec"]["podFailurePolicy"]["rules"]).iter();
    rules.filter(|rule| rule["action"] == "FailIndex").any(is_listed)
}

impl World {
    /// The reactions to a served write.
    pub(super) fn react(self: &Arc<Self>, method: &Method, path: &str, before: Option<Value>) {
        let soon = self.between(5, 400);
        if *method == Method::POST {
            // The owner may have been deleted already.
            self.after(soon * 3, World::collect_garbage);
        }
        match (method.as_str(), before) {
            ("POST", _) if path.ends_with("/jobs") => self.after(soon, World::sync_jobs),
            ("DELETE", Some(pod)) if Kind::of(path) == Some(Kind::Pods) => self.end_pod(&pod),
            ("DELETE", Some(_)) => self.after(soon, World::collect_garbage),
            _ => {}
        }
    }

    /// The user deletes the benchmark, or someone deletes its Job by mistake.
    pub fn delete(self: &Arc<Self>, kind: Kind) {
        let mut cluster = lock(&self.cluster);
        let paths: Vec<String> = cluster.all(kind).map(|(path, _)| path.clone()).collect();
        for path in &paths {
            cluster.remove(path);
        }
        drop(cluster);
        let soon = self.between(5, self.scenario.garbage);
        self.after(soon, World::collect_garbage);
    }

    /// Deletes objects without an owner.
    fn collect_garbage(self: &Arc<Self>) {
        let mut cluster = lock(&self.cluster);
        let uids: Vec<String> =
            cluster.objects.values().filter_map(|o| Some(o["metadata"]["uid"].as_str()?.into())).collect();
        let orphaned = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|owners| owners.iter().all(|owner| !uids.iter().any(|uid| owner["uid"] == uid.as_str())))
        };
        let orphans: Vec<(String, Value)> =
            cluster.objects.iter().filter(|(_, o)| orphaned(o)).map(|(path, o)| (path.clone(), o.clone())).collect();
        let (pods, others): (Vec<_>, Vec<_>) =
            orphans.into_iter().partition(|(path, _)| Kind::of(path) == Some(Kind::Pods));
        for (path, _) in &others {
            cluster.remove(path);
        }
        let pods: Vec<Value> =
            pods.into_iter().map(|(_, pod)| pod).filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).collect();
        for pod in &pods {
            cluster.mark_deleted(pod, self.now().as_secs());
        }
        drop(cluster);
        for pod in &pods {
            self.end_pod(pod);
        }
        if !others.is_empty() {
            let soon = self.between(5, 400);
            self.after(soon, World::collect_garbage);
        }
    }

    /// The kubelet tells the process of a pod with a deletion timestamp to terminate, and its object is removed once it has ended.
    fn end_pod(self: &Arc<Self>, pod: &Value) {
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let soon = self.between(5, 300);
        self.after(soon, move |world| {
            let address = address_of(&uid);
            if !world.is_cut(address) {
                shards::terminate(world, address);
                return world.await_end(uid, world.now() + GRACE_PERIOD);
            }
            if let Some(process) = lock(&world.processes).get_mut(&address) {
                process.forsaken = true;
            }
            world.remove_pod(uid);
        });
    }

    /// Waits for the end of a pod's process, and kills it at `until`.
    fn await_end(self: &Arc<Self>, uid: String, until: Duration) {
        let address = address_of(&uid);
        let alive = lock(&self.processes).get(&address).is_some_and(|process| process.exited.is_none());
        if alive && self.now() < until {
            return self.after(Duration::from_millis(250), move |world| world.await_end(uid, until));
        }
        shards::kill(self, address, 137);
        self.remove_pod(uid);
    }

    fn remove_pod(self: &Arc<Self>, uid: String) {
        let gone = self.between(300, 1_500);
        self.after(gone, move |world| {
            let mut cluster = lock(&world.cluster);
            if let Some((path, _)) = cluster.pod(&uid) {
                cluster.remove(&path);
            }
            drop(cluster);
            world.sync_jobs();
        });
    }

    pub fn container_ended(self: &Arc<Self>, uid: &str, code: i32) {
        let mut cluster = lock(&self.cluster);
        let Some((path, mut pod)) = cluster.pod(uid) else { return };
        if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
            return;
        }
        pod["status"]["phase"] = json!(if code == 0 { "Succeeded" } else { "Failed" });
        pod["status"]["containerStatuses"] = json!([{
            "name": "loadgen", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": code, "reason": if code == 137 { "OOMKilled" } else { "Error" }}},
        }]);
        cluster.store(&path, pod);
        drop(cluster);
        let soon = self.between(5, 400);
        self.after(soon, World::sync_jobs);
    }

    /// The Job controller reconciles its Jobs.
    fn sync_jobs(self: &Arc<Self>) {
        let jobs = lock(&self.cluster).list(Kind::Jobs);
        for job in jobs {
            self.sync_job(&job);
        }
    }

    fn sync_job(self: &Arc<Self>, job: &Value) {
        let uid = job["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let completions = job["spec"]["completions"].as_u64().unwrap_or(0);
        let mut over = 0;
        for index in 0..u32::try_from(completions).unwrap_or(0) {
            let mut cluster = lock(&self.cluster);
            let pods: Vec<Value> = cluster.pods_of(&uid, index);
            let phase = |pod: &Value| pod["status"]["phase"].as_str().unwrap_or_default().to_owned();
            if pods.iter().any(|pod| phase(pod) == "Succeeded") || cluster.given_up.contains(&(uid.clone(), index)) {
                over += 1;
                continue;
            }
            if pods.iter().any(|pod| phase(pod) != "Failed") {
                continue;
            }
            // Counts every failed pod once, by a mark that only the controller sees.
            let mut tried_again = pods.is_empty();
            for mut pod in pods {
                if !pod["metadata"]["annotations"]["counted"].is_null() {
                    continue;
                }
                tried_again = true;
                let path = format!("{}{}", Kind::Pods.path(), pod["metadata"]["name"].as_str().unwrap_or_default());
                let code = pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"].as_i64();
                let disrupted = pod["status"]["conditions"].as_array().is_some_and(|all| !all.is_empty())
                    || !pod["metadata"]["deletionTimestamp"].is_null();
                pod["metadata"]["annotations"]["counted"] = json!("yes");
                cluster.store(&path, pod);
                if disrupted {
                    continue;
                }
                let failures = cluster.failures.entry((uid.clone(), index)).or_default();
                *failures += 1;
                let is_final = code.is_some_and(|code| fails_index(job, code));
                self.check(is_final || code != Some(ABANDONED.into()), || {
                    format!("shard {index} gave up a started trial, and is replaced")
                });
                if is_final || *failures > RETRIES {
                    cluster.given_up.insert((uid.clone(), index));
                    tried_again = false;
                    over += 1;
                }
            }
            drop(cluster);
            if tried_again {
                let (job, wait) = (job.clone(), self.between(10, 3_000));
                self.after(wait, move |world| world.create_pod(&job, index));
            }
        }
        if completions > 0 && over == completions {
            let mut cluster = lock(&self.cluster);
            let path = format!("{}{}", Kind::Jobs.path(), job["metadata"]["name"].as_str().unwrap_or_default());
            let failed = (0..u32::try_from(completions).unwrap_or(0))
                .any(|index| cluster.given_up.contains(&(uid.clone(), index)));
            if let Some(mut job) = cluster.objects.get(&path).filter(|job| job["status"].is_null()).cloned() {
                job["status"] = json!({"conditions": [
                    {"type": if failed { "Failed" } else { "Complete" }, "status": "True"}
                ]});
                cluster.store(&path, job);
            }
        }
    }

    fn create_pod(self: &Arc<Self>, job: &Value, index: u32) {
        let uid = job["metadata"]["uid"].as_str().unwrap_or_default();
        let mut cluster = lock(&self.cluster);
        let there = cluster.all(Kind::Jobs).any(|(_, job)| job["metadata"]["uid"] == uid);
        let active = cluster.pods_of(uid, index).iter().any(|pod| pod["status"]["phase"] != "Failed");
        if !there || active {
            return;
        }
        let failures = cluster.failures.get(&(uid.to_owned(), index)).copied().unwrap_or(0);
        let name = format!("{}-{index}-{}", job["metadata"]["name"].as_str().unwrap_or_default(), cluster.uids);
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
        let pod = cluster.create(&format!("{}{name}", Kind::Pods.path()), pod, self.now().as_secs());
        drop(cluster);
        let wait = if self.chance(0.05) { self.between(5_000, 20_000) } else { self.between(50, 2_000) };
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        self.after(wait, move |world| world.run_pod(&uid, index));
    }

    fn run_pod(self: &Arc<Self>, uid: &str, index: u32) {
        let mut cluster = lock(&self.cluster);
        let Some((path, mut pod)) = cluster.pod(uid) else { return };
        if !pod["metadata"]["deletionTimestamp"].is_null() || pod["status"]["phase"] != "Pending" {
            return;
        }
        let address = address_of(uid);
        pod["status"] = json!({"phase": "Running", "podIP": address.to_string()});
        let run = pod["metadata"]["labels"]["redisbench.dev/run"].as_str().unwrap_or_default().to_owned();
        cluster.store(&path, pod);
        drop(cluster);
        shards::begin(self, address, index, uid, &run);
    }

    /// The pods that run shard `index`, with their UIDs.
    pub fn running_pods(&self, index: u32) -> Vec<Value> {
        let cluster = lock(&self.cluster);
        let index = index.to_string();
        let runs =
            |pod: &Value| pod["metadata"]["labels"][INDEX] == index.as_str() && pod["status"]["phase"] == "Running";
        cluster.all(Kind::Pods).map(|(_, pod)| pod).filter(|pod| runs(pod)).cloned().collect()
    }

    /// Deletes a pod. Evicted pods also get the condition for it.
    pub fn delete_pod(self: &Arc<Self>, pod: &Value, evicted: bool) {
        let mut cluster = lock(&self.cluster);
        if evicted {
            cluster.mark_disrupted(pod);
        }
        cluster.mark_deleted(pod, self.now().as_secs());
        drop(cluster);
        self.end_pod(pod);
    }
}

impl Cluster {
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

    fn mark_deleted(&mut self, pod: &Value, now: u64) {
        self.change_pod(pod, |pod| pod["metadata"]["deletionTimestamp"] = json!(timestamp(now)));
    }

    fn mark_disrupted(&mut self, pod: &Value) {
        self.change_pod(pod, |pod| {
            pod["status"]["conditions"] = json!([{"type": "DisruptionTarget", "status": "True"}]);
        });
    }
}
