//! TLS to the target with `local`: from the Secrets in the manifest to the verdict.

use redisbench_testkit::servers::RedisServer;
use serde_json::{Value, json};

use crate::support::{Run, list, number, secure};

/// A benchmark of `spec`, with GETs of a hundred keys.
fn of_gets(mut spec: Value) -> Value {
    spec["workload"] = json!({"operations": [{"name": "get", "command": "GET __key__"}], "keys": {"count": 100}});
    let metadata = json!({"name": "secure"});
    json!({"apiVersion": "redisbench.dev/v1alpha1", "kind": "RedisBenchmark", "metadata": metadata, "spec": spec})
}

fn secret(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})
}

/// `documents` in one file with the Secrets of an authority and of a client that it trusts.
fn with_certificates(documents: Vec<Value>, certificate: &str, key: &str) -> String {
    let certificates = [
        secret("ca", &json!({"ca.crt": certificate})),
        secret("client", &json!({"tls.crt": certificate, "tls.key": key})),
    ];
    let documents = certificates.into_iter().chain(documents).map(|document| document.to_string());
    documents.collect::<Vec<_>>().join("\n---\n")
}

/// A benchmark with the Secrets that it refers to.
fn manifest(port: u16, tls: &Value, certificate: &str, key: &str) -> String {
    manifest_of(port, tls, certificate, key, None)
}

fn manifest_of(port: u16, tls: &Value, certificate: &str, key: &str, clients: Option<&Value>) -> String {
    let mut benchmark = of_gets(json!({
        "targets": [{"name": "redis", "type": "Standalone", "endpoints": [format!("localhost:{port}")], "tls": tls}],
        "load": {"type": "ClosedLoop", "connections": 2, "duration": "1s", "warmup": "0s"},
        // A probe would send requests of its own.
        "measurement": {"probe": false},
    }));
    if let Some(clients) = clients {
        benchmark["spec"]["load"]["clients"] = clients.clone();
    }
    with_certificates(vec![benchmark], certificate, key)
}

#[test]
fn certificates_come_from_secrets_and_their_absence_of_trust_is_noted() {
    let directory = tempfile::tempdir().unwrap();
    let (redis, port, certificate, key) = secure(directory.path(), &[]);
    let client = json!({"name": "client"});
    let trusted = json!({"caSecretRef": {"name": "ca"}, "clientCertificateSecretRef": client});
    let anyone = json!({"insecureSkipVerify": true, "clientCertificateSecretRef": client});
    for (tls, noted) in [(&trusted, false), (&anyone, true)] {
        let finished = Run::local(&manifest(port, tls, &certificate, &key), &[]).finish();
        finished.assert_balanced();
        let status = finished.succeeded();
        assert_eq!(number(&status["result"]["requests"]["errors"]), 0);
        let note = list(&status["verdict"]["reasons"]).iter().find(|reason| reason["reason"] == "NotVerified");
        assert_eq!(note.map(|note| &note["severity"]), noted.then_some(&json!("Valid")), "{status:#}");
        let secret = key.lines().nth(1).unwrap();
        assert!(!finished.object.to_string().contains(secret) && !finished.stderr.contains(secret));
    }
    assert!(redis.calls("get") > 0);
    let baseline = Run::local(&manifest(port, &trusted, &certificate, &key), &["--baseline", "--shards", "1"]).finish();
    assert_eq!(baseline.code, Some(0), "{}", baseline.stderr);
    let throwaway = Run::local(&manifest(port, &trusted, &certificate, &key), &["--with-redis"]).finish();
    throwaway.succeeded();
    assert!(throwaway.stderr.contains("with TLS from a throwaway CA"), "{}", throwaway.stderr);
}

#[test]
fn client_libraries_speak_tls() {
    let directory = tempfile::tempdir().unwrap();
    let (redis, port, certificate, key) = secure(directory.path(), &[]);
    let client = json!({"name": "client"});
    let trusted = json!({"caSecretRef": {"name": "ca"}, "clientCertificateSecretRef": client});
    let anyone = json!({"insecureSkipVerify": true, "clientCertificateSecretRef": client});
    for library in ["RedisRs", "Fred", "SmartBatching"] {
        for tls in [&trusted, &anyone] {
            let clients = json!([{"name": "subject", "type": library}]);
            let before = redis.calls("get");
            let finished = Run::local(&manifest_of(port, tls, &certificate, &key, Some(&clients)), &[]).finish();
            let status = finished.succeeded();
            let requests = &status["result"]["requests"];
            assert_eq!(number(&requests["errors"]), 0, "{library}: {status:#}");
            assert_eq!(redis.calls("get") - before, number(&requests["succeeded"]), "{library}: {status:#}");
        }
    }
}

#[test]
fn a_certificate_of_somebody_else_fails_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let (redis, port, _, key) = secure(directory.path(), &[]);
    let stranger = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem();
    let tls = json!({"caSecretRef": {"name": "ca"}});
    let finished = Run::local(&manifest(port, &tls, &stranger, &key), &[]).finish();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let failed = finished.condition("Failed");
    assert_eq!((&failed["status"], &failed["reason"]), (&json!("True"), &json!("TlsFailed")));
    let message = failed["message"].as_str().unwrap();
    assert!(message.contains("spec.targets[0].tls.caSecretRef") && message.contains("unknown issuer"), "{message}");
    assert_eq!(redis.calls("get"), 0);
}

/// Five trials of 200 requests for each of two targets.
#[test]
fn targets_with_passwords_and_tls_of_their_own_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    let (encrypted, port, certificate, key) = secure(directory.path(), &["--requirepass", "password-of-tls"]);
    let plain = RedisServer::start(&["--requirepass", "password-of-plain"]);
    let text = |password: &str| {
        let login = |name: &str| json!({"secretRef": {"name": name}});
        let tls = json!({"caSecretRef": {"name": "ca"}, "clientCertificateSecretRef": {"name": "client"}});
        let benchmark = of_gets(json!({
            "targets": [
                {"name": "plain", "type": "Standalone", "endpoints": [plain.endpoint()], "auth": login("of-plain")},
                {"name": "tls", "type": "Standalone", "endpoints": [format!("localhost:{port}")],
                    "auth": login("of-tls"), "tls": tls},
            ],
            "comparison": {"baseline": "plain"},
            "repeats": {"count": 5},
            "load": {"type": "ClosedLoop", "connections": 2, "requests": 200, "warmup": "0s",
                "timeouts": {"request": "30s"}},
        }));
        let of = |name: &str, password: &str| secret(name, &json!({"password": password}));
        let documents = vec![of("of-plain", "password-of-plain"), of("of-tls", password), benchmark];
        with_certificates(documents, &certificate, &key)
    };
    let both_are_measured = |arguments: &[&str]| {
        let finished = Run::local(&text("password-of-tls"), arguments).finish();
        let status = finished.succeeded();
        assert!(["Valid", "Degraded"].iter().any(|value| status["verdict"]["value"] == *value), "{status:#}");
        for target in ["plain", "tls"] {
            let own = list(&status["trials"]).iter().filter(|line| line["target"] == target);
            let succeeded: Vec<u64> = own.map(|line| number(&line["requests"]["succeeded"])).collect();
            assert_eq!(succeeded, [200; 5], "{target}: {status:#}");
        }
        let printed = format!("{}{}", finished.object, finished.stderr);
        assert!(!printed.contains("password-of") && !printed.contains(key.lines().nth(1).unwrap()));
        finished
    };
    both_are_measured(&[]);
    assert_eq!((plain.calls("get"), encrypted.calls("get")), (1_000, 1_000));

    let throwaway = both_are_measured(&["--with-redis"]).stderr;
    for started in ["plain: using a throwaway redis-server at", "tls: using a throwaway redis-server, with TLS from"] {
        assert!(throwaway.contains(&format!("target {started}")), "{throwaway}");
    }
    assert!(!throwaway.contains("equal servers"), "{throwaway}");

    let refused = Run::local(&text("password-of-plain"), &[]).finish();
    let failed = refused.condition("Failed");
    let message = failed["message"].as_str().unwrap();
    assert_eq!((&failed["status"], &failed["reason"]), (&json!("True"), &json!("AuthenticationFailed")), "{message}");
    assert!(message.contains("target tls ") && message.contains("spec.targets[1].auth.secretRef"), "{message}");
}
