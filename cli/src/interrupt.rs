//! Counts interrupts such as Ctrl-C. The command handles the first; the second ends the program.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[derive(Clone, Debug)]
pub struct Interrupts {
    first: CancellationToken,
    second: CancellationToken,
}

impl Interrupts {
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

    pub async fn first(&self) {
        self.first.cancelled().await;
    }

    pub async fn second(&self) {
        self.second.cancelled().await;
    }
}
