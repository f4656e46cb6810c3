//! `kubectl redisbench`: runs, follows and validates benchmarks, with or without a cluster.

// For the JSON of `export --format memtier-json`, which has many fields.
#![recursion_limit = "256"]

/// Like the standard one, which panics if the reader of standard error has left.
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod arguments;
mod child;
#[cfg(feature = "cluster")]
mod cluster;
mod command;
mod compare;
mod credentials;
#[cfg(test)]
mod documents;
mod draft;
mod exit;
mod explain;
mod export;
mod files;
mod flags;
mod help;
mod init;
mod interrupt;
mod local;
mod manifest;
#[cfg(feature = "cluster")]
mod operate;
mod progress;
mod reading;
mod render;
#[cfg(feature = "report")]
mod report;
#[cfg(feature = "cluster")]
mod run;
mod throwaway;
mod translate;
mod validate;

use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

use arguments::ALONE;
use command::Command;
use exit::{BAD, GOOD, USAGE};
use reading::ReadingError;

// Single-threaded: the kernel ends child processes with the thread that started them, and the load needs the machine's processors.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    log_if_asked();
    // Must be set explicitly, because a process with two providers in its dependencies has no default.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let words: Vec<_> = std::env::args_os().collect();
    let arguments = match command::parse(&words) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help on standard output, the rest on standard error.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE));
        }
    };
    render::Paint::choose(arguments.color);
    let outcome = match arguments.command {
        Command::Validate(arguments) => validate::validate(&arguments),
        Command::Export(arguments) => Box::pin(export::export(&arguments)).await,
        Command::Init(arguments) => init::init(&arguments),
        Command::Completion(arguments) => completion(arguments.shell),
        #[cfg(feature = "report")]
        Command::Report(arguments) => Box::pin(report::report(&arguments)).await,
        #[cfg(not(feature = "report"))]
        Command::Report(_) => Err(anyhow::anyhow!(
            "report is not available: this program was built without its feature `report`; build it with `make build`"
        )),
        Command::Local(arguments) => Box::pin(local::local(&arguments)).await,
        Command::Compare(arguments) => Box::pin(compare::compare(&arguments)).await,
        Command::Explain(arguments) => explain::explain(arguments.name.as_deref()),
        #[cfg(feature = "cluster")]
        Command::Run(arguments) => Box::pin(run::run(&arguments)).await,
        #[cfg(feature = "cluster")]
        Command::Cluster(command) => Box::pin(operate::perform(&command)).await,
        #[cfg(feature = "cluster")]
        Command::Version(arguments) => Box::pin(operate::version(&arguments)).await,
        #[cfg(not(feature = "cluster"))]
        Command::Version(_) => render::write(format!("client    {}\n", env!("CARGO_PKG_VERSION"))).map(|()| GOOD),
        #[cfg(not(feature = "cluster"))]
        Command::Run(_) | Command::Cluster(_) => Err(no_cluster()),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("error: {error:#}");
            let refused = matches!(error.downcast_ref::<ReadingError>(), Some(ReadingError::Refused { .. }));
            ExitCode::from(if refused { USAGE } else { BAD })
        }
    }
}

/// Completes `redisbench`. For the plugin, `kubectl_complete-redisbench` uses the script for bash.
fn completion(shell: clap_complete::Shell) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command::command(ALONE), ALONE, &mut script);
    render::write(&script).map(|()| GOOD)
}

#[cfg(not(feature = "cluster"))]
fn no_cluster() -> anyhow::Error {
    anyhow::anyhow!(
        "no cluster can be reached: this program was built without its feature `cluster`; build it with `make build`"
    )
}

/// Logs the conductor to standard error if `REDISBENCH_LOG` has a filter, such as `debug`.
fn log_if_asked() {
    if let Ok(filter) = EnvFilter::try_from_env("REDISBENCH_LOG") {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }
}
