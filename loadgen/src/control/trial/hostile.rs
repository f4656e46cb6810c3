//! Hostile input for everything that a shard reads: the conductor's requests and the servers' replies. See `redisbench_testkit::hostile`.

use redisbench_testkit::hostile::{Meter, Target, drive};
use redisbench_wire::{AbortRequest, AbortThen, Detail, EpochRequest, PlanRequest, ShardPhase, StartRequest};
use serde_json::{Value, json};

use super::{ProcessLimits, Trial};
use crate::resp::differential::assert_agreement;
use crate::resp::{Decoder, Reply};
use crate::sample::plan;
use crate::workload::Workload;

#[global_allocator]
static METER: Meter = Meter;

const TARGETS: [Target; 3] = [
    // Holds a plan's templates and values of 1 MiB.
    Target { name: "requests", run: requests, seeds: all_requests, words, memory: (16 << 20, 64), cases: 1_500 },
    // Keeps partial lines and error texts, but no bodies.
    Target { name: "replies", run: replies, seeds: all_replies, words, memory: (256 << 10, 0), cases: 3_000 },
    // The reference parser keeps everything.
    Target {
        name: "parsers",
        run: assert_agreement,
        seeds: all_replies,
        words,
        memory: (64 << 20, 4096),
        cases: 1_500,
    },
];

#[test]
fn hostile_input_is_refused_in_bounded_memory() {
    drive(env!("CARGO_MANIFEST_DIR"), &TARGETS);
}

/// Calls in sequence, each decoded as every type that fits.
fn requests(bytes: &[u8]) {
    let Ok(calls) = serde_json::from_slice::<Vec<Value>>(bytes) else { return };
    let mut trial = Trial::new("run", 1, 0, ProcessLimits::default());
    for (now, call) in (0_u64..).zip(calls.into_iter().take(100)) {
        if let Ok(request) = serde_json::from_value::<PlanRequest>(call.clone()) {
            let _ = trial.plan(now, 0, request);
        }
        if let Ok(request) = serde_json::from_value::<StartRequest>(call.clone()) {
            let _ = trial.start(now, 0, request);
        }
        if let Ok(request) = serde_json::from_value::<AbortRequest>(call.clone()) {
            let _ = trial.abort(now, 0, request);
        } else if let Ok(request) = serde_json::from_value::<EpochRequest>(call) {
            let _ = trial.release(now, request);
        }
        let _ = trial.snapshot(now, 0, Detail::Full);
        trial.state();
    }
    // An accepted plan must build or be refused with a reason. Values of up to 512 MiB are too large for a test.
    if let Some(plan) = trial.plan_in_use()
        && trial.state().phase != ShardPhase::Failed
        && plan.workload.values.size.longest() <= 1 << 20
        && let Ok(workload) = Workload::of_trial(&plan)
    {
        for k in [0, 1, u64::from(u32::MAX)] {
            let draw = workload.draw(k);
            workload.slot(k, draw.operation);
            let mut room = vec![0; workload.longest() + Workload::SLACK];
            assert!(workload.encode([k], draw.operation, &mut room) <= workload.longest());
        }
        let _ = workload.preload_walks(&plan);
    }
}

/// The result must not depend on how the bytes are split: same replies, same error at the same place.
fn replies(bytes: &[u8]) {
    let decode = |piece: usize| {
        let mut decoder = Decoder::default();
        let mut counts = [0_u64; 3];
        for mut part in bytes.chunks(piece) {
            loop {
                match decoder.next(&mut part) {
                    Ok(Some(Reply::Value)) => counts[0] += 1,
                    Ok(Some(Reply::Nil)) => counts[1] += 1,
                    Ok(Some(Reply::Error)) => counts[2] += 1 + decoder.error_text().len() as u64,
                    Ok(None) => break,
                    Err(error) => return (counts, Some(error)),
                }
            }
        }
        (counts, None)
    };
    let whole = decode(bytes.len().max(1));
    assert_eq!(decode(7), whole);
    assert_eq!(decode(1), whole);
}

fn all_requests() -> Vec<Vec<u8>> {
    let plan = plan();
    let calls = json!([
        PlanRequest { epoch: 1, hash: plan.hash("run", 0), plan: plan.clone().into() },
        StartRequest { epoch: 1, attempt: 1, start_nanoseconds: 50 },
        AbortRequest { epoch: 2, attempt: Some(1), then: AbortThen::Rearm },
        StartRequest { epoch: 2, attempt: 2, start_nanoseconds: 60 },
        EpochRequest { epoch: 3 },
    ]);
    let only_plan = json!([PlanRequest { epoch: 1, hash: plan.hash("run", 0), plan: plan.into() }]);
    vec![calls.to_string().into_bytes(), only_plan.to_string().into_bytes()]
}

fn all_replies() -> Vec<Vec<u8>> {
    let all = b"+OK\r\n:-5\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*2\r\n$-1\r\n*1\r\n:1\r\n-WRONGTYPE no\r\n".to_vec();
    let newer =
        b"_\r\n#t\r\n,1.5\r\n(123\r\n%1\r\n+a\r\n~1\r\n:1\r\n=5\r\ntxt:a\r\n!5\r\nERR x\r\n|1\r\n+t\r\n:5\r\n>0\r\n"
            .to_vec();
    let nested = b"*3\r\n%2\r\n+a\r\n~2\r\n#f\r\n,inf\r\n$1\r\nb\r\n_\r\n|1\r\n+ttl\r\n:-1\r\n(-9\r\n!4\r\nNO x\r\n";
    let pushed =
        b">2\r\n$10\r\ninvalidate\r\n*1\r\n+k\r\n|1\r\n+a\r\n%1\r\n+b\r\n:1\r\n=8\r\nmkd:# ab\r\n>1\r\n+pong\r\n_\r\n";
    vec![
        all.clone(),
        newer,
        nested.to_vec(),
        pushed.to_vec(),
        [all, b"-MOVED 3999 127.0.0.1:6381\r\n".repeat(50)].concat(),
    ]
}

fn words() -> Vec<String> {
    [
        "\r\n",
        "$",
        "*",
        "*1099511627777\r\n",
        "$-2\r\n",
        "*-1\r\n",
        ">9\r\n",
        "|1\r\n",
        "%1\r\n",
        ",nan\r\n",
        "=4\r\n",
        "Partitioned",
        "Sequential",
        "Cluster",
    ]
    .map(str::to_owned)
    .to_vec()
}
