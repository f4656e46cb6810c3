//! The null server against Redis's own programs and the engine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use redisbench_loadgen::cluster::Topology;
use redisbench_loadgen::null_server::{NullServer, NullServerConfig};
use redisbench_testkit::processes::Running;
use redisbench_testkit::servers::{PATIENCE, wait_until};

use crate::harness::{SECOND, plan, run};

fn start(change: impl FnOnce(&mut NullServerConfig)) -> NullServer {
    let listen = "127.0.0.1:0".parse().unwrap();
    let mut config = NullServerConfig { listen, cluster_nodes: 0, value_bytes: 100, threads: 1 };
    change(&mut config);
    NullServer::start(&config).unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn ping(client: &mut TcpStream) {
    client.write_all(b"PING\r\n").unwrap();
    let mut answer = [0; 7];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
}

/// Runs a Redis program against the server and returns its output.
fn output(program: &str, server: &NullServer, arguments: &[&str]) -> String {
    let port = server.addresses()[0].port().to_string();
    let output = Command::new(program).args(["-p", &port]).args(arguments).output().unwrap();
    let [text, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success() && !errors.contains("WARN"), "{program} {arguments:?}: {text}{errors}");
    text
}

/// The server's own count of commands answered.
fn commands(server: &NullServer) -> u64 {
    let text = output("redis-cli", server, &["INFO"]);
    let count = text.lines().find_map(|line| line.trim_end().strip_prefix("total_commands_processed:"));
    count.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

#[test]
fn redis_cli_takes_it_for_a_server() {
    let server = start(|config| config.value_bytes = 5);
    let ask = |words: &[&str]| output("redis-cli", &server, words).trim_end().to_owned();
    assert_eq!(ask(&["PING"]), "PONG");
    assert_eq!(ask(&["GET", "key"]), "xxxxx");
    assert_eq!(ask(&["SET", "key", "value"]), "OK");
    assert_eq!(ask(&["INCR", "key"]), "1");
    assert_eq!(ask(&["LRANGE", "key", "0", "-1"]), "xxxxx");
    assert_eq!(ask(&["-3", "HELLO", "3"]).lines().next(), Some("server redis"));
    assert_eq!(ask(&["-n", "3", "--user", "u", "--pass", "p", "--no-auth-warning", "PING"]), "PONG");
    assert!(ask(&["CLUSTER", "SLOTS"]).starts_with("ERR This instance has cluster support disabled"));
    assert_eq!(ask(&["-r", "3", "PING"]), "PONG\nPONG\nPONG");
}

#[test]
fn redis_benchmark_runs_all_its_tests() {
    let server = start(|_| ());
    let before = commands(&server);
    let text = output("redis-benchmark", &server, &["-n", "500", "-c", "10", "-P", "5", "-r", "1000", "--csv"]);
    // Below a heading; newer versions print more lines.
    let tests = text.lines().count() as u64 - 1;
    assert!(tests >= 20, "{text}");
    assert!(commands(&server) - before >= tests * 500);
    // Two threads on both sides.
    let server = start(|config| config.threads = 2);
    output("redis-benchmark", &server, &["-n", "5000", "-t", "get,set", "--threads", "2", "-q"]);
}

#[test]
fn redis_benchmark_finds_the_nodes_of_a_cluster() {
    let server = start(|config| config.cluster_nodes = 3);
    assert_eq!(server.addresses().len(), 3);
    let text = output("redis-benchmark", &server, &["--cluster", "-n", "300", "-c", "6", "-r", "1000", "-t", "get"]);
    assert!(text.contains("Cluster has 3 master nodes"), "{text}");
}

#[tokio::test]
async fn the_engine_counts_what_the_server_counts() {
    let server = start(|config| config.threads = 2);
    let mut plan = plan();
    (plan.connections, plan.pipeline) = (8, 16);
    plan.bound = redisbench_wire::plan::Bound::Requests { count: 50_000, max_nanoseconds: 60 * SECOND };
    let snapshot = run(plan, Topology::of(server.addresses()), 2).await;
    assert_eq!((snapshot.total.succeeded, snapshot.total.errors), (50_000, 0));
    assert_eq!(commands(&server), 50_001, "its own INFO is the last");
}

#[test]
fn a_client_that_does_not_read_costs_little_and_loses_nothing() {
    const GETS: usize = 20_000;
    // A process of its own, because other tests take memory of this one.
    let mut server = program(&["--listen", "127.0.0.1:0", "--value-bytes", "100000"]);
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("serving on ").unwrap().parse().unwrap();
    let mut stream = connect(address);
    // 2 GB of replies to 400 kB of commands: far more than socket buffers hold.
    let mut sender = stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || sender.write_all(&b"GET k\r\nGET k\r\n".repeat(GETS / 2)).unwrap());
    // Other clients are served meanwhile.
    ping(&mut connect(address));
    let (mut buffer, mut received) = (vec![0; 1 << 20], 0);
    while received < GETS * (100_000 + "$100000\r\n\r\n".len()) {
        received += stream.read(&mut buffer).unwrap();
    }
    sending.join().unwrap();
    assert_eq!(received, GETS * (100_000 + "$100000\r\n\r\n".len()));
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.0.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 100_000, "{peak} KiB");
}

#[test]
fn what_is_no_command_is_refused_and_closed() {
    let server = start(|_| ());
    let mut stream = connect(server.addresses()[0]);
    stream.write_all(b"PING\r\n*1\r\n+no\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text, "+PONG\r\n-ERR Protocol error: expected '$'\r\n");
}

/// The program as a user starts it.
fn program(arguments: &[&str]) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redisbench-loadgen"));
    command.arg("null-server").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running(command.spawn().unwrap())
}

#[test]
fn the_program_says_where_it_serves_and_ends_when_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("addresses");
    let mut program = program(&["--listen", "127.0.0.1:0", "--cluster", "2", "--port-file", file.to_str().unwrap()]);
    let mut lines = BufReader::new(program.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said: Vec<String> = lines.by_ref().take(2).collect();
    let written = std::fs::read_to_string(&file).unwrap();
    let spoken: String = said.iter().map(|line| line.replace("serving on ", "") + "\n").collect();
    assert_eq!(spoken, written);
    let address = written.lines().next().unwrap().parse().unwrap();
    let mut client = connect(address);
    ping(&mut client);
    assert!(Command::new("kill").args(["-TERM", &program.0.id().to_string()]).status().unwrap().success());
    let mut status = None;
    wait_until("it ends", || {
        status = program.0.try_wait().unwrap();
        status.is_some()
    });
    assert!(status.unwrap().success(), "{status:?}");
    assert_eq!(client.read(&mut [0]).unwrap(), 0, "and its connections with it");
}

#[test]
fn a_taken_port_is_named() {
    let server = start(|_| ());
    let address = server.addresses()[0].to_string();
    let mut program = program(&["--listen", &address]);
    let mut text = String::new();
    program.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(text.starts_with(&format!("error: failed to listen on {address}")), "{text}");
    assert_eq!(program.0.wait().unwrap().code(), Some(1));
}
