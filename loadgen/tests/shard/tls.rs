//! TLS to the target against real servers: working settings, and error messages.

use std::net::Ipv4Addr;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};
use redisbench_testkit::servers::{RedisServer, free_port, wait_until};
use redisbench_wire::FailureReason;
use redisbench_wire::plan::{Tls, TlsVersion, Topology, TrialPlan, Trust};
use tempfile::TempDir;

use crate::client::{Shard, eventually};
use crate::plans::plan;
use crate::refusals::assert_refused_with;

/// A certificate and its key in PEM.
pub type Pair = (String, String);

/// A certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Self {
        Self::named("authority of a test")
    }

    fn named(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn issue(&self, name: &str) -> Pair {
        self.issue_with(name, |_| {})
    }

    fn issue_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Pair {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }
}

/// A redis-server with a TLS port and a plain port.
pub struct Secure {
    pub server: RedisServer,
    pub port: u16,
    directory: TempDir,
}

impl Secure {
    /// Starts a server with this certificate, which trusts clients of `authority`, with additional `arguments`.
    pub fn start((certificate, key): &Pair, authority: &Authority, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let files = [file("tls.crt", certificate), file("tls.key", key), file("ca.crt", &authority.pem())];
        // Another process may take the port first: try another one.
        let start = |_| {
            let port = free_port();
            let number = port.to_string();
            let mut all = vec!["--tls-port", &number, "--tls-cert-file", &files[0], "--tls-key-file", &files[1]];
            all.extend(["--tls-ca-cert-file", &files[2]]);
            if !arguments.contains(&"--tls-auth-clients") {
                all.extend(["--tls-auth-clients", "no"]);
            }
            all.extend(arguments);
            RedisServer::try_start(&all).map(|server| (server, port))
        };
        let (server, port) = (0..10).find_map(start).expect("no redis-server came up");
        Self { server, port, directory }
    }

    /// Replaces the server's certificate and the authority for clients. Open connections stay open.
    fn rotate(&self, (certificate, key): &Pair, authority: &Authority) {
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        let files = [
            ("tls-cert-file", path("tls.crt"), certificate),
            ("tls-key-file", path("tls.key"), key),
            ("tls-ca-cert-file", path("ca.crt"), &authority.pem()),
        ];
        let mut command = vec!["CONFIG", "SET"];
        for (setting, path, text) in &files {
            std::fs::write(path, text).unwrap();
            command.extend([*setting, path]);
        }
        let _: () = self.server.ask(&command);
    }

    fn endpoint(&self, host: &str) -> String {
        format!("{host}:{}", self.port)
    }

    fn assert_unloaded(&self) {
        assert_eq!(self.server.calls("get") + self.server.calls("set"), 0);
    }
}

pub fn trusting(trust: Trust) -> Tls {
    Tls { trust, client_certificate: false, server_name: None, minimum_version: TlsVersion::Tls12 }
}

fn within(tls: Tls, endpoint: &str) -> TrialPlan {
    let mut plan = plan(endpoint);
    plan.target.tls = Some(tls);
    plan
}

async fn assert_told(plan: &TrialPlan, files: &[(&str, &str)], parts: &[&str]) {
    assert_refused_with(plan, None, files, FailureReason::TlsFailed, parts).await;
}

/// Runs the whole plan, and compares the counts with the server's own.
async fn assert_runs(
    plan: &TrialPlan,
    credentials: Option<(&str, &str)>,
    files: &[(&str, &str)],
    server: &RedisServer,
) {
    server.reset_statistics();
    let mut shard = Shard::start_with(credentials, files).await;
    let snapshot = shard.run_plan(plan).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
    let preloaded = snapshot.preload_commands;
    assert_eq!(preloaded, 1000);
    let asked = server.calls("get") + server.calls("set");
    assert_eq!(asked, snapshot.total.succeeded + snapshot.warmup.succeeded + preloaded);
    assert_eq!(shard.cleaned_up().await, 1000);
    shard.ends_with(0).await;
}

#[tokio::test]
async fn a_private_authority_a_certificate_of_our_own_and_a_user() {
    let authority = Authority::new();
    let secure = Secure::start(&authority.issue("localhost"), &authority, &["--tls-auth-clients", "yes"]);
    let rules = ["ACL", "SETUSER", "bench", "on", ">secret", "~*", "+@all"];
    let _: () = secure.server.ask(&rules);
    let _: () = secure.server.ask(&["ACL", "SETUSER", "default", "-set", "-get"]);
    let client = authority.issue("bench");
    let ca = authority.pem();
    let files = [("targets/0/ca.crt", &*ca), ("targets/0/tls.crt", &*client.0), ("targets/0/tls.key", &*client.1)];
    let tls = Tls { client_certificate: true, ..trusting(Trust::Mounted) };
    let mut plan = within(Tls { minimum_version: TlsVersion::Tls13, ..tls.clone() }, &secure.endpoint("localhost"));
    plan.target.authenticate = true;
    assert_runs(&plan, Some(("bench", "secret")), &files, &secure.server).await;

    // Without a client certificate, and with an untrusted one.
    let without = Tls { client_certificate: false, ..tls.clone() };
    let parts = ["spec.targets[0].tls.clientCertificateSecretRef", "is not set", "set it"];
    assert_told(&within(without, &secure.endpoint("localhost")), &files, &parts).await;
    let parts = ["spec.targets[0].tls.clientCertificateSecretRef", "does not accept the certificate"];
    let strangers = ["another", "authority of a test"].map(|name| Authority::named(name).issue("bench"));
    for (certificate, key) in &strangers {
        let files = [("targets/0/ca.crt", &*ca), ("targets/0/tls.crt", certificate), ("targets/0/tls.key", key)];
        assert_told(&within(tls.clone(), &secure.endpoint("localhost")), &files, &parts).await;
    }
    let stranger = &strangers[0];
    let files = [("targets/0/ca.crt", &*ca), ("targets/0/tls.crt", &*client.0), ("targets/0/tls.key", &*stranger.1)];
    assert_told(&within(tls, &secure.endpoint("localhost")), &files, &["clientCertificateSecretRef", "key"]).await;
}

/// Both Secrets are rotated: the authority's and the client certificate's. The initial files no longer work in either direction.
#[tokio::test]
async fn rotated_certificates_let_connections_in_again() {
    let (before, after) = (Authority::new(), Authority::named("another authority"));
    let secure = Secure::start(&before.issue("localhost"), &before, &["--tls-auth-clients", "yes"]);
    let (ca, client) = (before.pem(), before.issue("bench"));
    let files = [("targets/0/ca.crt", &*ca), ("targets/0/tls.crt", &*client.0), ("targets/0/tls.key", &*client.1)];
    let tls = Tls { client_certificate: true, ..trusting(Trust::Mounted) };
    let plan = within(tls, &secure.endpoint("localhost"));
    let shard = Shard::start_with(None, &files).await;
    shard.prepared(&plan).await;

    let client = after.issue("bench");
    shard.write("targets/0/ca.crt", &after.pem());
    shard.write("targets/0/tls.crt", &client.0);
    shard.write("targets/0/tls.key", &client.1);
    secure.rotate(&after.issue("localhost"), &after);
    let _: u32 = secure.server.ask(&["CLIENT", "KILL", "TYPE", "normal"]);
    eventually("all connections are back", async || {
        let clients: String = secure.server.ask(&["CLIENT", "LIST"]);
        (clients.matches("name=redisbench").count() == plan.connections as usize).then_some(())
    })
    .await;
    let snapshot = shard.run(1).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (5000, 0), "{:?}", snapshot.errors);
}

#[tokio::test]
async fn a_certificate_that_does_not_verify_is_told_before_any_load() {
    let authority = Authority::new();
    let ca = authority.pem();
    let files = [("targets/0/ca.crt", &*ca)];
    let secure = Secure::start(&authority.issue("localhost"), &authority, &[]);
    let mounted = trusting(Trust::Mounted);

    for name in ["another", "authority of a test"] {
        let other = Authority::named(name).pem();
        let unknown = [("targets/0/ca.crt", &*other)];
        let parts = ["cart", "localhost", "spec.targets[0].tls.caSecretRef", "unknown issuer", "use the CA"];
        assert_told(&within(mounted.clone(), &secure.endpoint("localhost")), &unknown, &parts).await;
    }
    let parts = ["spec.targets[0].tls.caSecretRef is not set", "unknown issuer", "set it"];
    assert_told(&within(trusting(Trust::System), &secure.endpoint("localhost")), &[], &parts).await;

    let parts = ["spec.targets[0].tls.serverName", "not for 127.0.0.1", "localhost"];
    assert_told(&within(mounted.clone(), &secure.endpoint("127.0.0.1")), &files, &parts).await;
    let named = Tls { server_name: Some("redis.example".into()), ..mounted.clone() };
    assert_told(&within(named, &secure.endpoint("localhost")), &files, &["serverName", "redis.example"]).await;

    let missing = ["spec.targets[0].tls.caSecretRef", "ca.crt could not be read"];
    assert_told(&within(mounted.clone(), &secure.endpoint("localhost")), &[], &missing).await;
    let garbage = [("targets/0/ca.crt", "no certificate")];
    let parts = ["spec.targets[0].tls.caSecretRef", "has no PEM certificate"];
    assert_told(&within(mounted.clone(), &secure.endpoint("localhost")), &garbage, &parts).await;
    secure.assert_unloaded();

    let expired = authority.issue_with("localhost", |params| params.not_after = date_time_ymd(2020, 1, 1));
    let secure = Secure::start(&expired, &authority, &[]);
    let parts = ["spec.targets[0].tls", "has expired", "renew it"];
    assert_told(&within(mounted.clone(), &secure.endpoint("localhost")), &files, &parts).await;
    secure.assert_unloaded();

    let own = authority.issue_with("localhost", |params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    let secure = Secure::start(&own, &authority, &[]);
    let parts = ["spec.targets[0].tls.caSecretRef", "CA:TRUE"];
    assert_told(&within(mounted, &secure.endpoint("localhost")), &files, &parts).await;
    secure.assert_unloaded();
}

#[tokio::test]
async fn an_older_version_than_allowed_is_refused() {
    let authority = Authority::new();
    let secure = Secure::start(&authority.issue("localhost"), &authority, &["--tls-protocols", "TLSv1.2"]);
    let ca = authority.pem();
    let files = [("targets/0/ca.crt", &*ca)];
    let newer = Tls { minimum_version: TlsVersion::Tls13, ..trusting(Trust::Mounted) };
    let parts = ["spec.targets[0].tls.minimumVersion", "lower it"];
    assert_told(&within(newer, &secure.endpoint("localhost")), &files, &parts).await;
    secure.assert_unloaded();
    assert_runs(&within(trusting(Trust::Mounted), &secure.endpoint("localhost")), None, &files, &secure.server).await;
}

#[tokio::test]
async fn any_certificate_is_good_where_nobody_looks() {
    let authority = Authority::new();
    let secure = Secure::start(&authority.issue("elsewhere"), &authority, &[]);
    assert_runs(&within(trusting(Trust::Anyone), &secure.endpoint("localhost")), None, &[], &secure.server).await;
}

#[tokio::test]
async fn a_plain_port_and_a_tls_port_are_told_from_each_other() {
    let authority = Authority::new();
    let secure = Secure::start(&authority.issue("localhost"), &authority, &["--tls-auth-clients", "yes"]);
    let plain = within(trusting(Trust::Anyone), &secure.server.endpoint());
    let parts = ["uses plaintext, not TLS, on this port", "spec.targets[0].endpoints", "spec.targets[0].tls"];
    assert_told(&plain, &[], &parts).await;
    let clear = plan(&secure.endpoint("127.0.0.1"));
    assert_told(&clear, &[], &["uses TLS: set spec.targets[0].tls"]).await;
    secure.assert_unloaded();
}

/// Each node is verified by the host name that it announces.
#[tokio::test]
async fn nodes_of_a_cluster_have_names_of_their_own() {
    let authority = Authority::new();
    let names = |params: &mut CertificateParams| {
        let address = rcgen::SanType::IpAddress(Ipv4Addr::LOCALHOST.into());
        params.subject_alt_names.push(address);
    };
    let pair = authority.issue_with("localhost", names);
    let secure = Secure::start(&pair, &authority, &["--cluster-enabled", "yes", "--tls-cluster", "yes"]);
    let _: () = secure.server.ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    let is_up = || secure.server.ask::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
    wait_until("the cluster is up", is_up);
    let ca = authority.pem();
    let mut plan = within(trusting(Trust::Mounted), &secure.endpoint("localhost"));
    plan.target.topology = Topology::Cluster;
    assert_runs(&plan, None, &[("targets/0/ca.crt", &ca)], &secure.server).await;
}
