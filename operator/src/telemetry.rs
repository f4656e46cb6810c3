//! Logs on standard error.

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Sends logs to standard error. `RUST_LOG` chooses what is logged, by default everything from level `info`.
///
/// Called once; a second call changes nothing.
pub fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Fails only when a subscriber stands already, as in tests.
    let _ = match format {
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
        LogFormat::Text => subscriber.with_ansi(false).try_init(),
    };
}
