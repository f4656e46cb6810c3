//! Child processes that cannot outlive this one. A bounded buffer holds their output.

use std::collections::VecDeque;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;
use tokio::task::JoinHandle;

use crate::flags::target::ENVIRONMENT;

const KEPT_LINES: usize = 40;
/// The longest line that is kept, in bytes.
const LINE_BYTES: u64 = 4096;

/// Timeout for the rest of an ended child's output: a grandchild may keep the pipe open.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A running child. Killed on drop, and by the kernel if this process dies without dropping it.
#[derive(Debug)]
pub struct Child {
    process: tokio::process::Child,
    output: Output,
    readers: Vec<JoinHandle<()>>,
}

impl Child {
    /// Starts `program` with `arguments`, and with `input` as its standard input.
    ///
    /// Must be called from the main thread, because the kernel ends the child with the *thread* that started it.
    ///
    /// # Errors
    /// If the program cannot be started, or does not read its input.
    pub async fn start(program: &Path, arguments: &[String], input: &[u8]) -> io::Result<Self> {
        let mut command = Command::new(program);
        command
            .args(arguments)
            // Only this process needs it.
            .env_remove(ENVIRONMENT)
            .stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            // A process group of its own: only this process handles Ctrl-C on the terminal.
            .process_group(0);
        die_with_parent(&mut command);
        let mut process = command.spawn()?;
        let output = Output::default();
        let stdout = process.stdout.take().map(|stdout| output.collect(stdout));
        let stderr = process.stderr.take().map(|stderr| output.collect(stderr));
        if let Some(mut stdin) = process.stdin.take() {
            stdin.write_all(input).await?;
        }
        Ok(Self { process, output, readers: stdout.into_iter().chain(stderr).collect() })
    }

    /// Its process id. None once it has ended.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// The child's exit status. None while it runs.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }

    /// Sends SIGTERM, and SIGKILL after `patience`.
    pub async fn stop(&mut self, patience: Duration) {
        if let Some(id) = self.process.id().and_then(|id| i32::try_from(id).ok()) {
            // SAFETY: kill takes no pointers, and the child has not been reaped, so the id is still its own.
            unsafe { libc::kill(id, libc::SIGTERM) };
        }
        if tokio::time::timeout(patience, self.process.wait()).await.is_err() {
            // Fails only if it has just ended by itself.
            let _ = self.process.kill().await;
        }
    }

    /// The last lines of output before the child ended.
    pub async fn last_words(&mut self) -> String {
        let readers = futures::future::join_all(self.readers.drain(..));
        // On a timeout, use the output so far.
        let _ = tokio::time::timeout(LAST_WORDS, readers).await;
        self.output.text()
    }
}

/// The end of a process as text: its exit code or signal.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(libc::SIGKILL)) => "signal 9 (SIGKILL), possibly out of memory".to_owned(),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown status".to_owned(),
    }
}

fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let hook = move || {
        // SAFETY: prctl with these arguments and getppid are plain system calls, which are safe between fork and exec.
        let (result, present_parent) = unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        // If the parent died before prctl, no signal will come.
        if u32::try_from(present_parent) != Ok(parent) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: the hook makes two system calls and allocates nothing.
    unsafe { command.pre_exec(hook) };
}

#[derive(Clone, Debug, Default)]
struct Output(Arc<Mutex<VecDeque<String>>>);

impl Output {
    fn collect(&self, stream: impl AsyncRead + Send + Unpin + 'static) -> JoinHandle<()> {
        let output = self.clone();
        tokio::spawn(async move {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            // Bounds memory: the rest of a longer line becomes the next line.
            while matches!((&mut reader).take(LINE_BYTES).read_until(b'\n', &mut line).await, Ok(read) if read > 0) {
                output.push(String::from_utf8_lossy(line.trim_ascii_end()).into_owned());
                line.clear();
            }
        })
    }

    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> (std::path::PathBuf, Vec<String>) {
        ("/bin/sh".into(), vec!["-c".to_owned(), script.to_owned()])
    }

    #[tokio::test]
    async fn keeps_the_last_lines_only() {
        let (program, arguments) = shell("cat; for i in $(seq 100); do echo line $i; done; exit 3");
        let mut child = Child::start(&program, &arguments, b"").await.unwrap();
        let status = child.wait().await.unwrap();
        assert_eq!(describe(status), "exit code 3");
        let words = child.last_words().await;
        assert_eq!(words.lines().count(), KEPT_LINES);
        assert!(words.starts_with("line 61\n") && words.ends_with("\nline 100"), "{words}");
    }

    #[tokio::test]
    async fn stops_a_child_that_ignores_sigterm() {
        let (program, arguments) = shell("trap '' TERM; echo ready; while :; do read x </dev/null; done");
        let mut child = Child::start(&program, &arguments, b"").await.unwrap();
        while child.output.text() != "ready" {
            tokio::task::yield_now().await;
        }
        child.stop(Duration::from_millis(50)).await;
        assert!(describe(child.wait().await.unwrap()).starts_with("signal 9 "));
    }

    #[tokio::test]
    async fn gives_the_input() {
        let (program, arguments) = shell("read word; exit $word");
        let mut child = Child::start(&program, &arguments, b"7\n").await.unwrap();
        assert_eq!(child.wait().await.unwrap().code(), Some(7));
    }
}
