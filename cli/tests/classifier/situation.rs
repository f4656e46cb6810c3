//! A situation: how to create it, and the expected verdict.

use std::net::SocketAddr;
use std::time::Duration;

use redisbench_testkit::network::Shaped;
use redisbench_testkit::servers::{RedisServer, wait_until};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::proxy::{Proxy, Slow};
use crate::support::{Finished, Run};
use crate::watch::Watch;

/// The file for recording the verdict's input, if set.
pub const EVIDENCE: &str = "VERDICT_EVIDENCE";

/// Gives this thread and its children priority over everything else on the machine. Needs root; without effect otherwise.
pub fn go_first() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: `lowest` is valid for the call, which affects only the calling thread. A refusal changes nothing.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const lowest) };
}

/// Waits until the measurement is well under way, by the server's count of GETs.
pub fn in_the_midst(server: &RedisServer) {
    let before = server.calls("get");
    wait_until("the load is under way", || server.calls("get") > before + 400);
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// Its name on the command line, and the directory of its recordings.
    pub key: &'static str,
    pub expected: Expected,
    /// True if everything in it has priority over other work on the machine. False where processes need normal priority, because a CPU
    /// limit applies only to that.
    pub first: bool,
    /// Runs in a network of its own, whose link carries 20 Mbit/s in one direction.
    pub link: Option<Shaped>,
    /// The directory in `target/servers` with the servers' programs. None uses the installed ones.
    pub server: Option<&'static str>,
    pub make: fn() -> Given,
}

/// The expected verdict.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub name: &'static str,
    pub value: &'static str,
    pub limited_by: &'static str,
    /// The end of the component's name. Empty for no component; `ID` for a server as a whole.
    pub component: &'static str,
    /// The required reasons, including notes. No others are allowed.
    pub reasons: &'static [&'static str],
    /// Reasons that are allowed in addition.
    pub besides: &'static [&'static str],
}

/// A situation whose verdict must be Valid, limited by the requested rate, and without any reason.
pub const fn situation(key: &'static str, name: &'static str, make: fn() -> Given) -> Situation {
    let expected = Expected { name, value: "Valid", limited_by: "Rate", component: "", reasons: &[], besides: &[] };
    Situation { key, expected, first: true, link: None, server: None, make }
}

impl Situation {
    /// With this value of the verdict.
    pub const fn called(mut self, value: &'static str) -> Self {
        self.expected.value = value;
        self
    }

    /// With this limiting factor, and its component as in [`Expected::component`].
    pub const fn limited_by(mut self, limited_by: &'static str, component: &'static str) -> Self {
        self.expected.limited_by = limited_by;
        self.expected.component = component;
        self
    }

    /// With these reasons.
    pub const fn because(mut self, reasons: &'static [&'static str]) -> Self {
        self.expected.reasons = reasons;
        self
    }

    /// With these reasons too, or without them.
    pub const fn perhaps(mut self, besides: &'static [&'static str]) -> Self {
        self.expected.besides = besides;
        self
    }

    /// Without priority over other work.
    pub const fn beside_others(mut self) -> Self {
        self.first = false;
        self
    }

    /// Through a slow link.
    pub const fn through(mut self, link: Shaped) -> Self {
        self.link = Some(link);
        self
    }

    /// On these servers' programs.
    pub const fn on(mut self, server: &'static str) -> Self {
        self.server = Some(server);
        self
    }
}

/// The parts of a manifest in which situations differ.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub target: String,
    pub operations: String,
    pub keys: String,
    pub workload: String,
    pub load: String,
    pub measurement: String,
    pub shards: u32,
    pub spec: String,
    /// Other documents, such as a Secret.
    pub documents: String,
    /// Command-line arguments.
    pub arguments: Vec<String>,
}

/// One-way delay to a distant server. Compared with it, wake-ups and a hypervisor's scheduling are short.
const FAR: Duration = Duration::from_millis(25);

impl Manifest {
    /// The same for a distant server.
    pub fn far(server: &RedisServer) -> Self {
        Self::new(&far(server.address()))
    }

    /// GET and SET of a thousand keys, at a rate that any machine can sustain.
    pub fn new(endpoint: &str) -> Self {
        Self {
            target: format!("type: Standalone, endpoints: ['{endpoint}']"),
            operations: "[{name: get, weight: 3, command: GET __key__}, {name: set, command: SET __key__ __data__}]"
                .to_owned(),
            keys: "{count: 1000}".to_owned(),
            workload: String::new(),
            load: "type: OpenLoop, openLoop: {rate: 400}, connections: 32, duration: 3s, warmup: 500ms".to_owned(),
            measurement: "probe: true".to_owned(),
            shards: 1,
            spec: "preload: {mode: Always}".to_owned(),
            documents: String::new(),
            arguments: Vec::new(),
        }
    }

    pub fn text(&self) -> String {
        let Self { target, operations, keys, workload, load, measurement, shards, spec, documents, .. } = self;
        format!(
            "
apiVersion: redisbench.dev/v1alpha1
kind: RedisBenchmark
metadata: {{name: situation}}
spec:
  targets: [{{name: redis, {target}}}]
  workload: {{operations: {operations}, keys: {keys}, {workload}}}
  load: {{{load}}}
  measurement: {{{measurement}}}
  shards: {{count: {shards}, maxStartSkew: 200ms}}
  {spec}
{documents}
"
        )
    }
}

/// An address that adds the delay of a distant server.
pub fn far(address: SocketAddr) -> String {
    Proxy::before(address, Slow::Latency(FAR)).endpoint()
}

/// The verdict on a run.
pub struct Given {
    pub told: Told,
    pub finished: Finished,
}

/// The part of it that the matrix uses.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Told {
    pub value: String,
    pub limited_by: String,
    pub component: String,
    pub reasons: Vec<String>,
    /// Another error in the output.
    pub complaint: Option<String>,
    /// Why the situation did not occur, by evidence other than the run's own output.
    pub unmade: Option<String>,
}

impl Given {
    fn of(finished: Finished, judged: &Value, value: &str, unmade: Option<String>) -> Self {
        let text = |field: &str| judged[field].as_str().unwrap_or_default().to_owned();
        let reasons = judged["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
        let told = Told {
            value: text(value),
            limited_by: text("limitedBy"),
            component: text("component"),
            reasons: reasons.iter().map(|reason| reason["reason"].as_str().unwrap().to_owned()).collect(),
            complaint: None,
            unmade,
        };
        Self { told, finished }
    }

    /// Records a complaint if `holds` is false.
    pub fn must(mut self, holds: bool, otherwise: impl FnOnce() -> String) -> Self {
        if !holds {
            self.told.complaint.get_or_insert_with(otherwise);
        }
        self
    }

    /// The reason's message must contain all of `parts`.
    pub fn must_say(self, kind: &str, parts: &[&str]) -> Self {
        let reasons = self.finished.object["status"]["verdict"]["reasons"].as_array().cloned().unwrap_or_default();
        let reason = reasons.iter().find(|reason| reason["reason"] == kind);
        let message = reason.and_then(|reason| reason["message"].as_str()).unwrap_or_default();
        let holds = parts.iter().all(|part| message.contains(part));
        self.must(holds, || format!("{kind}: {message}"))
    }

    /// The component, if any, must be of this node.
    pub fn of_node(self, id: &str) -> Self {
        let component = self.told.component.clone();
        self.must(component.is_empty() || component.starts_with(id), || format!("{component} is not {id}"))
    }
}

/// Runs `manifest`, and calls `meanwhile` from its first progress on.
pub fn run(manifest: &Manifest, meanwhile: impl FnMut(&Run)) -> Given {
    watched(manifest, None, meanwhile)
}

/// The same for a server that must be saturated.
pub fn run_full(server: &RedisServer, manifest: &Manifest) -> Given {
    watched(manifest, Some(server), |_| {})
}

/// Runs the usual manifest for a distant server of its own, after this change.
pub fn run_far(change: impl FnOnce(Manifest) -> Manifest) -> Given {
    let server = RedisServer::start(&[]);
    run(&change(Manifest::far(&server)), |_| {})
}

fn watched(manifest: &Manifest, full: Option<&RedisServer>, mut meanwhile: impl FnMut(&Run)) -> Given {
    let watch = Watch::begin(full.map(RedisServer::pid), is_first());
    let evidence = std::env::var(EVIDENCE).ok();
    let kept = evidence.iter().flat_map(|path| ["--evidence", path.as_str()]);
    let arguments: Vec<&str> = manifest.arguments.iter().map(String::as_str).chain(kept).collect();
    let mut run = Run::local(&manifest.text(), &arguments);
    let reader = run.wait_for_line("Running");
    meanwhile(&run);
    let stderr = crate::support::rest(reader);
    let mut finished = run.finish();
    finished.stderr = stderr;
    let unmade = watch.end();
    let verdict = finished.object["status"]["verdict"].clone();
    assert!(verdict.is_object(), "{:#}\n{}", finished.object["status"], finished.stderr);
    Given::of(finished, &verdict, "value", unmade)
}

/// Runs a search that must end at a saturated server. Its ending takes the place of the value.
pub fn run_search(server: &RedisServer, manifest: &Manifest) -> Given {
    let watch = Watch::begin(Some(server.pid()), is_first());
    let finished = Run::local(&manifest.text(), &[]).finish();
    let unmade = watch.end();
    let search = finished.object["status"]["search"].clone();
    Given::of(finished, &search, "ending", unmade)
}

/// Returns whether this thread and its children have priority over other work.
fn is_first() -> bool {
    // SAFETY: takes a number and touches no memory.
    unsafe { libc::sched_getscheduler(0) == libc::SCHED_RR }
}
