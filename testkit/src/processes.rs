//! Signals, processes that end with the test, and programs that run to their end.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

pub use libc::{SIGCONT, SIGINT, SIGKILL, SIGSTOP, SIGTERM};

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

/// Runs a program to its end, with `input` as its standard input. Returns its standard error.
pub fn run(program: &str, arguments: &[&str], input: &str) -> io::Result<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| io::Error::other(format!("failed to start {program}: {error}")))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    Err(io::Error::other(format!("`{program} {}` failed: {}", arguments.join(" "), said.trim())))
}

/// Makes the kernel kill the process when the thread that starts it ends.
pub fn die_with_parent(command: &mut Command) {
    // SAFETY: one system call without pointers, which is safe between fork and exec.
    let hook = || match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, SIGKILL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: the hook makes one system call and allocates nothing.
    unsafe { command.pre_exec(hook) };
}
