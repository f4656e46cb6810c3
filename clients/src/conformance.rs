//! The conformance test of drivers: runs a driver's command against a redis-server of its own, and checks what docs/drivers.md requires.

mod checks;
mod peer;
mod server;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;

use self::checks::{ALL, Suite};

/// The options of the subcommand `conformance`.
#[derive(Debug, Args)]
pub struct ConformanceArguments {
    /// Only the checks with this text in their name
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Check the driver's option --noop, which calls no library
    #[arg(long)]
    noop: bool,
    /// The driver's command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl ConformanceArguments {
    /// Runs the checks. The last line of the output counts them.
    pub fn run(self) -> ExitCode {
        let Self { only, noop, mut command } = self;
        if noop {
            command.push("--noop".to_owned());
        }
        let suite = match Suite::start(command) {
            Ok(suite) => suite,
            Err(error) => {
                let _ = writeln!(io::stderr(), "failed to start redis-server: {error:#}");
                return ExitCode::FAILURE;
            }
        };
        let mut failed = 0;
        let checks: Vec<_> = ALL.iter().filter(|check| check.name.contains(&only) && (!noop || check.noop)).collect();
        for check in &checks {
            let line = match (check.run)(&suite) {
                Ok(()) => format!("ok      {}", check.name),
                Err(error) => {
                    failed += 1;
                    format!("FAILED  {}: {error:#}", check.name)
                }
            };
            let _ = writeln!(io::stdout(), "{line}");
        }
        let _ = writeln!(io::stdout(), "{} passed, {failed} failed", checks.len() - failed);
        if failed == 0 && !checks.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
