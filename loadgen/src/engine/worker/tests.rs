//! One worker, turn by turn.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::atomic::AtomicU32;

use redisbench_wire::Detail;
use tokio::sync::{mpsc, oneshot};

use super::*;

/// A worker with one connection to a server at `listener`.
fn worker(listener: &TcpListener, mail: Receiver<Command>) -> Worker {
    let plan = crate::sample::plan().of_shard(1);
    let address = listener.local_addr().unwrap();
    let topology = Topology::of(&[address]);
    let common = Arc::new(Common {
        trial: Arc::new(Workload::of_trial(&plan).unwrap()),
        plan,
        preload: Vec::new(),
        last_read: None,
        own: None,
        may_evict: false,
        processor: 1_000_000,
        reads: Vec::new(),
        events: mpsc::channel(64).0,
        ready: AtomicU32::new(0),
        wanted: AtomicU32::new(1),
        threads: Arc::default(),
        meter: Arc::default(),
    });
    let seat = Seat { shard: 0, shards: 1, worker: 0, workers: 1 };
    let mut worker = Worker::new(common, Arc::default(), seat, &topology, &[1], &Waker::new().unwrap(), mail).unwrap();
    worker.connections.connect(worker.now);
    worker
}

/// The socket holds more than one turn reads, followed by the end of the stream, whose event is not repeated.
#[test]
fn the_end_of_a_stream_is_seen_behind_more_than_a_turn_reads() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (_mailbox, mail) = std::sync::mpsc::sync_channel(1);
    let mut worker = worker(&listener, mail);
    worker.read_buffer = vec![0; 64];
    let mut events = vec![NO_EVENT; EVENTS];
    while worker.connections.ready() == 0 {
        worker.turn(&mut events).unwrap();
    }
    let (mut server, _) = listener.accept().unwrap();
    // The beginning of a long reply.
    server.write_all(b"$100000\r\n").unwrap();
    server.write_all(&vec![b'x'; 20_000]).unwrap();
    drop(server);
    // A turn without an event ends with the next tick.
    for _ in 0..100 {
        worker.turn(&mut events).unwrap();
        if worker.connections.ready() == 0 {
            return;
        }
    }
    panic!("the connection seems to be there");
}

/// Requests are sent and received in every turn.
#[test]
fn a_live_snapshot_takes_several_turns() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (mailbox, mail) = std::sync::mpsc::sync_channel(1);
    let mut worker = worker(&listener, mail);
    let (answer, mut answered) = oneshot::channel();
    mailbox.send(Command::Snapshot { detail: Detail::Live, from: 0, answer }).unwrap();
    worker.read_mail();
    let (mut events, mut turns) = (vec![NO_EVENT; EVENTS], 0);
    while answered.try_recv().is_err() {
        worker.turn(&mut events).unwrap();
        turns += 1;
        assert!(turns < 100, "no answer");
    }
    assert!(turns > 2, "{turns} turns");
}
