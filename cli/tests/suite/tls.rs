//! TLS to the target with `local`: from the Secrets in the manifest to the verdict.

use serde_json::{Value, json};

use crate::support::{Run, list, number, secure};

/// A benchmark with the Secrets that it refers to.
fn manifest(port: u16, tls: &Value, certificate: &str, key: &str) -> String {
    let benchmark = json!({
        "apiVersion": "redisbench.dev/v1alpha1",
        "kind": "RedisBenchmark",
        "metadata": {"name": "secure"},
        "spec": {
            "targets": [{"name": "redis", "type": "Standalone", "endpoints": [format!("localhost:{port}")], "tls": tls}],
            "workload": {"operations": [{"name": "get", "command": "GET __key__"}], "keys": {"count": 100}},
            "load": {"type": "ClosedLoop", "connections": 2, "duration": "1s", "warmup": "0s"},
        },
    });
    let secret = |name: &str, data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
    let documents = [
        secret("ca", json!({"ca.crt": certificate})),
        secret("client", json!({"tls.crt": certificate, "tls.key": key})),
        benchmark,
    ];
    documents.map(|document| document.to_string()).join("\n---\n")
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
