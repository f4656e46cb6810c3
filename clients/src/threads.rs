//! The threads on which callers and libraries run.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use redisbench_loadgen::engine::{Assembly, RunQueue};
use redisbench_wire::plan::Runtime;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A runtime on threads of its own, until it is dropped.
#[derive(Debug)]
pub struct Threads {
    pub handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    owner: Option<JoinHandle<()>>,
}

impl Drop for Threads {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(owner) = self.owner.take() {
            // A panic was already printed to stderr.
            let _ = owner.join();
        }
    }
}

/// A thread's runtime, by its index, and the thread's statistics.
pub type Started = (usize, RunQueue);

/// Starts `threads` threads. Returns their runtimes, and for each thread its runtime's index and its statistics.
///
/// # Errors
/// Fails if the kernel refuses a thread.
pub fn start(flavour: Runtime, threads: usize, assembly: &Arc<Assembly>) -> io::Result<(Vec<Threads>, Vec<Started>)> {
    let (runtimes, each) = match flavour {
        Runtime::CurrentThread => (threads, 1),
        Runtime::MultiThread => (1, threads),
    };
    let mut all = Vec::with_capacity(runtimes);
    let mut seats = Vec::with_capacity(threads);
    for index in 0..runtimes {
        let (started, news) = channel();
        all.push(start_one(flavour, index, each, Arc::clone(assembly), started)?);
        for _ in 0..each {
            let queue = news.recv().map_err(|_| io::Error::other("a runtime ended before it began"))?;
            seats.push((index, queue));
        }
    }
    Ok((all, seats))
}

fn start_one(
    flavour: Runtime,
    index: usize,
    threads: usize,
    assembly: Arc<Assembly>,
    started: Sender<RunQueue>,
) -> io::Result<Threads> {
    let (stop, stopped) = oneshot::channel::<()>();
    let (made, runtime) = channel();
    let owner = std::thread::Builder::new().name(format!("client-{index}")).spawn(move || {
        let register = move || {
            // Further threads are the runtime's own helpers, for which `start` does not wait.
            let _ = started.send(assembly.add_this_thread());
        };
        let runtime = match flavour {
            Runtime::CurrentThread => {
                register();
                Builder::new_current_thread().enable_all().build()
            }
            Runtime::MultiThread => {
                Builder::new_multi_thread().worker_threads(threads).on_thread_start(register).enable_all().build()
            }
        };
        match runtime {
            Ok(runtime) => {
                let _ = made.send(Ok(runtime.handle().clone()));
                // Resolves when the sender is dropped.
                let _ = runtime.block_on(stopped);
            }
            Err(error) => drop(made.send(Err(error))),
        }
    })?;
    let handle = runtime.recv().map_err(|_| io::Error::other("a runtime ended before it began"))??;
    Ok(Threads { handle, stop: Some(stop), owner: Some(owner) })
}
