//! These tests measure times, so each has the machine to itself as far as can be had.

use tokio::sync::{Mutex, MutexGuard};

static ONE: Mutex<()> = Mutex::const_new(());

/// Waits until no other test of this program runs. Then this thread, and all threads and servers that it starts, go before
/// everything else that the machine does, if we may ask for that: root may. Without it the tests say the same, but a
/// busy machine may be too busy to tell.
pub async fn alone() -> MutexGuard<'static, ()> {
    let turn = ONE.lock().await;
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: `lowest` is valid for the call, which is about the calling thread. A refusal changes nothing.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const lowest) };
    turn
}
