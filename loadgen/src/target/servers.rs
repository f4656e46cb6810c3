//! Polls the target's servers with INFO during a trial, on separate connections: before the start, about once a second in the measured
//! window, and after the load. A server that fails or refuses is noted and affects nothing else.

mod info;
mod mix;
mod node;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{Cmd, FromRedisValue as _, Value};
use redisbench_wire::Detail;
use redisbench_wire::limits;
use redisbench_wire::plan::ShardPlan;
use redisbench_wire::snapshot::ServerStats;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use self::info::{Calls, Info};
use self::mix::MixCommands;
use self::node::{WatchedNode, When};
use super::access::{Mounts, TargetAccess};
use super::client::Client;
use super::trouble::Trouble;
use crate::clock::timer_at;
use crate::cluster::{NodeAddress, Topology};
use crate::sys::monotonic_nanoseconds;

/// Interval between two looks at the same server.
const INTERVAL: Duration = Duration::from_secs(1);
/// Timeout for connecting to one server and its answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Servers polled in parallel. With more, the interval grows.
const AT_A_TIME: usize = 64;
/// The most servers in a live snapshot.
const LIVE: usize = 16;
/// Capacity of the queue of requests for the final look.
const ORDERS: usize = 8;

/// A watch of the servers over one attempt of a trial. Dropping it ends it.
#[derive(Debug)]
pub struct ServerWatch {
    view: ServerView,
    topology: watch::Sender<Arc<Topology>>,
    over: watch::Sender<bool>,
    from: watch::Sender<u64>,
    end: CancellationToken,
}

/// The results so far.
#[derive(Clone, Debug)]
pub struct ServerView {
    nodes: Arc<Mutex<Vec<WatchedNode>>>,
    not_compared: Arc<[String]>,
    orders: mpsc::Sender<oneshot::Sender<()>>,
}

impl Drop for ServerWatch {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl ServerWatch {
    /// Watches the servers of `topology` for the load of `plan` that starts at `start` nanoseconds of the monotonic clock. `reads` holds
    /// for each operation whether it only reads. The caller must run the returned future.
    pub fn begin(
        plan: ShardPlan,
        mounts: Mounts,
        topology: Arc<Topology>,
        reads: &[bool],
        start: u64,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let mix = MixCommands::of(&plan, reads);
        let (orders, ordered) = mpsc::channel(ORDERS);
        let (topology, map) = watch::channel(topology);
        let (over, load_over) = watch::channel(false);
        let view = ServerView { nodes: Arc::default(), not_compared: mix.not_compared.clone().into(), orders };
        let end = CancellationToken::new();
        let from = start.saturating_add(plan.warmup_nanoseconds);
        let (from, begins) = watch::channel(from);
        let nodes = Arc::clone(&view.nodes);
        let watcher = Watcher { plan, mounts, mix, nodes, clients: BTreeMap::new(), start, until: u64::MAX };
        let ended = end.clone();
        let task = async move {
            let mut watcher = watcher;
            tokio::select! {
                () = ended.cancelled() => {}
                () = watcher.run(map, begins, load_over, ordered) => {}
            }
            // Close the connections before the task ends.
            for client in watcher.clients.into_values() {
                client.close().await;
            }
        };
        (Self { view, topology, over, from, end }, task)
    }

    pub fn view(&self) -> ServerView {
        self.view.clone()
    }

    /// Watches the servers of a new map as well.
    pub fn update_topology(&self, topology: Arc<Topology>) {
        self.topology.send_replace(topology);
    }

    /// The measured window begins early, at `from` nanoseconds of the monotonic clock.
    pub fn measure_from(&self, from: u64) {
        self.from.send_replace(from);
    }

    /// Ends the looks of the measured window, because this shard's load has ended.
    pub fn load_is_over(&self) {
        self.over.send_replace(true);
    }
}

impl ServerView {
    /// Queries every server once more for its final counts.
    pub async fn look(&self) {
        let (done, answered) = oneshot::channel();
        if self.orders.send(done).await.is_ok() {
            // Fails if the watch has ended.
            let _ = answered.await;
        }
    }

    pub fn report(&self, detail: Detail) -> ServerStats {
        let nodes = locked(&self.nodes);
        let full = detail == Detail::Full;
        let mut all: Vec<&WatchedNode> = nodes.iter().take(limits::NODES).collect();
        if !full {
            all.sort_by_key(|node| std::cmp::Reverse(node.busy()));
            all.truncate(LIVE);
        }
        ServerStats {
            nodes: all.into_iter().map(|node| node.report(full)).collect(),
            not_compared: if full { self.not_compared.to_vec() } else { Vec::new() },
        }
    }
}

struct Watcher {
    plan: ShardPlan,
    mounts: Mounts,
    mix: MixCommands,
    nodes: Arc<Mutex<Vec<WatchedNode>>>,
    /// By address.
    clients: BTreeMap<String, Client>,
    start: u64,
    /// End of the measured window.
    until: u64,
}

impl Watcher {
    async fn run(
        &mut self,
        mut map: watch::Receiver<Arc<Topology>>,
        mut from: watch::Receiver<u64>,
        mut load_over: watch::Receiver<bool>,
        mut orders: mpsc::Receiver<oneshot::Sender<()>>,
    ) {
        self.add_nodes(&map.borrow_and_update().clone());
        self.look(When::Before { start: self.start }).await;
        self.leave_out_twins();
        let mut due = Some(self.window(*from.borrow_and_update()));
        loop {
            tokio::select! {
                Ok(()) = from.changed() => due = Some(self.window(*from.borrow_and_update())),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.look(When::Measuring).await;
                    due = self.next();
                }
                Ok(()) = load_over.changed() => {
                    // With a number of requests the end is unknown in advance; with a duration, the last look may be due right now.
                    if due.take().is_some() {
                        self.look(When::Measuring).await;
                    }
                }
                Ok(()) = map.changed() => {
                    let topology = map.borrow_and_update().clone();
                    self.add_nodes(&topology);
                }
                order = orders.recv() => {
                    let Some(order) = order else { return };
                    due = None;
                    self.look(When::After).await;
                    // The caller may have given up.
                    let _ = order.send(());
                }
            }
        }
    }

    /// Keeps one address of each server: several proxies of one Redis, or several names of it, would count its commands several times.
    fn leave_out_twins(&self) {
        let mut known = BTreeSet::new();
        locked(&self.nodes).retain(|node| node.run_id().is_none_or(|id| known.insert(id.to_owned())));
    }

    /// Sets the measured window to begin at `from`, the time of its first look.
    fn window(&mut self, from: u64) -> Instant {
        self.until = from.saturating_add(self.plan.bound.longest_nanoseconds());
        timer_at(from)
    }

    /// The time of the next look: after the interval, the last one at the end of the window.
    fn next(&self) -> Option<Instant> {
        let now = monotonic_nanoseconds();
        if now >= self.until {
            return None;
        }
        let turns = u32::try_from(locked(&self.nodes).len().div_ceil(AT_A_TIME)).unwrap_or(u32::MAX);
        let interval = u64::try_from(INTERVAL.saturating_mul(turns).as_nanos()).unwrap_or(u64::MAX);
        let next = now.saturating_add(interval);
        // Skip a look shortly before the last one.
        Some(timer_at(if next.saturating_add(interval / 2) > self.until { self.until } else { next }))
    }

    /// Adds the servers that are new in this map.
    fn add_nodes(&self, topology: &Topology) {
        let mut nodes = locked(&self.nodes);
        for node in &topology.nodes {
            // A server of a pool may have another label now.
            let same = |known: &NodeAddress| {
                known.label == node.label || (&known.id, known.address) == (&node.id, node.address)
            };
            if nodes.len() < limits::NODES && !nodes.iter().any(|known| same(&known.address)) {
                nodes.push(WatchedNode::new(node));
            }
        }
    }

    async fn look(&mut self, when: When) {
        let access = match TargetAccess::read(&self.plan, &self.mounts).await {
            Ok(access) => Arc::new(access),
            Err(failure) => {
                locked(&self.nodes).iter_mut().for_each(|node| node.note(&failure.message));
                return;
            }
        };
        let with_commands = when != When::Measuring;
        let mut waiting: Vec<(usize, NodeAddress)> = {
            let nodes = locked(&self.nodes);
            let asked = nodes.iter().enumerate().filter(|(_, node)| !node.refuses);
            asked.map(|(index, node)| (index, node.address.clone())).rev().collect()
        };
        let mut asked = JoinSet::new();
        loop {
            while asked.len() < AT_A_TIME
                && let Some((index, address)) = waiting.pop()
            {
                let (client, access) = (self.clients.remove(&address.label), Arc::clone(&access));
                asked.spawn(async move {
                    let answer = timeout(PATIENCE, ask(&address, client, &access, with_commands)).await;
                    (index, answer.unwrap_or_else(|_| Err(Trouble::Silent(format!("no reply within {PATIENCE:?}")))))
                });
            }
            let Some(answered) = asked.join_next().await else { return };
            // A panic is already on stderr.
            let Ok((index, answer)) = answered else { continue };
            let mut nodes = locked(&self.nodes);
            let Some(node) = nodes.get_mut(index) else { continue };
            match answer {
                Ok((client, answer)) => {
                    self.clients.insert(node.address.label.clone(), client);
                    node.take(&answer.info, answer.commands, answer.at, when, &self.mix);
                }
                Err(trouble) => {
                    let label = node.address.label.clone();
                    match &trouble {
                        // Permanent: INFO is answered even while a server loads its data.
                        Trouble::Refused(text) => node.refuse(&format!("{label} does not allow INFO: {text}")),
                        other => node.note(&format!("{label} did not reply to INFO: {}", other.text())),
                    }
                }
            }
        }
    }
}

struct InfoReply {
    info: Info,
    commands: Option<BTreeMap<String, Calls>>,
    at: u64,
}

/// Queries one server, over its open connection if any.
async fn ask(
    node: &NodeAddress,
    client: Option<Client>,
    access: &TargetAccess,
    with_commands: bool,
) -> Result<(Client, InfoReply), Trouble> {
    let mut client = match client {
        Some(client) => client,
        None => access.connect(&node.label, node.address, PATIENCE).await?,
    };
    let info = text(client.ask(&redis::cmd("INFO")).await?)?;
    let commands = if with_commands {
        let answer = client.ask(Cmd::new().arg("INFO").arg("commandstats")).await?;
        Some(info::commands(&text(answer)?))
    } else {
        None
    };
    let answer = InfoReply { info: Info::parse(&info), commands, at: monotonic_nanoseconds() };
    Ok((client, answer))
}

fn text(answer: Value) -> Result<String, Trouble> {
    String::from_redis_value(answer).map_err(|_| Trouble::Foreign("its reply is not text".to_owned()))
}

/// Ignores poisoning: the values are plain numbers, valid even after a panic.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
