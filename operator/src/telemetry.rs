//! Logs on standard error, and errors as text.

use redisbench_wire::LogFormat;
use tracing_subscriber::EnvFilter;

/// Sends logs to standard error. `RUST_LOG` sets the filter; the default is level `info`.
///
/// Only the first call has an effect.
pub fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Fails only if a subscriber is already set, as in tests.
    let _ = match format {
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
        LogFormat::Text => subscriber.with_ansi(false).try_init(),
    };
}

/// An error with all its causes, without repetitions.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        // Some errors include their cause in their own text.
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = cause.source();
    }
    text
}
