//! Processor time and memory of a process that serves a client under test.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redisbench_wire::snapshot::ClientUsage;

use crate::sys::{Resources, resources};

/// The kernel's unit of another process's processor time, `USER_HZ`: 10 ms on all that we build for.
const TICK_NANOSECONDS: u64 = 10_000_000;

/// Measures from the start of an attempt to its last outcome.
#[derive(Debug, Default)]
pub struct Meter {
    marks: Mutex<Marks>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    process: Process,
    /// Its usage at the start. `None` if the kernel does not report it.
    before: Option<Resources>,
    has_ended: bool,
    /// Its usage at the end, and its most resident memory in bytes.
    after: Option<(Resources, u64)>,
}

/// The measured process.
#[derive(Clone, Copy, Debug, Default)]
enum Process {
    #[default]
    Own,
    /// By its ID.
    Other(u32),
    /// One that this process cannot see.
    Hidden,
}

impl Meter {
    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From the next attempt on, measures another process. `None`: one whose ID is unknown, so that attempts have no usage.
    pub fn measure(&self, process: Option<u32>) {
        self.marks().process = process.map_or(Process::Hidden, Process::Other);
    }

    /// An attempt begins.
    pub fn begin(&self) {
        let mut marks = self.marks();
        let process = marks.process;
        process.reset_peak();
        *marks = Marks { process, before: process.resources(), ..Marks::default() };
    }

    /// The attempt has ended, by its last outcome or by an abort. Later calls change nothing.
    pub fn end(&self) {
        let mut marks = self.marks();
        if !std::mem::replace(&mut marks.has_ended, true) {
            marks.after = marks.process.resources().map(|after| (after, marks.process.peak_bytes()));
        }
    }

    /// Usage of the attempt. `None` before its end, or if the kernel does not report it.
    pub fn usage(&self) -> Option<ClientUsage> {
        let Marks { before, after, .. } = *self.marks();
        let (before, (after, peak_bytes)) = before.zip(after)?;
        Some(ClientUsage {
            user_nanoseconds: after.user.saturating_sub(before.user),
            system_nanoseconds: after.system.saturating_sub(before.system),
            context_switches: after.context_switches.saturating_sub(before.context_switches),
            peak_bytes,
            ..ClientUsage::default()
        })
    }
}

impl Process {
    /// Its folder in proc(5).
    fn folder(self) -> Option<PathBuf> {
        match self {
            Self::Own => Some("/proc/self".into()),
            Self::Other(id) => Some(format!("/proc/{id}").into()),
            Self::Hidden => None,
        }
    }

    fn read(self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.folder()?.join(file)).ok()
    }

    /// Resets the highest resident memory. Where the kernel refuses, as for a process of another user, that of earlier trials stays in it.
    fn reset_peak(self) {
        if let Some(folder) = self.folder() {
            let _ = std::fs::write(folder.join("clear_refs"), "5");
        }
    }

    fn resources(self) -> Option<Resources> {
        if matches!(self, Self::Own) {
            return Some(resources());
        }
        let (user, system) = processor_time(&self.read("stat")?)?;
        let threads = std::fs::read_dir(self.folder()?.join("task")).ok()?;
        let switches = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("status")).ok());
        Some(Resources { user, system, context_switches: switches.map(|status| context_switches(&status)).sum() })
    }

    /// The highest resident memory since the last reset. 0 if the kernel does not say.
    fn peak_bytes(self) -> u64 {
        let status = self.read("status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        kibibytes.unwrap_or_default().saturating_mul(1024)
    }
}

/// The nanoseconds of all threads in their own code and in the kernel, from `/proc/ID/stat`.
fn processor_time(stat: &str) -> Option<(u64, u64)> {
    // The second field is the program's name, which may contain spaces and brackets. The times are fields 14 and 15.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut times = rest.split_whitespace().skip(11).map(|time| time.parse::<u64>().ok());
    let mut next = || Some(times.next()??.saturating_mul(TICK_NANOSECONDS));
    Some((next()?, next()?))
}

/// The switches of a thread, from its `status`.
fn context_switches(status: &str) -> u64 {
    let counts = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
    counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_memory_of_an_earlier_attempt_is_not_counted() {
        let meter = Meter::default();
        meter.begin();
        assert_eq!(meter.usage(), None);
        let large = std::hint::black_box(vec![1_u8; 256 << 20]);
        meter.end();
        let first = meter.usage().unwrap();
        assert!(first.peak_bytes >= 256 << 20, "{first:?}");
        drop(large);
        meter.begin();
        meter.end();
        let second = meter.usage().unwrap();
        assert!(second.peak_bytes < first.peak_bytes - (128 << 20), "{second:?}");
    }

    #[test]
    fn times_and_switches_are_read_whatever_the_programs_name() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 9 0 0 0 123 45 6 7 20 0 3 0 100 1 2";
        assert_eq!(processor_time(stat), Some((1_230_000_000, 450_000_000)));
        assert_eq!((processor_time("42 (a) S 1"), processor_time("")), (None, None));
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t5\n";
        assert_eq!((context_switches(status), context_switches("")), (12, 0));
    }

    #[test]
    fn another_process_is_measured_while_it_runs() {
        // The shell waits for its child, which is a switch whatever else runs.
        let script = "read go; n=0; while [ $n -lt 300000 ]; do n=$((n + 1)); done; sleep 0.01; echo over; read go";
        let mut child =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let meter = Meter::default();
        meter.measure(Some(child.id()));
        meter.begin();
        child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "over\n");
        meter.end();
        let usage = meter.usage().unwrap();
        assert!(usage.user_nanoseconds + usage.system_nanoseconds >= TICK_NANOSECONDS, "{usage:?}");
        assert!(usage.context_switches > 0 && usage.peak_bytes > 0, "{usage:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        meter.begin();
        meter.end();
        assert_eq!(meter.usage(), None, "it has ended");
        meter.measure(None);
        meter.begin();
        meter.end();
        assert_eq!(meter.usage(), None, "it is not visible");
    }
}
