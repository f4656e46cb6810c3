//! Signals, and processes that end with the test.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

/// A child that is killed on drop.
#[derive(Debug)]
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal. Returns whether the process existed.
pub fn signal(process: i32, number: libc::c_int) -> bool {
    // SAFETY: the call takes numbers and touches no memory. The caller's process is a child that was not waited for, or was just seen.
    unsafe { libc::kill(process, number) == 0 }
}

/// Makes the kernel kill the process when the thread that starts it ends.
pub fn die_with_parent(command: &mut Command) {
    // SAFETY: one system call without pointers, which is safe between fork and exec.
    let hook = || match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: the hook makes one system call and allocates nothing.
    unsafe { command.pre_exec(hook) };
}
