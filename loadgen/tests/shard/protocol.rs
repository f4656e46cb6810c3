//! Calls that need no load: authorization and refusals.

use std::path::Path;

use hyper::body::Bytes;
use hyper::{Method, StatusCode};
use redisbench_testkit::servers::ClosedPort;
use redisbench_wire::{Detail, RefusalCode, ShardPhase, WIRE_VERSION, limits, path};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::client::{INCARNATION, RUN, Shard, command, eventually};
use crate::plans::plan;

#[tokio::test]
async fn answers_say_who_answers() {
    let shard = Shard::start(None).await;
    let answer = shard.state().await;
    assert_eq!((answer.wire, answer.run.as_str(), answer.incarnation.as_str()), (WIRE_VERSION, RUN, INCARNATION));
    assert_eq!((answer.trial, answer.body.phase), (None, ShardPhase::Idle));
    let earlier = shard.clock().await;
    assert!(shard.clock().await > earlier);
}

#[tokio::test]
async fn strangers_learn_nothing() {
    let mut shard = Shard::start(None).await;
    let right = shard.token.clone();
    for wrong in ["", "a-token-of-the-rum", "a-token-of-the-run-and-more"] {
        wrong.clone_into(&mut shard.token);
        for path in [path::STATE, path::CLOCK, "/v1/trials/0/snapshot?detail=full", "/", "/v1/nothing"] {
            let (status, headers, body) = shard.request(Method::GET, path, Bytes::new()).await;
            let text = format!("{headers}{}", String::from_utf8_lossy(&body));
            assert_eq!(status, StatusCode::UNAUTHORIZED);
            assert!(!text.contains(RUN) && !text.contains(INCARNATION) && !text.contains(&right), "{text}");
        }
        let (status, ..) = shard.request(Method::PUT, path::RELEASE, Bytes::from_static(b"{\"epoch\":9}")).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }
    shard.token = right;
    assert_eq!(shard.state().await.body.phase, ShardPhase::Idle);
    assert!(!shard.log().contains(&shard.token));
}

#[tokio::test]
async fn silent_strangers_do_not_keep_a_conductor_out() {
    let shard = Shard::start(None).await;
    // More connections than the shard serves at a time.
    let mut strangers = Vec::new();
    for _ in 0..80 {
        strangers.push(TcpStream::connect(&shard.address).await.unwrap());
    }
    assert_eq!(shard.state().await.body.phase, ShardPhase::Idle);
    let hung_up = strangers[0].read(&mut [0; 16]).await;
    assert!(matches!(hung_up, Ok(0) | Err(_)), "{hung_up:?}");
}

#[tokio::test]
async fn what_cannot_be_read_is_refused() {
    let shard = Shard::start(None).await;
    let cases = [
        (Method::GET, "/v1/nothing", Bytes::new(), StatusCode::NOT_FOUND),
        (Method::POST, path::STATE, Bytes::new(), StatusCode::NOT_FOUND),
        (Method::PUT, path::CLEANUP, Bytes::from_static(b"{\"epoch\":-1}"), StatusCode::UNPROCESSABLE_ENTITY),
        (Method::PUT, "/v1/trials/x", Bytes::new(), StatusCode::NOT_FOUND),
        (Method::PUT, "/v1/trials/0", Bytes::from_static(b"{}"), StatusCode::UNPROCESSABLE_ENTITY),
        (Method::PUT, "/v1/trials/0", Bytes::from_static(b"\xff"), StatusCode::UNPROCESSABLE_ENTITY),
        (Method::PUT, path::RELEASE, Bytes::from_static(b"{\"epoch\":-1}"), StatusCode::UNPROCESSABLE_ENTITY),
        (Method::GET, "/v1/trials/0/snapshot", Bytes::new(), StatusCode::UNPROCESSABLE_ENTITY),
        (Method::GET, "/v1/trials/0/snapshot?detail=all", Bytes::new(), StatusCode::UNPROCESSABLE_ENTITY),
        (
            Method::PUT,
            "/v1/trials/0",
            Bytes::from(vec![b' '; limits::REQUEST_BYTES + 1]),
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
    ];
    for (method, path, body, expected) in cases {
        let (status, _, body) = shard.request(method.clone(), path, body).await;
        assert_eq!(status, expected, "{method} {path}: {}", String::from_utf8_lossy(&body));
    }
    assert_eq!(shard.state().await.body.phase, ShardPhase::Idle);
}

#[tokio::test]
async fn a_plan_is_accepted_once_and_for_no_lower_epoch() {
    let shard = Shard::start(None).await;
    let closed = ClosedPort::take();
    let mut plan = plan(&closed.endpoint());
    let state = shard.plan(7, &plan).await.unwrap().body;
    assert_eq!((state.phase, state.epoch, state.plan_hash), (ShardPhase::Preparing, 7, Some(plan.hash(RUN, 0))));
    let (status, refused) = shard.plan(6, &plan).await.unwrap_err();
    assert_eq!((status, refused.body.code), (StatusCode::CONFLICT, RefusalCode::StaleEpoch));
    assert_eq!(refused.trial, Some(0));
    let state = shard.plan(8, &plan).await.unwrap().body;
    assert_eq!((state.epoch, state.plan_hash), (8, Some(plan.hash(RUN, 0))));
    plan.pipeline += 1;
    assert_eq!(shard.plan(8, &plan).await.unwrap_err().1.body.code, RefusalCode::PlanConflict);
    assert_eq!(shard.start_at(7, 1, u64::MAX).await.unwrap_err().1.body.code, RefusalCode::StaleEpoch);
    assert_eq!(shard.snapshot(Detail::Live).await.unwrap_err().1.body.code, RefusalCode::WrongPhase);
}

#[tokio::test]
async fn waiting_is_told() {
    let shard = Shard::start(None).await;
    let closed = ClosedPort::take();
    let endpoint = closed.endpoint();
    shard.plan(1, &plan(&endpoint)).await.unwrap();
    let told = eventually("an obstacle is told", async || shard.state().await.body.preparation.waiting_for);
    let waiting = told.await;
    assert!(waiting.contains(&endpoint) && waiting.contains("connection refused"), "{waiting}");
}

#[tokio::test]
async fn a_shard_that_is_given_no_plan_exits() {
    let idle = |directory: &Path| {
        let mut command = command(directory, "127.0.0.1:0");
        command.args(["--idle-limit", "1"]);
        command
    };
    let mut shard = Shard::start_by(None, &[], idle).await;
    assert_eq!(shard.exit_code().await, Some(75));
}

#[tokio::test]
async fn a_bad_credential_exits_with_64() {
    let directory = tempfile::tempdir().unwrap();
    let status = command(directory.path(), "127.0.0.1:0").status().await.unwrap();
    assert_eq!(status.code(), Some(64));
    let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
    assert!(log.contains("identity/token"), "{log}");
}
