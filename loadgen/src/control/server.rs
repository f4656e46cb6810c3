//! Accepts TLS connections and serves HTTP/1. The number of connections is bounded, and every wait has a timeout.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;
use tracing::{debug, warn};

/// A conductor needs one connection; the rest is for its successor and stray clients.
const CONNECTIONS: usize = 64;
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Also the idle timeout between two calls: longer than a conductor keeps a connection.
const HEADER: Duration = Duration::from_secs(75);
/// Grace period for answers in progress when the shard ends.
const GOODBYE: Duration = Duration::from_secs(2);
/// Pause after a failed accept. Without descriptors, the next accept would fail at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop`, then finishes the answers in progress.
pub async fn serve(listener: TcpListener, tls: Arc<ServerConfig>, router: Router, stop: CancellationToken) {
    let acceptor = TlsAcceptor::from(tls);
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        let Some((stream, slot)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (acceptor, router, stop) = (acceptor.clone(), router.clone(), stop.clone());
        tasks.spawn(async move {
            serve_connection(stream, acceptor, router, stop).await;
            drop(slot);
        });
    }
    tasks.close();
    if timeout(GOODBYE, tasks.wait()).await.is_err() {
        debug!("connections were closed while a reply was being sent");
    }
}

/// Takes a slot first, so that connections beyond the limit wait in the kernel's backlog.
async fn accept(listener: &TcpListener, slots: &Arc<Semaphore>) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let slot = slots.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, slot)),
        Err(error) => {
            warn!(error = %error, "failed to accept a connection");
            None
        }
    }
}

async fn serve_connection(stream: TcpStream, acceptor: TlsAcceptor, router: Router, stop: CancellationToken) {
    // Clock exchanges are single small packets. Nagle's delay would count as round trip.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(error = %error, "failed to set TCP_NODELAY");
    }
    let stream = match timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return debug!(error = %error, "the TLS handshake with a caller failed"),
        Err(_) => return debug!("the TLS handshake with a caller timed out"),
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), service_fn(move |request| router.clone().oneshot(request)));
    let mut connection = std::pin::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        debug!(error = %error, "a connection ended early");
    }
}
