//! Ctrl-C and its like, counted: what the first one means is for the command to say, a second one is the end.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Told of SIGINT, SIGTERM and SIGHUP.
#[derive(Clone, Debug)]
pub struct Interrupts {
    first: CancellationToken,
    second: CancellationToken,
}

impl Interrupts {
    /// Takes the signals from now on.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn listen() -> io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let interrupts = Self { first: CancellationToken::new(), second: CancellationToken::new() };
        let told = interrupts.clone();
        tokio::spawn(async move {
            for token in [told.first, told.second] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                token.cancel();
            }
        });
        Ok(interrupts)
    }

    /// Waits for the first signal.
    pub async fn first(&self) {
        self.first.cancelled().await;
    }

    /// Waits for the second signal.
    pub async fn second(&self) {
        self.second.cancelled().await;
    }
}
