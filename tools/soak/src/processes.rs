//! The processes of a run, according to the kernel: all with a working directory below that of the run.

use std::fs;
use std::path::Path;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Process {
    pub id: i32,
    pub words: Vec<String>,
}

impl Process {
    /// The shard's index, if this process is a shard.
    pub fn shard(&self) -> Option<u32> {
        let at = self.words.iter().position(|word| word == "--index")?;
        let is_shard = self.words.first().is_some_and(|program| program.ends_with("redisbench-loadgen"));
        if is_shard { self.words.get(at + 1)?.parse().ok() } else { None }
    }

    pub fn is_server(&self) -> bool {
        self.words.first().is_some_and(|program| program.contains("redis-server"))
    }
}

/// Processes with `directory` or a directory below it as working directory, by process id.
pub fn below(directory: &Path) -> Vec<Process> {
    let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut found: Vec<Process> = ids
        .filter(|id| fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|place| place.starts_with(directory)))
        .map(|id| {
            let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            let words = words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
            Process { id, words }
        })
        .collect();
    found.sort_by_key(|process| process.id);
    found
}

/// The peak memory of a process, in KiB; 0 if it has ended.
pub fn peak_kib(id: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The pause between two polls.
pub fn look_again() {
    std::thread::park_timeout(Duration::from_millis(20));
}
