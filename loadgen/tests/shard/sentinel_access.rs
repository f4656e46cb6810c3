//! Access to real sentinels: their own password, TLS, or neither while the servers use them.

use redisbench_testkit::sentinel::{Sentinel, pair};
use redisbench_testkit::servers::{free_port, wait_until};
use redisbench_wire::FailureReason;
use redisbench_wire::plan::{Sentinels, Transport, TrialPlan, Trust};
use tempfile::TempDir;

use crate::client::{Shard, eventually};
use crate::load::assert_sent;
use crate::plans::steady;
use crate::refusals::{assert_refused, assert_refused_with};
use crate::sentinel::watched;
use crate::tls::{Authority, Pair, Secure, trusting};

const PASSWORD: &str = "watch";

/// The configuration of a sentinel with TLS on `port`.
fn lines(directory: &TempDir, port: u16, (certificate, key): &Pair, authority: &Authority) -> Vec<String> {
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    vec![
        format!("tls-port {port}"),
        format!("tls-cert-file {}", file("tls.crt", certificate)),
        format!("tls-key-file {}", file("tls.key", key)),
        format!("tls-ca-cert-file {}", file("ca.crt", &authority.pem())),
        "tls-auth-clients no".to_owned(),
    ]
}

fn asking(sentinel: &str, own: Option<Sentinels>) -> TrialPlan {
    let mut plan = watched(sentinel, "mymaster");
    plan.target.sentinels = own;
    plan
}

#[tokio::test]
async fn a_failover_is_followed_by_a_password_and_tls_that_only_sentinels_have() {
    let (mut primary, replica) = pair();
    let (authority, directory, port) = (Authority::new(), tempfile::tempdir().unwrap(), free_port());
    let mut lines = lines(&directory, port, &authority.issue("localhost"), &authority);
    lines.push(format!("requirepass {PASSWORD}"));
    let sentinel = Sentinel::start_with(primary.address().port(), 1, &lines);
    wait_until("the sentinel knows the replica", || sentinel.is_ready(0));
    let own = Sentinels { authenticate: true, transport: Transport::Tls(trusting(Trust::Mounted)) };
    let plan = steady(asking(&format!("localhost:{port}"), Some(own)), 1000, 5);
    let ca = authority.pem();
    let files = [("targets/0/sentinel/ca.crt", &*ca), ("targets/0/sentinel/password", PASSWORD)];

    let shard = Shard::start_with(None, &files).await;
    shard.prepared(&plan).await;
    let before = primary.calls("get");
    shard.begin(1).await;
    eventually("the primary is loaded", async || (primary.calls("get") > before + 500).then_some(())).await;
    primary.kill();
    let snapshot = shard.finished().await;
    assert!(snapshot.total.balances(), "{:?}", snapshot.total);
    assert_sent(&snapshot.total);
    assert!(snapshot.total.errors < 500 && replica.calls("get") > 0, "{:?}", snapshot.errors);

    let wrong = [files[0], ("targets/0/sentinel/password", "guessed")];
    let parts = ["sentinel localhost", "refused the password", "check spec.targets[0].sentinel.auth.secretRef"];
    assert_refused_with(&plan, None, &wrong, FailureReason::AuthenticationFailed, &parts).await;
    let parts = ["the password could not be read", "spec.targets[0].sentinel.auth.secretRef"];
    assert_refused_with(&plan, None, &files[..1], FailureReason::AuthenticationFailed, &parts).await;
    let stranger = Authority::new().pem();
    let parts = ["spec.targets[0].sentinel.transport.tls.caSecretRef", "unknown issuer"];
    assert_refused_with(
        &plan,
        None,
        &[("targets/0/sentinel/ca.crt", &*stranger), files[1]],
        FailureReason::TlsFailed,
        &parts,
    )
    .await;
    let without = asking(&sentinel.endpoint(), None);
    let parts = ["needs a password: set spec.targets[0].sentinel.auth.secretRef"];
    assert_refused(&without, FailureReason::AuthenticationFailed, &parts).await;
}

#[tokio::test]
async fn sentinels_of_servers_within_tls_are_within_it_too_unless_they_are_said_to_be_plain() {
    let authority = Authority::new();
    let certificate = authority.issue("localhost");
    let secure = Secure::start(&certificate, &authority, &[]);
    let (directory, port) = (tempfile::tempdir().unwrap(), free_port());
    let mut lines = lines(&directory, port, &certificate, &authority);
    lines.push("tls-replication yes".to_owned());
    let sentinel = Sentinel::start_with(secure.port, 1, &lines);
    wait_until("the sentinel sees the primary", || {
        format!("{:?}", sentinel.ask(&["SENTINEL", "MASTER", "mymaster"])).contains("bulk-string('\"master\"')")
    });
    let ca = authority.pem();
    let files = [("targets/0/ca.crt", &*ca)];
    let within = |mut plan: TrialPlan| {
        let mut tls = trusting(Trust::Mounted);
        // Sentinels name the primary by its address, which is not in its certificate.
        tls.server_name = Some("localhost".into());
        plan.target.tls = Some(tls);
        plan
    };
    let plain = Sentinels { authenticate: false, transport: Transport::Plain };
    for (endpoint, own) in [(format!("localhost:{port}"), None), (sentinel.endpoint(), Some(plain.clone()))] {
        let snapshot = Shard::start_with(None, &files).await.run_plan(&within(asking(&endpoint, own))).await;
        assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
    }
    let wrong = within(asking(&format!("localhost:{port}"), Some(plain)));
    let parts = ["uses TLS: set spec.targets[0].sentinel.transport.tls"];
    assert_refused_with(&wrong, None, &files, FailureReason::TlsFailed, &parts).await;
}
