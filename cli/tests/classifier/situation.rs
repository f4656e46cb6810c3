//! A situation: a manifest, what is done while it runs, and what the verdict must say.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::servers::{RedisServer, wait_until};
use crate::support::{Finished, Run};

static MACHINE: Mutex<()> = Mutex::new(());

/// Other work on the machine may disturb a run, but not for ever.
const ATTEMPTS: usize = 6;

/// What a run says of itself that had to share the machine.
const DISTURBED: &[&str] = &["GeneratorCPU", "SendLate", "ReceiveLate", "StartSkew", "ClockUncertain", "Unsteady"];

/// Waits until no other situation has the machine. Then this thread and all that it starts, servers and shards alike, go
/// before everything else that the machine does, if we may ask for that: root may.
pub fn alone() -> MutexGuard<'static, ()> {
    let machine = as_others();
    go_first();
    machine
}

/// From now on this thread and what it starts go first.
pub fn go_first() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: `lowest` is valid for the call, which is about the calling thread. A refusal changes nothing.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const lowest) };
}

/// The same where processes are to have the priority of all others: a CPU limit holds for those alone.
pub fn as_others() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets a time pass that is itself what is made to happen: nothing is waited for.
pub fn pass(time: Duration) {
    let until = Instant::now() + time;
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
}

/// Waits until the measurement is well under way, by a server's own count of its GETs.
pub fn in_the_midst(server: &RedisServer) {
    let before = server.calls("get");
    wait_until("the load is under way", || server.calls("get") > before + 400);
}

/// What a verdict must be.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub name: &'static str,
    pub value: &'static str,
    pub limited_by: &'static str,
    /// How the component ends; empty if there must be none.
    pub component: &'static str,
    /// Reasons that must be there, notes included. No others may.
    pub reasons: &'static [&'static str],
    /// Reasons that may be there too.
    pub besides: &'static [&'static str],
    /// The machine's speed decides, which other work changes between the trial and its probe. Then the probe decides nothing.
    pub varies: bool,
}

impl Expected {
    /// Nothing to complain of.
    pub const fn clean(name: &'static str) -> Self {
        Self { name, value: "Valid", limited_by: "Rate", component: "", reasons: &[], besides: &[], varies: false }
    }
}

/// The parts of a manifest that situations differ in.
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
    /// What stands beside the benchmark, such as a Secret.
    pub documents: String,
    /// Of the command line.
    pub arguments: Vec<String>,
}

impl Manifest {
    /// GET and SET of a thousand keys, at a rate that any machine can make.
    pub fn new(endpoint: &str) -> Self {
        Self {
            target: format!("type: Standalone, endpoints: ['{endpoint}']"),
            operations: "[{name: get, weight: 3, command: GET __key__}, {name: set, command: SET __key__ __data__}]"
                .to_owned(),
            keys: "{count: 1000}".to_owned(),
            workload: String::new(),
            load: "type: OpenLoop, openLoop: {rate: 400}, connections: 4, duration: 3s, warmup: 500ms".to_owned(),
            measurement: String::new(),
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

/// What a run was called.
pub struct Given {
    pub verdict: Value,
    pub finished: Finished,
}

impl Given {
    fn text<'a>(&'a self, field: &str) -> &'a str {
        self.verdict[field].as_str().unwrap_or_default()
    }

    /// What a reason says.
    pub fn message(&self, kind: &str) -> &str {
        let reasons = self.verdict["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
        let reason = reasons.iter().find(|reason| reason["reason"] == kind);
        reason.and_then(|reason| reason["message"].as_str()).unwrap_or_default()
    }

    fn reasons(&self) -> Vec<&str> {
        let reasons = self.verdict["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
        reasons.iter().map(|reason| reason["reason"].as_str().unwrap()).collect()
    }
}

/// Runs `manifest`, with `meanwhile` from its first progress on, until it is called what it must be or is called something
/// that no disturbance explains.
pub fn judge(expected: &Expected, manifest: &Manifest, mut meanwhile: impl FnMut(&Run)) -> Given {
    let mut last = String::new();
    for attempt in 1..=ATTEMPTS {
        let given = run(manifest, &mut meanwhile);
        let verdict = (given.text("value"), given.text("limitedBy"), given.text("component"));
        let reasons = given.reasons();
        let known = |reason: &&&str| expected.reasons.contains(reason) || expected.besides.contains(reason);
        let missing: Vec<_> = expected.reasons.iter().filter(|reason| !reasons.contains(reason)).collect();
        let stranger: Vec<_> = reasons.iter().filter(|reason| !known(reason)).collect();
        let component = match expected.component {
            "" => verdict.2.is_empty(),
            end => verdict.2.ends_with(end),
        };
        let right = missing.is_empty()
            && stranger.is_empty()
            && component
            && (verdict.0, verdict.1) == (expected.value, expected.limited_by);
        println!(
            "situation | {} | {} | {} {} | {} | {} {} | {} | {}",
            expected.name,
            expected.value,
            expected.limited_by,
            expected.component,
            verdict.0,
            verdict.1,
            verdict.2,
            reasons.join(", "),
            if right { "right" } else { "WRONG" },
        );
        if right {
            return given;
        }
        let disturbed = reasons.iter().any(|reason| DISTURBED.contains(reason) && !expected.reasons.contains(reason));
        let result = &given.finished.object["status"]["result"];
        let (pace, nodes) = (&result["throughput"], &result["nodes"]);
        last = format!("attempt {attempt}: {:#}\n{pace}\n{nodes:#}", given.verdict);
        let disturbed = disturbed || (expected.component.ends_with("/MainThread") && !is_full(nodes));
        let undecided = (verdict.0, verdict.1, verdict.2) == (expected.value, "Unknown", "");
        let disturbed = disturbed || (expected.varies && undecided && stranger.is_empty() && missing.is_empty());
        assert!(disturbed, "{}: {last}\n{}", expected.name, given.finished.stderr);
    }
    panic!("{}: no attempt had the machine: {last}", expected.name);
}

/// Whether a server had the processor that it was to take: else what was to be made was not.
fn is_full(nodes: &Value) -> bool {
    let nodes = nodes.as_array().map(Vec::as_slice).unwrap_or_default();
    nodes.iter().any(|node| node["server"]["cpuMeanBasisPoints"].as_u64() >= Some(9_500))
}

fn run(manifest: &Manifest, meanwhile: &mut impl FnMut(&Run)) -> Given {
    let arguments: Vec<&str> = manifest.arguments.iter().map(String::as_str).collect();
    let mut run = Run::local(&manifest.text(), &arguments);
    let reader = run.wait_for_line("Running");
    meanwhile(&run);
    let stderr = crate::support::rest(reader);
    let mut finished = run.finish();
    finished.stderr = stderr;
    let verdict = finished.object["status"]["verdict"].clone();
    assert!(verdict.is_object(), "{:#}\n{}", finished.object["status"], finished.stderr);
    Given { verdict, finished }
}
