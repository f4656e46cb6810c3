//! The cold side of a shard: the HTTPS API, the state machine of a trial with its limits, and the loop that connects them to the target
//! and to what sends the requests, the engine or another driver.

mod api;
mod data;
mod descriptors;
pub mod driver;
pub mod exit;
mod failure;
mod identity;
mod plan_check;
mod probe;
mod server;
mod shard;
mod spans;
pub mod trial;

pub use descriptors::raise_open_files;
pub use identity::{Credential, CredentialError, Identity};
pub use shard::Settings;
pub use trial::ProcessLimits;

pub use crate::target::Mounts;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::exit::Exit;

/// Calls queued for the shard's loop, which answers each in microseconds.
const CALLS: usize = 64;

/// Serves the API and runs the shard until it ends. `terminated` resolves on a signal to terminate.
pub async fn run(
    settings: Settings,
    credential: Credential,
    listener: TcpListener,
    terminated: impl Future<Output = ()>,
) -> Exit {
    let (sender, calls) = mpsc::channel(CALLS);
    let router = api::router(api::Api { identity: settings.identity.clone(), token: credential.token, calls: sender });
    let stop = CancellationToken::new();
    let server = tokio::spawn(server::serve(listener, credential.tls, router, stop.clone()));
    let exit = shard::Shard::new(settings).run(calls, terminated).await;
    stop.cancel();
    // The server ends early only by a panic, which is already on stderr.
    let _ = server.await;
    exit
}
