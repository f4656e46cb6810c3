//! The number of requests that a closed loop keeps in flight, counted by a server that replies only when no more requests arrive.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use redisbench_loadgen::cluster::Topology;
use redisbench_wire::plan::{Bound, PipelineMode, TrialPlan};

use crate::harness::{SECOND, operation, plan, run};

const REQUEST: &[u8] = b"*2\r\n$3\r\nGET\r\n$7\r\nkey:000\r\n";

/// The time for which the server waits for more requests before it replies to one. A slow client makes it count fewer in flight, never
/// more.
const QUIET: Duration = Duration::from_millis(2);

/// One connection's counts.
#[derive(Clone, Debug, Default)]
struct Seen {
    in_flight: usize,
    /// The maximum at any time.
    most: usize,
    /// Requests that were still in flight whenever more arrived after a reply.
    beside: Vec<usize>,
    answered: bool,
    total: usize,
}

/// All connections' counts.
#[derive(Clone, Debug, Default)]
struct Account {
    connections: Vec<Seen>,
    /// The maximum over all connections together.
    most: usize,
}

/// Serves until the first connection closes, and then sends its counts.
fn server() -> (SocketAddr, Receiver<Account>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut streams = Vec::new();
        let mut account = Account::default();
        let (mut last_news, mut turn) = (Instant::now(), 0);
        loop {
            if let Ok((stream, _)) = listener.accept() {
                stream.set_nonblocking(true).unwrap();
                streams.push(stream);
                account.connections.push(Seen::default());
            }
            for (stream, seen) in streams.iter_mut().zip(&mut account.connections) {
                match take(stream) {
                    None => {
                        let _ = tell.send(account);
                        return;
                    }
                    Some(0) => {}
                    Some(count) => {
                        if std::mem::take(&mut seen.answered) {
                            seen.beside.push(seen.in_flight);
                        }
                        seen.in_flight += count;
                        seen.total += count;
                        seen.most = seen.most.max(seen.in_flight);
                        last_news = Instant::now();
                    }
                }
            }
            account.most = account.most.max(account.connections.iter().map(|seen| seen.in_flight).sum());
            if last_news.elapsed() > QUIET {
                let in_turn = (0..streams.len()).map(|index| (turn + index) % streams.len());
                if let Some(index) = in_turn.into_iter().find(|index| account.connections[*index].in_flight > 0) {
                    turn = index + 1;
                    streams[index].write_all(b"$-1\r\n").unwrap();
                    account.connections[index].in_flight -= 1;
                    account.connections[index].answered = true;
                }
                last_news = Instant::now();
            }
        }
    });
    (address, told)
}

/// The number of requests received; `None` at the end of the connection.
fn take(stream: &mut TcpStream) -> Option<usize> {
    let mut buffer = [0; 1 << 16];
    match stream.read(&mut buffer) {
        Ok(0) => None,
        Ok(count) => {
            assert_eq!(count % REQUEST.len(), 0, "{}", String::from_utf8_lossy(&buffer[..count]));
            Some(count / REQUEST.len())
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Some(0),
        Err(_) => None,
    }
}

async fn account(change: impl FnOnce(&mut TrialPlan), workers: usize) -> Account {
    let (address, told) = server();
    let mut plan = plan();
    plan.workload_mut().operations = vec![operation("get", 1, "GET __key__")];
    plan.timeouts.request_nanoseconds = 30 * SECOND;
    plan.bound = Bound::Requests { count: 60, max_nanoseconds: 60 * SECOND };
    change(&mut plan);
    let snapshot = run(plan, Topology::of(&[address]), workers).await;
    let account = told.recv_timeout(Duration::from_secs(30)).unwrap();
    assert_eq!(snapshot.total.succeeded, account.connections.iter().map(|seen| seen.total as u64).sum::<u64>());
    account
}

#[tokio::test]
async fn a_window_is_filled_again_with_every_reply() {
    let account = account(|plan| plan.pipeline = 5, 1).await;
    assert_eq!(account.most, 10);
    for seen in account.connections {
        assert_eq!(seen.most, 5, "{seen:?}");
        assert!(seen.beside.contains(&4), "{seen:?}");
    }
}

#[tokio::test]
async fn the_next_batch_goes_out_when_all_of_the_last_was_answered() {
    let change = |plan: &mut TrialPlan| (plan.pipeline, plan.pipeline_mode) = (5, PipelineMode::Batch);
    let account = account(change, 1).await;
    assert_eq!(account.most, 10);
    for seen in account.connections {
        assert_eq!((seen.most, seen.total % 5), (5, 0), "{seen:?}");
        assert!(seen.beside.len() > 2 && seen.beside.iter().all(|beside| *beside == 0), "{seen:?}");
    }
}

#[tokio::test]
async fn callers_share_the_connections() {
    // Three workers with two connections each. One connection could hold all callers of a worker.
    let change = |plan: &mut TrialPlan| (plan.connections, plan.pipeline, plan.concurrency) = (6, 4, Some(10));
    let account = account(change, 3).await;
    assert_eq!(account.most, 10);
    assert_eq!(account.connections.len(), 6);
    // 3 or 4 callers per worker, alternating between 2 connections: 2 on each, unless replies arrive out of turn.
    assert!(account.connections.iter().all(|seen| (1..=4).contains(&seen.most)), "{account:?}");
    let totals: Vec<usize> = account.connections.iter().map(|seen| seen.total).collect();
    assert!(totals.iter().min().unwrap() * 3 > *totals.iter().max().unwrap(), "{totals:?}");
}

#[tokio::test]
async fn fewer_callers_than_workers_make_fewer_workers() {
    let change = |plan: &mut TrialPlan| (plan.connections, plan.pipeline, plan.concurrency) = (4, 1, Some(1));
    let account = account(change, 4).await;
    assert_eq!((account.most, account.connections.len()), (1, 4));
}
