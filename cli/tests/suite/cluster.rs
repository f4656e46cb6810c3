//! `run` with a fake API server, which has one benchmark and one Secret.

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
const SECRET: &str = "/api/v1/namespaces/perf/secrets/login";

/// The server's behaviour besides storing objects.
#[derive(Clone, Default)]
struct Script {
    /// The benchmark's status before an apply. None if there is no benchmark.
    before: Option<Value>,
    /// The statuses that a watch delivers, one after the other.
    then: Vec<Value>,
    /// The status that a watch delivers once `spec.abort` is true.
    aborted: Option<Value>,
    /// How an apply is refused.
    refusal: Option<(u16, &'static str)>,
}

#[derive(Clone, Default)]
struct Server {
    script: Script,
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

fn failure(code: u16, message: &str) -> Response {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message,
        "reason": if code == 404 { "NotFound" } else { "Invalid" }});
    (StatusCode::from_u16(code).unwrap(), axum::Json(body)).into_response()
}

async fn serve(State(server): State<Server>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
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
        _ => failure(404, "404 page not found"),
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
    let (config, manifest) = (directory.path().join("config"), GOOD.to_owned() + OTHERS);
    run_with(&[&["run", "-f", "-"], arguments].concat(), &manifest, &[("KUBECONFIG", config.to_str().unwrap())])
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
    let refusal = Some((404, "404 page not found"));
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
