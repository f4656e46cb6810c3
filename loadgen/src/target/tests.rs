//! One look at servers with scripted answers.

use std::net::Ipv4Addr;

use redisbench_wire::plan::{Target, Topology as Kind, TrialPlan};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;
use crate::sample;

/// A server that sends the first text as greeting, if any, and answers each command by its name from the rest.
struct Script {
    endpoint: String,
    task: JoinHandle<()>,
}

impl Drop for Script {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Script {
    async fn start(greeting: &'static str, answers: &'static [(&'static str, &'static str)]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let endpoint = listener.local_addr().unwrap().to_string();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(greeting.as_bytes()).await;
                let mut buffer = [0; 4096];
                // Commands are small and sent one at a time, so each arrives in one read.
                while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                    let command = String::from_utf8_lossy(&buffer[..length]).into_owned();
                    let answer = answers.iter().find(|(name, _)| command.contains(name));
                    let Some((_, answer)) = answer.filter(|(_, answer)| !answer.is_empty()) else { break };
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            }
        });
        Self { endpoint, task }
    }
}

fn plan(topology: Kind, endpoints: &[&str]) -> ShardPlan {
    let endpoints = endpoints.iter().map(|endpoint| (*endpoint).to_owned()).collect();
    let plan = sample::plan();
    TrialPlan { target: Target { topology, endpoints, ..plan.target.clone() }, ..plan }.of_shard(1)
}

async fn look_at(topology: Kind, endpoints: &[&str]) -> Finding {
    look(&plan(topology, endpoints), &TargetAccess::default(), None, false).await
}

/// However many shards notice the same failure, and whatever it is.
#[test]
fn all_shards_together_look_at_most_a_thousand_times_per_second() {
    for shards in [1, 1_000, 5_000] {
        for topology in [Kind::Cluster, Kind::Sentinel, Kind::Standalone] {
            let plan = TrialPlan { shards, ..TrialPlan::clone(&plan(topology, &["127.0.0.1:1"])) }.of_shard(0);
            for why in [Again::Settling, Again::NodeGone, Again::Moved, Again::Unanswered] {
                let pause = why.pause(&plan);
                assert!(
                    pause >= Duration::from_millis(shards.into()),
                    "{shards} shards, {topology:?}, {why:?}: {pause:?}"
                );
            }
        }
    }
}

const INFO: &str = "$19\r\ncluster_enabled:0\r\n\r\n";
const GOOD: &[(&str, &str)] = &[
    ("INFO\r\n$3\r\nGET", "*1\r\n*2\r\n$3\r\nget\r\n:2\r\n"),
    ("INFO", INFO),
    ("ROLE", "-NOPERM no\r\n"),
    ("SETNAME", "+OK\r\n"),
];

#[tokio::test]
async fn a_server_as_expected_is_found() {
    let server = Script::start("", GOOD).await;
    let finding = look_at(Kind::Standalone, &[&server.endpoint]).await;
    let Finding::Found(found) = finding else { panic!("{finding:?}") };
    assert_eq!(found.topology.nodes.len(), 1);
    assert_eq!((&found.topology.nodes[0].label, found.topology.slots), (&server.endpoint, None));
}

#[tokio::test]
async fn what_the_user_may_not_ask_is_left_out() {
    const REFUSING: &[(&str, &str)] =
        &[("INFO", "-NOPERM no\r\n"), ("ROLE", "-NOPERM no\r\n"), ("SETNAME", "-NOPERM no\r\n")];
    let server = Script::start("", REFUSING).await;
    assert!(matches!(look_at(Kind::Standalone, &[&server.endpoint]).await, Finding::Found(_)));
}

#[tokio::test]
async fn a_loading_server_is_waited_for() {
    const TOLD: &[(&str, &str)] = &[("INFO", "$34\r\nloading:1\r\nloading_eta_seconds:7\r\n\r\n")];
    const REFUSED: &[(&str, &str)] = &[("INFO", "-LOADING Redis is loading the dataset in memory\r\n")];
    for (answers, part) in [(TOLD, "7 s left"), (REFUSED, "LOADING")] {
        let server = Script::start("", answers).await;
        let finding = look_at(Kind::Standalone, &[&server.endpoint]).await;
        assert!(matches!(&finding, Finding::Waiting(text) if text.contains(part)), "{finding:?}");
    }
}

#[tokio::test]
async fn a_full_server_may_get_room() {
    let server = Script::start("-ERR max number of clients reached\r\n", &[("INFO", "")]).await;
    let finding = look_at(Kind::Standalone, &[&server.endpoint]).await;
    assert!(
        matches!(&finding, Finding::Obstacle(failure) if failure.reason == FailureReason::Unreachable),
        "{finding:?}"
    );
}

#[tokio::test]
async fn what_speaks_no_redis_is_an_obstacle() {
    for greeting in ["", "HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let server = Script::start(greeting, &[]).await;
        let finding = look_at(Kind::Standalone, &[&server.endpoint]).await;
        let Finding::Obstacle(failure) = &finding else { panic!("{finding:?}") };
        assert_eq!(failure.reason, FailureReason::Unreachable);
        let message = &failure.message;
        assert!(message.contains(&server.endpoint) && message.contains("without TLS"), "{message}");
    }
}

#[tokio::test]
async fn any_endpoint_of_a_cluster_may_answer_but_of_a_standalone_only_the_first() {
    let server = Script::start("", GOOD).await;
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap().to_string();
    let endpoints = ["no-port-there:1:2", server.endpoint.as_str()];
    assert!(matches!(look_at(Kind::Cluster, &endpoints).await, Finding::Failed(_)), "not an endpoint");
    let endpoints = [closed.as_str(), server.endpoint.as_str()];
    let finding = look_at(Kind::Cluster, &endpoints).await;
    assert!(
        matches!(&finding, Finding::Failed(failure) if failure.reason == FailureReason::WrongTopology),
        "{finding:?}"
    );
    let finding = look_at(Kind::Standalone, &endpoints).await;
    assert!(matches!(&finding, Finding::Obstacle(failure) if failure.message.contains(&closed)), "{finding:?}");
}

#[tokio::test]
async fn known_nodes_are_asked_when_the_endpoints_are_gone() {
    const CLUSTER: &[(&str, &str)] = &[
        ("INFO\r\n$3\r\nGET", "*1\r\n*2\r\n$3\r\nget\r\n:2\r\n"),
        ("INFO", "$19\r\ncluster_enabled:1\r\n\r\n"),
        ("SHARDS", "-NOPERM no\r\n"),
        ("SLOTS", "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:7\r\n$1\r\na\r\n"),
        ("SETNAME", "+OK\r\n"),
    ];
    let server = Script::start("", CLUSTER).await;
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap().to_string();
    let known = Topology::of(&[server.endpoint.parse().unwrap()]);
    let finding = look(&plan(Kind::Cluster, &[&closed]), &TargetAccess::default(), Some(&known), false).await;
    let Finding::Found(found) = finding else { panic!("{finding:?}") };
    assert_eq!((found.topology.nodes[0].id.as_str(), found.topology.nodes[0].label.as_str()), ("a", "127.0.0.1:7"));
}
