//! `local`: a benchmark without a cluster. Plan, conductor, merge, verdict and status are the operator's; only the shards are child
//! processes.

mod baseline;
mod order;
mod output;
mod repeats;
pub mod secrets;
mod shards;
mod source;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::api::status::Phase;
use redisbench_benchmark::conductor::client::{CallTimeouts, ShardClient};
use redisbench_benchmark::conductor::{
    ConductorConfig, Control, Journal, JournalError, Progress, ShardPresence, StartRecord, conduct, release,
};
use redisbench_benchmark::credential::RunCredential;
use redisbench_benchmark::evidence::Evidence;
use redisbench_benchmark::measurement::{Ending, Outcome};
use redisbench_benchmark::plan::Plan;
use redisbench_benchmark::report::{Finished, Subject};
use tokio::sync::watch;

use crate::arguments::LocalArguments;
use crate::interrupt::Interrupts;
use crate::manifest::Problem;
use crate::progress::Display;
use crate::throwaway::{Authority, Throwaway, ThrowawayError, Wanted};
use crate::{BAD, GOOD, USAGE, exit_code, render, validate};
use order::Order;
use output::OutputDirectory;
use repeats::Repeats;
use shards::{Ended, Setting, Shards};

/// This process is the only conductor.
const EPOCH: u64 = 1;
/// The spec does not change while it runs.
const GENERATION: i64 = 1;
/// The display is refreshed at least this often.
const TICK: Duration = Duration::from_millis(500);
/// Timeout for releasing the shards, which exit at once.
const RELEASE: Duration = Duration::from_secs(5);

/// Runs the benchmark and prints its result.
///
/// # Errors
/// If something other than the benchmark fails: the throwaway server, the load generator, standard output.
pub async fn local(arguments: &LocalArguments) -> anyhow::Result<u8> {
    let report = |problems: &[Problem]| {
        validate::report(arguments.file.as_deref(), problems);
        Ok(USAGE)
    };
    if arguments.print_manifest {
        return match source::print(arguments) {
            Ok(printed) => printed.map(|()| GOOD),
            Err(problems) => report(&problems),
        };
    }
    let order = match source::manifest(arguments).and_then(|manifest| order::read(arguments, manifest)) {
        Ok(order) => order,
        Err(problems) => return report(&problems),
    };
    let output = arguments.output_dir.as_deref().map(|directory| OutputDirectory::prepare(directory, order.name()));
    let mut output = match output.transpose() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(USAGE);
        }
    };
    let interrupts = Interrupts::listen().context("failed to listen for signals")?;
    let mut display = Display::new(arguments.plain);
    for skipped in &order.skipped {
        display.note(&format!("{skipped}: skipped, not needed without a cluster"));
    }
    for note in &order.notes {
        display.note(note);
    }
    let work = async {
        if arguments.baseline {
            return Box::pin(baseline::perform(arguments, &order, &interrupts, &mut display)).await;
        }
        let benchmark = Box::pin(perform(arguments, order, &interrupts, &mut display, output.as_mut())).await?;
        display.clear();
        render::print(&benchmark, arguments.output)?;
        output.map_or(Ok(()), OutputDirectory::finish)?;
        Ok(exit_code(benchmark.status.as_ref()))
    };
    tokio::select! {
        code = work => code,
        // Dropping the work ends all children.
        () = interrupts.second() => {
            display.clear();
            eprintln!("interrupted twice: exiting without a result");
            Ok(BAD)
        }
    }
}

async fn perform(
    arguments: &LocalArguments,
    mut order: Order,
    interrupts: &Interrupts,
    display: &mut Display,
    output: Option<&mut OutputDirectory>,
) -> anyhow::Result<RedisBenchmark> {
    let program = shards::find_load_generator(arguments.loadgen.as_deref(), order.plan.needs_clients())?;
    let throwaways = if arguments.with_redis {
        tokio::select! {
            throwaways = start_throwaways(&mut order, display) => throwaways?,
            () = interrupts.first() => anyhow::bail!("interrupted before the benchmark started"),
        }
    } else {
        Throwaways::default()
    };
    let measured = Box::pin(measure(&program, order, interrupts, display, output)).await;
    for throwaway in throwaways.servers {
        throwaway.stop().await;
    }
    let (benchmark, outcome) = measured?;
    if let Some(file) = &arguments.evidence {
        let evidence = serde_json::to_vec(&Evidence::of(&benchmark.spec, &outcome)?)?;
        std::fs::write(file, evidence).with_context(|| format!("failed to write {}", file.display()))?;
    }
    Ok(benchmark)
}

/// Throwaway servers in place of the targets. End on drop.
#[derive(Default)]
struct Throwaways {
    servers: Vec<Throwaway>,
    // Dropped after the servers, which read its files.
    _authority: Option<Authority>,
}

/// Starts servers for each target, and redirects the targets to them.
async fn start_throwaways(order: &mut Order, display: &mut Display) -> Result<Throwaways, ThrowawayError> {
    let authority = order.tls().next().is_some().then(|| Authority::new(order.tls())).transpose()?;
    let mut servers = Vec::new();
    let mut endpoints = Vec::new();
    let mut kinds = Vec::new();
    for (spec, access) in order.plan.by_target().into_iter().zip(&order.access) {
        let wanted = Wanted::of(spec, access, authority.as_ref())?;
        let throwaway = Throwaway::start(&wanted).await?;
        let target = &spec.plan.target;
        let (meant, written) = (throwaway.endpoints(), target.endpoints.join(", "));
        let place = meant.join(", ");
        display.note(&format!("target {}: using a throwaway {wanted} at {place} instead of {written}", target.name));
        endpoints.push((target.name.clone(), meant));
        kinds.push(wanted.to_string());
        servers.push(throwaway);
    }
    kinds.sort_unstable();
    if kinds.windows(2).any(|pair| pair[0] == pair[1]) {
        display.note("--with-redis starts no proxies: targets with equal servers differ only by chance");
    }
    order.replace(&endpoints, authority.as_ref());
    Ok(Throwaways { servers, _authority: authority })
}

async fn measure(
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
    let (publish, mut progress) = watch::channel(Progress::default());
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
    progress: &Progress,
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
