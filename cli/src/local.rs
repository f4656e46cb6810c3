//! `local`: a benchmark without a cluster. Plan, conductor, merge, verdict and status are the operator's; only the shards are child
//! processes.

mod baseline;
mod lines;
mod measure;
mod order;
mod output;
mod repeats;
pub mod secrets;
mod shards;
mod source;

use anyhow::Context as _;
use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::evidence::Evidence;

use crate::arguments::LocalArguments;
use crate::exit::{BAD, GOOD, USAGE, exit_code};
use crate::interrupt::Interrupts;
use crate::manifest::Problem;
use crate::progress::Display;
use crate::throwaway::{Authority, Throwaway, ThrowawayError, Wanted};
use crate::{render, validate};
use measure::measure;
use order::Order;
use output::OutputDirectory;

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
