//! The date and the machine of a measurement, as pages of evidence name them.

use std::process::Command;

/// Today's date in UTC, such as 2026-01-31.
pub fn today() -> String {
    jiff::Timestamp::now().to_string().chars().take(10).collect()
}

/// Processors, memory, kernel and load of this machine, as a list in Markdown.
pub fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let model = model.trim_start_matches([' ', '\t', ':']);
    let virtual_machine = if info.contains(" hypervisor") { ", a virtual machine" } else { "" };
    let memory = read("/proc/meminfo");
    // The first number is the total, in KiB.
    let gib = memory.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0.0) / f64::from(1 << 20);
    let load: Vec<_> = read("/proc/loadavg").split_whitespace().take(3).map(str::to_owned).collect();
    format!(
        "- machine: {processors} x {model}{virtual_machine}, {gib:.0} GiB of memory\n- kernel: {}\n- load before: {}\n",
        read("/proc/sys/kernel/osrelease").trim(),
        load.join(" ")
    )
}

/// The first line that `program` prints, such as its version.
pub fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().trim().to_owned()
}
