//! These tests measure times, so each runs alone as far as possible.

use std::time::Duration;

use redisbench_loadgen::engine::monotonic_nanoseconds;
use tokio::sync::{Mutex, MutexGuard};

static ONE: Mutex<()> = Mutex::const_new(());

/// Waits until no other test of this program runs. Then gives this thread, and all threads and servers that it starts, real-time priority
/// over normal processes. This needs root. Without it the tests are the same, but may fail to measure on a busy machine.
pub async fn alone() -> MutexGuard<'static, ()> {
    let turn = ONE.lock().await;
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: `lowest` is valid for the duration of the call, which affects only the calling thread. A refusal changes nothing.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const lowest) };
    turn
}

/// Waits until this time of the engine.
pub async fn until(time: u64) {
    tokio::time::sleep(Duration::from_nanos(time.saturating_sub(monotonic_nanoseconds()))).await;
}
