//! Conducts all trials of a local run, and makes their result.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::Phase;
use redisbench_benchmark::conductor::client::{CallTimeouts, ShardClient};
use redisbench_benchmark::conductor::{
    ConductProgress, ConductorConfig, Control, Journal, JournalError, ShardPresence, StartRecord, conduct, release,
};
use redisbench_benchmark::credential::RunCredential;
use redisbench_benchmark::measurement::{Ending, Outcome};
use redisbench_benchmark::plan::Plan;
use redisbench_benchmark::report::{Finished, Subject};
use tokio::sync::watch;

use super::order::{EPOCH, GENERATION, Order};
use super::output::OutputDirectory;
use super::repeats::Repeats;
use super::shards::{Ended, Setting, Shards};
use crate::interrupt::Interrupts;
use crate::progress::Display;

/// The display is refreshed at least this often.
const TICK: Duration = Duration::from_millis(500);
/// Timeout for releasing the shards, which exit at once.
const RELEASE: Duration = Duration::from_secs(5);

/// Runs the trials of `order`. Returns the benchmark with its final status, and the outcome of the last trial.
pub async fn measure(
    program: &Path,
    order: Order,
    interrupts: &Interrupts,
    display: &mut Display,
    mut output: Option<&mut OutputDirectory>,
) -> anyhow::Result<(RedisBenchmark, Outcome)> {
    let run = uuid::Uuid::now_v7().to_string();
    let credential = RunCredential::derive(&rand::random(), &run)?;
    let mut benchmark = order.object(&run, Timestamp::now());
    let setting = Setting {
        program,
        run: &run,
        count: order.plan.largest().plan.shards,
        workers: order.workers(),
        credential: &credential,
        folders: order.folders(),
        files: &order.files,
        drivers: &order.drivers,
    };
    let shards = Shards::start(&setting).await?;
    let calls = Arc::new(ShardClient::new(&run, &credential, CallTimeouts::default())?);
    let mut repeats = Repeats::default();
    // A plan has at least one trial.
    let mut next = order.plan.trial(0, &[]);
    let (outcome, finished, aborted) = loop {
        let trial = next.context("the plan has no trial")?;
        let config = ConductorConfig::of(&trial, &run, EPOCH);
        let presence = shards.presence();
        let (outcome, aborted) =
            follow(&mut benchmark, &order.plan, config, Arc::clone(&calls), presence, interrupts, display).await;
        outcome.unacknowledged().for_each(|shard| shards.stop_one(shard.shard));
        let finished = Finished::of(order.name(), &run, &trial, outcome.clone())?;
        if let Some(output) = &mut output {
            output.save_trial(&finished);
        }
        let lines = benchmark.status.as_ref().map_or(&[][..], |status| &status.trials);
        next = finished.next_trial(&order.plan, lines);
        let Some(following) = next.as_ref().filter(|_| !aborted && outcome.ending == Ending::Completed) else {
            break (outcome, finished, aborted && next.is_some());
        };
        repeats.add(&finished)?;
        let mut status = benchmark.status.take().unwrap_or_default();
        let shards = following.spec.plan.shards;
        let (_, message) = subject(&benchmark, shards, Timestamp::now()).next_trial(&mut status, &finished);
        benchmark.status = Some(status);
        display.note(&message);
    };
    // Shards that do not exit in time are stopped below.
    let _ = tokio::time::timeout(RELEASE, release(EPOCH, calls, shards.presence())).await;
    let ended = shards.stop().await;
    if let Some(cleanup) = &finished.cleanup {
        display.note(&cleanup.summary());
    }
    let mut status = benchmark.status.take().unwrap_or_default();
    let ending = if aborted && finished.ending == Ending::Completed { &Ending::Aborted } else { &finished.ending };
    subject(&benchmark, finished.shards.desired, Timestamp::now()).over_as(&mut status, &finished, ending);
    repeats.add(&finished)?;
    let experiment = repeats.tell(&benchmark.spec, &mut status)?;
    let failed = status.phase == Phase::Failed;
    benchmark.status = Some(status);
    if let Some(output) = &mut output {
        output.save_experiment(&benchmark, &experiment)?;
    }
    if failed {
        for Ended { shard, status, last_words } in ended {
            display.note(&format!("shard {shard} exited with {status}; its last output:\n{last_words}"));
        }
    }
    Ok((benchmark, outcome))
}

/// Conducts one trial and shows its progress. Returns whether the user aborted it.
async fn follow(
    benchmark: &mut RedisBenchmark,
    plan: &Plan,
    config: ConductorConfig,
    calls: Arc<ShardClient>,
    presence: watch::Receiver<Vec<ShardPresence>>,
    interrupts: &Interrupts,
    display: &mut Display,
) -> (Outcome, bool) {
    let shards = config.plan.shards;
    let (publish, mut progress) = watch::channel(ConductProgress::default());
    let (order, control) = watch::channel(Control::default());
    let mut conducting = std::pin::pin!(conduct(config, calls, NoJournal, presence.clone(), control, publish));
    let mut tick = tokio::time::interval(TICK);
    let mut aborting = false;
    loop {
        tokio::select! {
            outcome = &mut conducting => return (outcome, aborting),
            _ = progress.changed() => {}
            _ = tick.tick() => {}
            () = interrupts.first(), if !aborting => {
                aborting = true;
                display.note("aborting: keeping the partial result; press Ctrl-C again to exit immediately");
                order.send_replace(Control { abort: true });
            }
        }
        show(benchmark, plan, shards, &progress.borrow_and_update(), &presence.borrow(), display);
    }
}

fn show(
    benchmark: &mut RedisBenchmark,
    plan: &Plan,
    shards: u32,
    progress: &ConductProgress,
    presence: &[ShardPresence],
    display: &mut Display,
) {
    let now = Timestamp::now();
    let mut status = benchmark.status.take().unwrap_or_default();
    subject(benchmark, shards, now).running(&mut status, progress, presence);
    plan.name_present(&mut status);
    benchmark.status = Some(status);
    display.show(benchmark, now);
}

/// The benchmark in a trial of `shards` shards.
fn subject(benchmark: &RedisBenchmark, shards: u32, now: Timestamp) -> Subject<'_> {
    Subject { spec: &benchmark.spec, shards, generation: Some(GENERATION), now }
}

/// Records nothing: a takeover is impossible, because nothing survives this process.
struct NoJournal;

impl Journal for NoJournal {
    async fn record_start(&self, _record: StartRecord) -> Result<(), JournalError> {
        Ok(())
    }
}
