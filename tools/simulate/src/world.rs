//! The shared state of a simulation: virtual time, random numbers, the trace, and the state of the network.

use std::fmt::Display;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::{Instant, sleep};

use crate::cluster::Cluster;
use crate::ground_truth::GroundTruth;
use crate::process::Processes;
use crate::scenario::Scenario;
use crate::triggers::Triggers;

/// One simulated world. It lives in one thread, so its locks are never contended.
pub struct World {
    pub traced: bool,
    origin: Instant,
    rng: Mutex<StdRng>,
    trace: Mutex<Trace>,
    pub scenario: Scenario,
    pub weather: Mutex<Weather>,
    pub cluster: Mutex<Cluster>,
    pub processes: Mutex<Processes>,
    /// The kubelet's reaction to the exit of a process, given its incarnation and its exit code. A field, because the kubelet also starts
    /// processes.
    pub on_exit: fn(&Arc<Self>, &str, i32),
    pub ground_truth: Mutex<GroundTruth>,
    pub triggers: Mutex<Triggers>,
}

struct Trace {
    lines: Vec<String>,
    violation: Option<String>,
}

/// The current state of the network.
#[derive(Default)]
pub struct Weather {
    /// Unreachable shards, once per cut.
    cut: Vec<IpAddr>,
    /// True if the API server is unavailable.
    pub api_away: bool,
    /// The number of breaks of watches, and the time until which they stay broken.
    pub breaks: u64,
    broken_until: Duration,
}

/// Locks a mutex, which no other thread holds.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub fn new(seed: u64, traced: bool, on_exit: fn(&Arc<Self>, &str, i32)) -> Arc<Self> {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut scenario = Scenario::draw(&mut rng);
        scenario.draw_trials(seed);
        scenario.draw_search(seed);
        scenario.draw_absence(seed);
        scenario.draw_panics(seed);
        Arc::new(Self {
            traced,
            origin: Instant::now(),
            rng: Mutex::new(rng),
            trace: Mutex::new(Trace { lines: Vec::new(), violation: None }),
            scenario,
            weather: Mutex::default(),
            cluster: Mutex::default(),
            processes: Mutex::default(),
            on_exit,
            ground_truth: Mutex::default(),
            triggers: Mutex::default(),
        })
    }

    /// Time since the beginning.
    pub fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Adds a line to the trace, if it is recorded.
    pub fn tell(&self, line: impl Display) {
        if !self.traced {
            return;
        }
        let now = self.now();
        lock(&self.trace).lines.push(format!("{:>9.3} {line}", now.as_secs_f64()));
    }

    /// Records a violated invariant. The first is the result of the simulation.
    pub fn violated(&self, what: impl Display) {
        self.tell(format_args!("VIOLATION {what}"));
        lock(&self.trace).violation.get_or_insert_with(|| what.to_string());
    }

    /// Records a violation unless `holds`.
    pub fn check(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.violated(what());
        }
    }

    pub fn violation(&self) -> Option<String> {
        lock(&self.trace).violation.clone()
    }

    pub fn take_trace(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.trace).lines)
    }

    pub fn chance(&self, probability: f64) -> bool {
        probability > 0.0 && lock(&self.rng).random_bool(probability)
    }

    /// A random time between `from` and `to`, in milliseconds, which is the resolution of virtual time.
    pub fn between(&self, from: u64, to: u64) -> Duration {
        Duration::from_millis(lock(&self.rng).random_range(from..=to))
    }

    pub fn number(&self) -> u64 {
        lock(&self.rng).random()
    }

    /// Runs `deed` after `delay`, regardless of which processes are alive then.
    pub fn after(self: &Arc<Self>, delay: Duration, deed: impl FnOnce(&Arc<Self>) + Send + 'static) {
        let world = self.clone();
        tokio::spawn(async move {
            sleep(delay).await;
            deed(&world);
        });
    }

    pub fn cut(&self, address: IpAddr) {
        lock(&self.weather).cut.push(address);
    }

    pub fn mend(&self, address: IpAddr) {
        let mut weather = lock(&self.weather);
        if let Some(at) = weather.cut.iter().position(|cut| *cut == address) {
            weather.cut.remove(at);
        }
    }

    pub fn is_cut(&self, address: IpAddr) -> bool {
        lock(&self.weather).cut.contains(&address)
    }

    /// Breaks all watches. After `time` they start again from a list, without the changes in between.
    pub fn break_watches(&self, time: Duration) {
        let mut weather = lock(&self.weather);
        weather.breaks += 1;
        weather.broken_until = weather.broken_until.max(self.now() + time);
    }

    /// The remaining time of broken watches.
    pub fn broken_for(&self) -> Duration {
        lock(&self.weather).broken_until.saturating_sub(self.now())
    }

    /// The latency of one message on the network.
    pub fn latency(&self) -> Duration {
        if self.chance(self.scenario.network.spike) {
            self.between(20, 3_000)
        } else {
            self.between(0, self.scenario.network.latency)
        }
    }
}

/// Freezes a process, like SIGSTOP or a paused machine.
#[derive(Default)]
pub struct Freezer {
    frozen: AtomicBool,
    thaws: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
}

impl Freezer {
    pub fn freeze(&self) {
        self.frozen.store(true, Ordering::Relaxed);
    }

    /// The number of times that it continued after being frozen.
    pub fn thaws(&self) -> u64 {
        self.thaws.load(Ordering::Relaxed)
    }

    pub fn thaw(&self) {
        self.thaws.fetch_add(1, Ordering::Relaxed);
        self.frozen.store(false, Ordering::Relaxed);
        lock(&self.waiting).drain(..).for_each(Waker::wake);
    }

    /// Waits while it is frozen.
    pub async fn pass(&self) {
        std::future::poll_fn(|context| self.poll(context)).await;
    }

    fn poll(&self, context: &Context<'_>) -> Poll<()> {
        if self.frozen.load(Ordering::Relaxed) {
            lock(&self.waiting).push(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Wraps `inner`, which makes no progress while the process is frozen.
    pub fn host<T>(
        self: &Arc<Self>,
        inner: impl Future<Output = T> + Send + 'static,
    ) -> futures::future::BoxFuture<'static, T> {
        let freezer = self.clone();
        let mut inner = Box::pin(inner);
        Box::pin(std::future::poll_fn(move |context| match freezer.poll(context) {
            Poll::Ready(()) => inner.as_mut().poll(context),
            Poll::Pending => Poll::Pending,
        }))
    }
}
