//! The commands for a cluster with a fake API server, which has one benchmark, one Secret, and what a test adds.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Program, run_with};
use crate::usage::GOOD;

/// Follows the benchmark in a manifest.
const OTHERS: &str = "---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: hunter2}
---
apiVersion: v1
kind: Service
metadata: {name: redis}
";
const BENCHMARK: &str = "/apis/redisbench.dev/v1alpha1/namespaces/perf/redisbenchmarks/tiny";
const BENCHMARKS: &str = "/apis/redisbench.dev/v1alpha1/namespaces/perf/redisbenchmarks";
const EVERYWHERE: &str = "/apis/redisbench.dev/v1alpha1/redisbenchmarks";
const PODS: &str = "/api/v1/namespaces/perf/pods";
const SECRET: &str = "/api/v1/namespaces/perf/secrets/login";

/// Status code and message.
type Refusal = (u16, &'static str);

/// The server's behaviour besides storing objects.
#[derive(Clone, Default)]
struct Script {
    /// The benchmark's status before an apply. None if there is no benchmark.
    before: Option<Value>,
    /// The statuses that a watch delivers, one after the other.
    then: Vec<Value>,
    /// The status that a watch delivers once `spec.abort` is true.
    aborted: Option<Value>,
    /// The refusal of an apply.
    refusal: Option<Refusal>,
    /// Other objects by path, or how reading and writing them is refused.
    others: Vec<(String, Result<Value, Refusal>)>,
}

#[derive(Clone, Default)]
struct Server {
    script: Script,
    reads: Arc<Mutex<Vec<String>>>,
    writes: Arc<Mutex<Vec<(Uri, String, Value)>>>,
    abort: Arc<tokio::sync::Notify>,
}

fn benchmark(status: &Value) -> Value {
    let mut object: Value = json!({
        "apiVersion": "redisbench.dev/v1alpha1", "kind": "RedisBenchmark",
        "metadata": {"name": "tiny", "namespace": "perf", "uid": "1", "resourceVersion": "7", "generation": 1,
            "managedFields": [{"manager": "kubectl-redisbench", "operation": "Apply"}]},
        "spec": {
            "targets": [{"name": "redis", "type": "Standalone", "endpoints": ["redis:6379"]}],
            "workload": {"operations": [{"name": "get", "command": "GET __key__"}]},
            "load": {"type": "ClosedLoop", "duration": "1s"},
        },
    });
    if !status.is_null() {
        object["status"] = status.clone();
    }
    object
}

/// The answer of a server for a path that it does not have.
const NO_PATH: &str = "404 page not found";

fn failure(code: u16, message: &str) -> Response {
    let status = StatusCode::from_u16(code).unwrap();
    if message == NO_PATH {
        return (status, message.to_owned()).into_response();
    }
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message,
        "reason": if code == 404 { "NotFound" } else { "Invalid" }});
    (status, axum::Json(body)).into_response()
}

async fn serve(State(server): State<Server>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    if method == Method::GET {
        server.reads.lock().unwrap().push(uri.to_string());
    }
    let asked = |kept: &Result<Value, Refusal>| method == Method::GET || kept.is_err();
    let other = server.script.others.iter().find(|(path, kept)| path == uri.path() && asked(kept));
    match other {
        Some((_, Ok(object))) => return axum::Json(object).into_response(),
        Some((_, Err((code, message)))) => return failure(*code, message),
        None => {}
    }
    let watching = uri.query().is_some_and(|query| query.contains("watch=true"));
    match (method, uri.path(), watching) {
        (Method::GET, BENCHMARK, _) => match &server.script.before {
            Some(status) => axum::Json(benchmark(status)).into_response(),
            None => failure(404, "not found"),
        },
        (Method::GET, BENCHMARKS, false) => axum::Json(json!({
            "kind": "RedisBenchmarkList", "apiVersion": "redisbench.dev/v1alpha1", "metadata": {"resourceVersion": "8"},
            "items": [benchmark(&Value::Null)],
        }))
        .into_response(),
        (Method::GET, BENCHMARKS, true) => watch(&server),
        (Method::PATCH, path, _) => {
            let body: Value = serde_json::from_slice(&body).unwrap();
            let kind = headers["content-type"].to_str().unwrap().to_owned();
            server.writes.lock().unwrap().push((uri.clone(), kind, body.clone()));
            if body["spec"]["abort"] == true {
                server.abort.notify_one();
            }
            match (path, &server.script.refusal) {
                (BENCHMARK, Some((code, message))) => failure(*code, message),
                (BENCHMARK, None) => axum::Json(benchmark(&Value::Null)).into_response(),
                (SECRET, _) => axum::Json(body).into_response(),
                _ => failure(404, "not found"),
            }
        }
        _ => failure(404, "not found"),
    }
}

fn watch(server: &Server) -> Response {
    let event = |status: &Value| {
        let event = json!({"type": "MODIFIED", "object": benchmark(status)});
        Ok::<_, std::io::Error>(Bytes::from(format!("{event}\n")))
    };
    let first: Vec<_> = server.script.then.iter().map(event).collect();
    let (aborted, abort) = (server.script.aborted.clone(), Arc::clone(&server.abort));
    let last = futures::stream::once(async move {
        abort.notified().await;
        event(&aborted.unwrap())
    });
    Response::new(Body::from_stream(futures::StreamExt::chain(futures::stream::iter(first), last)))
}

/// A server with the behaviour of `script`, and a kubeconfig for it.
async fn start(script: Script) -> (Server, TempDir) {
    let server = Server { script, ..Server::default() };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().fallback(serve).with_state(server.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let directory = tempfile::tempdir().unwrap();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "test", "user": {}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "perf"}}],
    });
    std::fs::write(directory.path().join("config"), config.to_string()).unwrap();
    (server, directory)
}

fn program(directory: &TempDir, arguments: &[&str]) -> Program {
    command(directory, &[&["run", "-f", "-"], arguments].concat())
}

fn command(directory: &TempDir, arguments: &[&str]) -> Program {
    let (config, manifest) = (directory.path().join("config"), GOOD.to_owned() + OTHERS);
    run_with(arguments, &manifest, &[("KUBECONFIG", config.to_str().unwrap())])
}

async fn finish(program: Program) -> (Option<i32>, String, String) {
    tokio::task::spawn_blocking(|| program.finish()).await.unwrap()
}

fn succeeded() -> Value {
    json!({"phase": "Succeeded", "summary": {"verdict": "Valid"}, "verdict": {"value": "Valid", "limitedBy": "Unknown"}})
}

#[tokio::test]
async fn applies_follows_and_prints() {
    let then = vec![json!({"phase": "Preparing"}), json!({"phase": "Running"}), succeeded()];
    let (server, directory) = start(Script { then, ..Script::default() }).await;
    let (code, stdout, stderr) = finish(program(&directory, &[])).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.starts_with("tiny   Valid\n"), "{stdout}");
    assert!(stderr.contains("Service redis is not applied"), "{stderr}");
    assert!(stderr.contains("redisbenchmark/tiny in namespace perf"), "{stderr}");
    assert!(!stderr.contains("hunter2") && !stdout.contains("hunter2"));
    let writes = server.writes.lock().unwrap();
    assert_eq!(writes.iter().map(|(uri, ..)| uri.path()).collect::<Vec<_>>(), [SECRET, BENCHMARK]);
    for (uri, kind, _) in writes.iter() {
        assert_eq!(kind, "application/apply-patch+yaml");
        let query = uri.query().unwrap();
        assert!(
            query.contains("fieldManager=kubectl-redisbench") && query.contains("fieldValidation=Strict"),
            "{query}"
        );
        assert!(!query.contains("force"), "{query}");
    }
    assert_eq!(writes[1].2["spec"]["load"], json!({"type": "ClosedLoop", "duration": "1s"}), "no defaults of ours");
}

#[tokio::test]
async fn result_decides_the_exit_code() {
    let invalid = json!({"phase": "Succeeded", "verdict": {"value": "Invalid", "limitedBy": "Unknown"}});
    let (_server, directory) = start(Script { then: vec![invalid], ..Script::default() }).await;
    let (code, stdout, _) = finish(program(&directory, &["-o", "yaml"])).await;
    assert_eq!(code, Some(1));
    assert!(stdout.contains("value: Invalid"), "{stdout}");
    assert!(!stdout.contains("managedFields"), "{stdout}");
}

#[tokio::test]
async fn finished_benchmark_of_the_same_name_stands_in_the_way() {
    let (server, directory) = start(Script { before: Some(succeeded()), ..Script::default() }).await;
    let (code, _, stderr) = finish(program(&directory, &[])).await;
    assert_eq!(code, Some(2));
    assert!(stderr.contains("kubectl -n perf delete redisbenchmark tiny"), "{stderr}");
    assert!(server.writes.lock().unwrap().is_empty());
}

#[tokio::test]
async fn refusals_are_about_the_manifest() {
    let refusal = Some((422, "spec.load: Invalid value: too much"));
    let (_server, directory) = start(Script { refusal, ..Script::default() }).await;
    let (code, _, stderr) = finish(program(&directory, &[])).await;
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("standard input: refused by the API server: spec.load: Invalid value: too much"),
        "{stderr}"
    );

    let refused = json!({"phase": "Pending", "conditions": [{"type": "Accepted", "status": "False",
        "reason": "InvalidSpec", "message": "spec.load: wrong", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
    let (_server, directory) = start(Script { then: vec![refused], ..Script::default() }).await;
    let (code, _, stderr) = finish(program(&directory, &[])).await;
    assert_eq!(code, Some(2));
    assert!(stderr.contains("not accepted: spec.load: wrong"), "{stderr}");

    let (_server, directory) = start(Script::default()).await;
    let (code, _, stderr) = finish(program(&directory, &["-n", "elsewhere", "--context", "none"])).await;
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("failed to read the kubeconfig"), "{stderr}");
}

#[tokio::test]
async fn cluster_without_the_chart_is_told_apart() {
    let refusal = Some((404, NO_PATH));
    let (_server, directory) = start(Script { refusal, ..Script::default() }).await;
    let (code, _, stderr) = finish(program(&directory, &[])).await;
    assert_eq!(code, Some(1));
    assert!(stderr.contains("install the chart redisbench-operator first"), "{stderr}");
}

#[tokio::test]
async fn api_server_is_quoted_with_the_way_out() {
    for (code, message, way_out) in [
        (404, "namespaces \"perf\" not found", "kubectl create namespace perf"),
        (
            403,
            "redisbenchmarks is forbidden: User \"u\" cannot patch",
            "kubectl -n perf auth can-i patch redisbenchmarks",
        ),
        (
            409,
            "Apply failed with 1 conflict: conflict with \"argo\": .spec.load",
            "remove these fields from the manifest",
        ),
        (500, "etcd is\nnot ready", "etcd is not ready"),
    ] {
        let (_server, directory) = start(Script { refusal: Some((code, message)), ..Script::default() }).await;
        let (exit, _, stderr) = finish(program(&directory, &[])).await;
        let said = stderr.lines().last().unwrap();
        assert_eq!(exit, Some(1), "{stderr}");
        let quoted = format!("error: failed to apply the benchmark: {}", message.replace('\n', " "));
        assert!(said.starts_with(&quoted) && said.contains(way_out), "{stderr}");
        assert!(!stderr.contains("Status {") && !stderr.contains("ApiError"), "{stderr}");
    }
}

#[tokio::test]
async fn a_write_without_permission_is_refused_with_its_verb() {
    let others = vec![(SECRET.to_owned(), Err((403, "secrets \"login\" is forbidden")))];
    let (server, directory) = start(Script { others, ..Script::default() }).await;
    let (code, _, stderr) = finish(program(&directory, &[])).await;
    assert_eq!(code, Some(1), "{stderr}");
    let said = stderr.lines().last().unwrap();
    assert!(said.starts_with("error: failed to apply a Secret: secrets \"login\" is forbidden; "), "{stderr}");
    assert!(said.ends_with("kubectl -n perf auth can-i patch secrets"), "{stderr}");
    assert!(server.writes.lock().unwrap().is_empty());

    let refusal = Some((403, "redisbenchmarks is forbidden"));
    let (_server, directory) = start(Script { before: Some(running()), refusal, ..Script::default() }).await;
    let (code, _, stderr) = finish(command(&directory, &["abort", "tiny", "--yes"])).await;
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.starts_with("error: failed to abort the benchmark: redisbenchmarks is forbidden; "), "{stderr}");
    assert!(stderr.ends_with("kubectl -n perf auth can-i patch redisbenchmarks\n"), "{stderr}");
}

#[tokio::test]
async fn interrupt_aborts_and_waits_for_the_result() {
    let script = Script {
        then: vec![json!({"phase": "Running"})],
        aborted: Some(json!({"phase": "Aborted"})),
        ..Script::default()
    };
    let (server, directory) = start(script).await;
    let mut program = program(&directory, &[]);
    let (program, stderr) = tokio::task::spawn_blocking(move || {
        let stderr = program.wait_for_line("Running");
        program.signal("INT");
        (program, stderr)
    })
    .await
    .unwrap();
    let (code, stdout, _) = finish(program).await;
    drop(stderr);
    assert_eq!(code, Some(1));
    assert!(stdout.starts_with("tiny   Aborted\n"), "{stdout}");
    let writes = server.writes.lock().unwrap();
    let (uri, kind, body) = writes.last().unwrap();
    assert_eq!(
        (uri.path(), kind.as_str(), body),
        (BENCHMARK, "application/merge-patch+json", &json!({"spec": {"abort": true}}))
    );
}

/// The full result of a trial with 20 requests.
fn result() -> String {
    let result = json!({
        "format": "redisbench.dev/result/v1", "benchmark": "tiny", "runId": "run",
        "trial": {"index": 0, "of": 1, "attempt": 1},
        "result": {
            "requests": {"scheduled": 20, "succeeded": 20, "errors": 0, "unsent": 0, "late": 0, "redirected": 0},
            "throughput": {"achievedPerSecond": 20, "minPerSecond": 20, "maxPerSecond": 20},
            "bandwidth": {"sentBytesPerSecond": 1, "receivedBytesPerSecond": 1},
            "responseTime": {"p50Nanoseconds": 1_000_000, "maxNanoseconds": 2_000_000},
        },
        "verdict": {"value": "Valid", "limitedBy": "Unknown"},
        "synchronization": {"startSkewMicroseconds": 0, "clockUncertaintyMicroseconds": 0, "commonWindowMilliseconds": 1000},
        "topology": {"primaries": 1, "replicas": 0}, "seconds": [], "shards": [],
    });
    result.to_string()
}

/// A benchmark whose full result has two pieces, of which only the first `stored` are there.
fn finished(stored: usize) -> Script {
    let artifact =
        |index: usize| json!({"name": format!("result.json.00{index}"), "configMap": format!("tiny-result-{index}")});
    let mut status = succeeded();
    status["runId"] = "run".into();
    status["artifacts"] = [0, 1].map(artifact).to_vec().into();
    let document = result();
    let (first, second) = document.split_at(document.len() / 2);
    let map = |(index, text): (usize, &str)| {
        let name = format!("tiny-result-{index}");
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {format!("result.json.00{index}"): text}});
        (format!("/api/v1/namespaces/perf/configmaps/{name}"), Ok(object))
    };
    let others = [first, second].into_iter().enumerate().take(stored).map(map).collect();
    Script { before: Some(status), others, ..Script::default() }
}

const EXPORT: [&str; 4] = ["export", "tiny", "--format", "csv"];

#[tokio::test]
async fn pieces_of_a_result_are_joined() {
    let (_server, directory) = start(finished(2)).await;
    let (code, stdout, stderr) = finish(command(&directory, &EXPORT)).await;
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let lines: Vec<_> = stdout.lines().skip(1).collect();
    assert_eq!(lines, [r#""all","20.00","","","1.000000","","","2.000000""#]);
}

#[tokio::test]
async fn what_is_missing_of_a_result_is_named() {
    let forbidden =
        |path: &str, message| Script { others: vec![(path.to_owned(), Err((403, message)))], ..finished(0) };
    let maps = "/api/v1/namespaces/perf/configmaps/tiny-result-0";
    for (script, code, said) in [
        (
            finished(1),
            2,
            "configmap/tiny-result-1: result.json.001: is missing: the full result was deleted or changed;",
        ),
        (forbidden(maps, "configmaps is forbidden"), 1, "kubectl -n perf auth can-i get configmaps"),
        (forbidden(BENCHMARK, "redisbenchmarks is forbidden"), 1, "kubectl -n perf auth can-i get redisbenchmarks"),
        (Script::default(), 1, "redisbenchmark tiny does not exist in namespace perf"),
        (
            Script { others: vec![(BENCHMARK.to_owned(), Err((404, NO_PATH)))], ..Script::default() },
            1,
            "install the chart redisbench-operator first",
        ),
        (
            Script { before: Some(json!({"phase": "Running"})), ..Script::default() },
            2,
            "redisbenchmark/tiny: status.phase: is Running, so there is no result yet; wait with kubectl wait",
        ),
    ] {
        let (_server, directory) = start(script).await;
        let (exit, stdout, stderr) = finish(command(&directory, &EXPORT)).await;
        assert_eq!((exit, stdout.as_str()), (Some(code), ""), "{stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(said), "{said}\n{stderr}");
    }
}

fn running() -> Value {
    json!({"phase": "Running", "runId": "r1", "progress": {"percent": 30, "achievedPerSecond": 5_000, "reasons": [
        {"reason": "ShardLost", "severity": "Invalid", "message": "1 of 2 shards are lost"},
    ]}})
}

#[tokio::test]
async fn what_is_in_the_way_is_said_with_the_way_out() {
    let before = |status| Script { before: Some(status), ..Script::default() };
    let refusing = |path: &str, refusal| Script { others: vec![(path.to_owned(), Err(refusal))], ..before(running()) };
    for (script, arguments, code, said) in [
        (
            before(running()),
            "result tiny",
            2,
            "redisbenchmark/tiny: status.phase: is Running, so there is no result yet",
        ),
        (before(running()), "compare tiny tiny", 2, "status.phase: is Running, so there is no result yet"),
        (
            before(running()),
            "status tniy",
            1,
            "redisbenchmark tniy does not exist in namespace perf; did you mean tiny?",
        ),
        (before(running()), "status xyz", 1, "; list -A shows those of all namespaces"),
        (before(running()), "abort tiny", 2, "there is no terminal to ask on: use --yes"),
        (before(json!({"phase": "Pending"})), "logs tiny", 1, "has no shards yet: it is Pending"),
        (before(succeeded()), "abort tiny --yes", 1, "redisbenchmark tiny has finished: it is Succeeded"),
        (refusing(BENCHMARKS, (403, "is forbidden")), "list", 1, "kubectl -n perf auth can-i list redisbenchmarks"),
        (refusing(EVERYWHERE, (403, "is forbidden")), "list -A", 1, "kubectl auth can-i list redisbenchmarks -A"),
        (refusing(BENCHMARKS, (404, NO_PATH)), "list", 1, "install the chart redisbench-operator first"),
        (refusing(PODS, (403, "is forbidden")), "logs tiny", 1, "kubectl -n perf auth can-i list pods"),
        (
            refusing(BENCHMARKS, (403, "is forbidden")),
            "watch tiny",
            1,
            "kubectl -n perf auth can-i list redisbenchmarks",
        ),
        (refusing(BENCHMARK, (401, "Unauthorized")), "status tiny", 1, "; log in to the cluster again"),
        (before(json!({"phase": "Hibernating"})), "status tiny", 1, "unknown variant `Hibernating`"),
        (before(json!({"phase": "Hibernating"})), "result tiny", 1, "use the redisbench of the operator's version"),
    ] {
        let (server, directory) = start(script).await;
        let arguments: Vec<_> = arguments.split(' ').collect();
        let (exit, stdout, stderr) = finish(command(&directory, &arguments)).await;
        assert_eq!((exit, stdout.as_str()), (Some(code), ""), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(said), "{said}\n{stderr}");
        assert!(server.writes.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn what_runs_is_listed_and_followed_to_its_end() {
    let script = Script { before: Some(running()), then: vec![running(), succeeded()], ..Script::default() };
    let (_server, directory) = start(script).await;
    let (code, stdout, _) = finish(command(&directory, &["list"])).await;
    assert_eq!(code, Some(0));
    assert!(stdout.starts_with("Benchmark") && stdout.contains("\ntiny "), "{stdout}");
    let (code, stdout, _) = finish(command(&directory, &["status", "tiny"])).await;
    assert_eq!(code, Some(0));
    assert!(stdout.contains("5.00k/s\n  Invalid ShardLost: 1 of 2 shards are lost\n"), "{stdout}");
    let (code, stdout, stderr) = finish(command(&directory, &["watch", "tiny"])).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.starts_with("tiny   Valid\n"), "{stdout}");
    assert!(stderr.contains("5.00k/s\n  Invalid ShardLost: 1 of 2 shards are lost\n"), "{stderr}");
}

#[tokio::test]
async fn an_abort_waits_for_the_end() {
    let aborted = Some(json!({"phase": "Aborted"}));
    let (server, directory) = start(Script { before: Some(running()), aborted, ..Script::default() }).await;
    let (code, _, stderr) = finish(command(&directory, &["abort", "tiny", "--yes"])).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("redisbenchmark/tiny is Aborted; see kubectl redisbench result -n perf tiny"), "{stderr}");
    let writes = server.writes.lock().unwrap();
    assert_eq!(writes.iter().map(|(_, _, body)| body).collect::<Vec<_>>(), [&json!({"spec": {"abort": true}})]);
}

#[tokio::test]
async fn logs_are_those_of_the_run() {
    let list = |items: Value| Ok(json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items}));
    let pod = json!({"metadata": {"name": "tiny-1", "labels": {"batch.kubernetes.io/job-completion-index": "1"}}});
    let log = (format!("{PODS}/tiny-1/log"), Ok(json!("ready")));
    let others = vec![(PODS.to_owned(), list(json!([pod]))), log];
    let (server, directory) = start(Script { before: Some(running()), others, ..Script::default() }).await;
    let (code, stdout, stderr) = finish(command(&directory, &["logs", "tiny", "--shard", "1"])).await;
    assert_eq!((code, stdout.as_str()), (Some(0), "\"ready\"\n"), "{stderr}");
    let reads = server.reads.lock().unwrap().join("\n");
    assert!(
        reads.contains("labelSelector=redisbench.dev%2Frun%3Dr1%2Cbatch.kubernetes.io%2Fjob-completion-index%3D1"),
        "{reads}"
    );
    let others = vec![(PODS.to_owned(), list(json!([])))];
    let (_server, directory) = start(Script { before: Some(running()), others, ..Script::default() }).await;
    let (code, _, stderr) = finish(command(&directory, &["logs", "tiny"])).await;
    assert_eq!((code, stderr.as_str()), (Some(1), "redisbenchmark tiny has no pods now: it is Running\n"));
}

#[tokio::test]
async fn the_operators_have_versions_too() {
    let operator = json!({
        "metadata": {"name": "rb", "namespace": "ops", "labels": {"app.kubernetes.io/version": "0.1.0"}},
        "status": {"readyReplicas": 2},
    });
    let found = json!({"apiVersion": "apps/v1", "kind": "DeploymentList", "metadata": {}, "items": [operator]});
    let others = vec![("/apis/apps/v1/deployments".to_owned(), Ok(found))];
    let (_server, directory) = start(Script { others, ..Script::default() }).await;
    let (code, stdout, _) = finish(command(&directory, &["version"])).await;
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(code, Some(0));
    assert_eq!(stdout, format!("client    {version}\noperator  0.1.0 in namespace ops (rb), 2 ready\n"));
}
