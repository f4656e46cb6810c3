//! A server that does no work: it replies to every command with the right type, as fast as a socket allows. A load against it measures the
//! load generator and its machine, not Redis.
//!
//! It stores no keys. Commands are counted and skipped, not parsed: one receive and one send per batch of any size. Memory is bounded:
//! arguments are never kept, and the server stops reading from a client that does not read.

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
use self::thread::{Colleague, SharedState, Thread};
use crate::sys::Waker;

pub const LARGEST_VALUE: usize = 1 << 20;

/// Sockets in transit from the accepting thread to another one.
const MAIL: usize = 1024;

#[derive(Clone, Debug)]
pub struct NullServerConfig {
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// If 1 or more, poses as a Redis Cluster of n primaries. The other nodes listen on the ports after that of `listen`, or on free ones.
    pub cluster_nodes: u16,
    /// Bytes of the value in replies to GET and similar commands, at most [`LARGEST_VALUE`].
    pub value_bytes: usize,
    /// Serving threads. Connections are assigned round robin.
    pub threads: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum NullServerError {
    /// The port is in use, or the address is not local.
    #[error("failed to listen on {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// The ports after the first one exceed 65535.
    #[error("failed to find ports for {0} nodes after {1}: use a lower one, or 0 for free ones")]
    Ports(u16, SocketAddr),
    /// The kernel refused epoll, an eventfd or a thread.
    #[error("failed to start a thread")]
    Start(#[source] io::Error),
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct NullServer {
    addresses: Vec<SocketAddr>,
    shared: Arc<SharedState>,
    threads: Vec<(Arc<Waker>, Option<JoinHandle<()>>)>,
}

impl NullServer {
    /// Listens and serves until dropped.
    ///
    /// # Errors
    /// Fails if an address is in use or the kernel refuses a resource.
    pub fn start(config: &NullServerConfig) -> Result<Self, NullServerError> {
        let listeners = listen(config)?;
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<Vec<_>>>();
        let addresses = addresses.map_err(NullServerError::Start)?;
        let threads = config.threads.max(1);
        let value_bytes = config.value_bytes.min(LARGEST_VALUE);
        let knowledge = Knowledge { addresses: addresses.clone(), is_cluster: config.cluster_nodes > 0 };
        let shared = Arc::new(SharedState::new(Replies::new(value_bytes, knowledge), threads));
        let mut server = Self { addresses, shared, threads: Vec::new() };
        server.spawn(listeners, threads).map_err(NullServerError::Start)?;
        Ok(server)
    }

    /// The addresses served: one, or one per cluster node.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Starts the accepting thread last, because it needs a handle to every other thread.
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
                // A panic of the thread is already on stderr.
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
