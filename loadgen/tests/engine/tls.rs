use std::path::Path;
use std::sync::Arc;

use redisbench_loadgen::cluster::{NodeAddress, Topology};
use redisbench_loadgen::engine::{Access, ConnectFailure, Tls};
use redisbench_testkit::servers::{RedisServer, free_port};
use redisbench_wire::histogram::Kind;
use redisbench_wire::plan::{Bound, Lifetime, LifetimeLimit, LifetimeSpread, Values};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use crate::harness::{Bench, SECOND, plan, standalone};

/// A redis-server with a TLS port and a plain port.
struct Secure {
    server: RedisServer,
    port: u16,
    tls: Tls,
}

impl Secure {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let tls = certify(directory.path());
        let [certificate, key] = ["certificate", "key"].map(|name| directory.path().join(name).display().to_string());
        // Another process may take the port first: try another one.
        let start = |_| {
            let port = free_port();
            let arguments =
                ["--tls-port", &port.to_string(), "--tls-auth-clients", "no", "--tls-cert-file", &certificate]
                    .map(str::to_owned);
            let key = ["--tls-key-file".to_owned(), key.clone()];
            let arguments: Vec<&str> = arguments.iter().chain(&key).map(String::as_str).collect();
            RedisServer::try_start(&arguments).map(|server| (server, port))
        };
        let (server, port) = (0..10).find_map(start).expect("no redis-server came up");
        Self { server, port, tls }
    }

    fn topology(&self) -> Topology {
        let mut topology = standalone(&self.server);
        let NodeAddress { address, label, .. } = &mut topology.nodes[0];
        address.set_port(self.port);
        *label = address.to_string();
        topology
    }
}

/// Writes a certificate for `localhost` and its key into `directory`. Returns settings that trust it.
fn certify(directory: &Path) -> Tls {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(directory.join("certificate"), certified.cert.pem()).unwrap();
    std::fs::write(directory.join("key"), certified.signing_key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certified.cert.pem().as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Tls { config: Arc::new(config), server_name: ServerName::try_from("localhost").ok(), parts: Arc::default() }
}

fn within(tls: Tls) -> Access {
    Access { tls: Some(tls), ..Access::default() }
}

#[tokio::test]
async fn counts_are_the_servers_whatever_the_size() {
    for (pipeline, value_bytes, requests) in [(1, 100, 500), (16, 100, 20_000), (16, 100_000, 2000)] {
        let secure = Secure::start();
        let mut plan = plan();
        (plan.pipeline, plan.connections) = (pipeline, 4);
        plan.workload_mut().values = Values::fixed(value_bytes);
        plan.bound = Bound::Requests { count: requests, max_nanoseconds: 60 * SECOND };
        let snapshot = Bench::with(plan, secure.topology(), 2, within(secure.tls.clone())).run().await;
        assert_eq!((snapshot.total.scheduled, snapshot.total.succeeded), (requests, requests));
        assert_eq!(secure.server.calls("get") + secure.server.calls("set"), requests);
        // The first connection of each worker reports receive delays.
        let delay = snapshot.generator.receive_delay.as_ref().unwrap();
        assert!(delay.connections == 2 && delay.counts.iter().sum::<u64>() > 0, "{delay:?}");
    }
}

#[tokio::test]
async fn handshakes_of_a_churn_have_times_of_their_own() {
    let secure = Secure::start();
    let mut plan = plan();
    plan.connection_lifetime =
        Some(Lifetime { limit: LifetimeLimit::Requests { count: 20 }, spread: LifetimeSpread::Together });
    plan.bound = Bound::Requests { count: 400, max_nanoseconds: 60 * SECOND };
    let snapshot = Bench::with(plan, secure.topology(), 1, within(secure.tls.clone())).run().await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (400, 0), "{:?}", snapshot.errors);
    let churn = snapshot.churn.unwrap();
    let [connects, handshakes] = [&churn.connect, churn.tls_handshake.as_ref().unwrap()]
        .map(|histogram| histogram.decode(Kind::Request).unwrap());
    assert!(churn.made > 0 && churn.closed <= 20, "{churn:?}");
    assert_eq!((connects.len(), handshakes.len()), (churn.made, churn.made));
    assert!(handshakes.min() > 0 && handshakes.max() <= connects.max());
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_gets_no_load() {
    let secure = Secure::start();
    let elsewhere = tempfile::tempdir().unwrap();
    let other_name = Tls { server_name: ServerName::try_from("redis.example").ok(), ..secure.tls.clone() };
    for tls in [certify(elsewhere.path()), other_name] {
        let (reason, message) = Bench::with(plan(), secure.topology(), 1, within(tls)).refused().await;
        assert_eq!(reason, ConnectFailure::NotSecure);
        assert!(message.contains("TLS: invalid peer certificate"), "{message}");
    }
    assert_eq!(secure.server.calls("get") + secure.server.calls("set"), 0);
}

#[tokio::test]
async fn a_server_without_tls_is_told_from_one_that_is_away() {
    let secure = Secure::start();
    let mut plan = plan();
    plan.timeouts.connect_nanoseconds = SECOND / 5;
    let access = within(secure.tls.clone());
    let (reason, message) = Bench::with(plan, standalone(&secure.server), 1, access).refused().await;
    assert_eq!(reason, ConnectFailure::NotSecure);
    assert!(message.contains("does the server use TLS on this port?"), "{message}");
}
