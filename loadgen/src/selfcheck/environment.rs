//! Settings of the machine that may affect a result.

use std::fs;

use redisbench_wire::limits;
use redisbench_wire::snapshot::Environment;

/// The current settings. Unreadable ones are left out.
pub(super) fn read() -> Environment {
    let text = |path: &str| Some(limits::message(fs::read_to_string(path).ok()?.trim()));
    let (soft, hard) = fs::read_to_string("/proc/self/limits").map_or((None, None), |limits| open_files(&limits));
    Environment {
        open_files_soft: soft,
        open_files_hard: hard,
        somaxconn: text("/proc/sys/net/core/somaxconn").and_then(|number| number.parse().ok()),
        congestion_control: text("/proc/sys/net/ipv4/tcp_congestion_control"),
        transparent_huge_pages: text("/sys/kernel/mm/transparent_hugepage/enabled").and_then(|text| chosen(&text)),
    }
}

/// The soft and the hard limit; `None` means unlimited.
fn open_files(limits: &str) -> (Option<u64>, Option<u64>) {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap_or_default();
    let mut numbers = line.split_whitespace().map(|number| number.parse().ok());
    (numbers.next().flatten(), numbers.next().flatten())
}

/// The word in brackets, which marks the selected option.
fn chosen(choice: &str) -> Option<String> {
    let (_, from) = choice.split_once('[')?;
    Some(from.split_once(']')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_kernel_are_understood() {
        let limits =
            "Max processes  5 6 processes\nMax open files            1024                 unlimited            files\n";
        assert_eq!(open_files(limits), (Some(1024), None));
        assert_eq!(chosen("always [madvise] never"), Some("madvise".to_owned()));
        assert_eq!((open_files(""), chosen("never")), ((None, None), None));
    }
}
