//! Child processes, with their output and CPU time.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// Interval of checks whether a child has ended.
const LOOK: Duration = Duration::from_millis(5);

/// A child that has exited successfully.
#[derive(Debug)]
pub struct Ended {
    /// User and system time of the whole process, its threads included.
    pub cpu: Duration,
    /// From start to exit.
    pub wall: Duration,
    /// Its standard output and standard error.
    pub output: String,
}

/// Runs `words` on the processors `cpus` (in taskset's format) until it exits.
///
/// # Errors
/// If it cannot be started, fails, or does not exit within `limit`; with its output.
pub fn run(words: &[&str], cpus: &str, limit: Duration) -> anyhow::Result<Ended> {
    let said = || words.join(" ");
    let mut file = tempfile::tempfile().context("failed to create a file for a program's output")?;
    let begin = Instant::now();
    let mut child = pinned(words, cpus, &file)?.spawn().with_context(|| format!("failed to start {}", said()))?;
    let id = child.id().cast_signed();
    let (status, cpu) = loop {
        if let Some(ended) = reap(id).with_context(|| format!("failed to wait for {}", said()))? {
            break ended;
        }
        if begin.elapsed() > limit {
            child.kill().context("failed to kill a program after its timeout")?;
            child.wait().context("failed to kill a program after its timeout")?;
            anyhow::bail!("timed out after {} s: {}\n{}", limit.as_secs(), said(), text(&mut file));
        }
        std::thread::park_timeout(LOOK);
    };
    let wall = begin.elapsed();
    let output = text(&mut file);
    anyhow::ensure!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "failed: {}\n{output}", said());
    Ok(Ended { cpu, wall, output })
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    // Unreadable output is omitted.
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A command for `words` on the processors `cpus`, with its output in `file`.
pub fn pinned(words: &[&str], cpus: &str, file: &File) -> anyhow::Result<Command> {
    let mut command = Command::new("taskset");
    let copy = || file.try_clone().map(Stdio::from).context("failed to pass a file to a program");
    command.args(["-c", cpus]).args(words).stdin(Stdio::null()).stdout(copy()?).stderr(copy()?);
    Ok(command)
}

/// The status and CPU time of a child that has exited. None while it runs.
fn reap(id: libc::pid_t) -> io::Result<Option<(libc::c_int, Duration)>> {
    let mut status = 0;
    // SAFETY: all fields are numbers, for which zero is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid for writing. The id is that of a child that is not waited for elsewhere.
    match unsafe { libc::wait4(id, &raw mut status, libc::WNOHANG, &raw mut usage) } {
        0 => Ok(None),
        result if result < 0 => Err(io::Error::last_os_error()),
        _ => Ok(Some((status, duration(usage.ru_utime) + duration(usage.ru_stime)))),
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(time.tv_usec.unsigned_abs())
}

/// CPU time of all threads of process `id`.
pub fn cpu_of(id: u32) -> anyhow::Result<Duration> {
    let tasks = Path::new("/proc").join(id.to_string()).join("task");
    let mut nanoseconds = 0;
    for task in std::fs::read_dir(&tasks).context("failed to read a server's threads")? {
        let path = task.context("failed to read a server's threads")?.path().join("schedstat");
        let text = std::fs::read_to_string(&path).context("failed to read a server's processor time")?;
        nanoseconds += text.split_whitespace().next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanoseconds))
}

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

/// Raises the limit of open files to the maximum, for this process and its children.
pub fn raise_open_files() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writing.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is valid, and is only read.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
