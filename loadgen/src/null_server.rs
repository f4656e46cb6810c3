//! A server that does no work: it answers every command with a reply of the right kind, as fast as a socket allows.
//! Whoever drives it measures the load generator and this machine, not Redis.
//!
//! It keeps no keys. Commands are counted and skipped, not parsed: one receive and one send per batch, whatever is in
//! it. Memory is bounded: a command's arguments are never kept, and a client that does not read is not read from.

mod replies;
mod scan;
#[cfg(test)]
mod tests;
mod thread;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use self::replies::{Knowledge, Replies};
use self::thread::{Colleague, Shared, Thread};
use crate::engine::sys::Waker;

/// The largest value that can be asked for.
pub const LARGEST_VALUE: usize = 1 << 20;

/// Sockets on their way from the thread that accepts to another one.
const MAIL: usize = 1024;

/// What the server shall be.
#[derive(Clone, Debug)]
pub struct NullServerConfig {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// With 1 or more: poses as a Redis Cluster of so many primaries. The further ones have the ports after that of
    /// `listen`, or free ones.
    pub cluster_nodes: u16,
    /// Bytes of the value that GET and the like are answered with, at most [`LARGEST_VALUE`].
    pub value_bytes: usize,
    /// Threads that serve. The connections are dealt out to them in turn.
    pub threads: usize,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum NullServerError {
    /// Somebody else has the port, or the address is not ours.
    #[error("failed to listen on {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// The ports after the first one are beyond the last port there is.
    #[error("failed to find ports for {0} nodes after {1}: use a lower one, or 0 for free ones")]
    Ports(u16, SocketAddr),
    /// The kernel refused epoll, an eventfd or a thread.
    #[error("failed to start a thread")]
    Start(#[source] io::Error),
}

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub struct NullServer {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    threads: Vec<(Arc<Waker>, Option<JoinHandle<()>>)>,
}

impl NullServer {
    /// Listens and serves until it is dropped.
    ///
    /// # Errors
    /// When an address is taken, or the kernel refuses what it takes.
    pub fn start(config: &NullServerConfig) -> Result<Self, NullServerError> {
        let listeners = listen(config)?;
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<Vec<_>>>();
        let addresses = addresses.map_err(NullServerError::Start)?;
        let threads = config.threads.max(1);
        let value_bytes = config.value_bytes.min(LARGEST_VALUE);
        let knowledge = Knowledge { addresses: addresses.clone(), is_cluster: config.cluster_nodes > 0 };
        let shared = Arc::new(Shared::new(Replies::new(value_bytes, knowledge), threads));
        let mut server = Self { addresses, shared, threads: Vec::new() };
        server.spawn(listeners, threads).map_err(NullServerError::Start)?;
        Ok(server)
    }

    /// Where it listens: one address, or one for each of the cluster's nodes.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The thread that accepts is the last to be started, and knows all others.
    fn spawn(&mut self, listeners: Vec<TcpListener>, threads: usize) -> io::Result<()> {
        let mut listeners = Some(listeners);
        let mut colleagues = Vec::new();
        for index in (0..threads).rev() {
            let waker = Arc::new(Waker::new()?);
            let (sender, mail) = sync_channel(MAIL);
            let thread = Thread::new(Arc::clone(&self.shared), index, &waker, mail)?;
            let thread = if index == 0 {
                thread.accepting(listeners.take().unwrap_or_default(), std::mem::take(&mut colleagues))?
            } else {
                colleagues.push(Colleague { sender, waker: Arc::clone(&waker) });
                thread
            };
            let handle = std::thread::Builder::new().name(format!("null-{index}")).spawn(move || thread.run())?;
            self.threads.push((waker, Some(handle)));
        }
        Ok(())
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.shared.stop();
        for (waker, thread) in &mut self.threads {
            waker.wake();
            if let Some(thread) = thread.take() {
                // A thread that panicked has said so on stderr.
                let _ = thread.join();
            }
        }
    }
}

fn listen(config: &NullServerConfig) -> Result<Vec<TcpListener>, NullServerError> {
    let nodes = config.cluster_nodes.max(1);
    let bind = |node: u16| {
        let mut address = config.listen;
        if address.port() != 0 {
            let port = address.port().checked_add(node);
            address.set_port(port.ok_or(NullServerError::Ports(nodes, config.listen))?);
        }
        let listener = TcpListener::bind(address).map_err(|error| NullServerError::Listen(address, error))?;
        listener.set_nonblocking(true).map_err(NullServerError::Start)?;
        Ok(listener)
    };
    (0..nodes).map(bind).collect()
}
