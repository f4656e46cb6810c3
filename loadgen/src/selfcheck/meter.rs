//! What the process uses for the load of a client under test.

use std::sync::{Mutex, MutexGuard, PoisonError};

use redisbench_wire::snapshot::ClientUsage;

use crate::sys::{Resources, resources};

/// Measures from the start of an attempt to its last outcome.
#[derive(Debug, Default)]
pub struct Meter {
    marks: Mutex<Marks>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    before: Resources,
    /// What was used until the end, and the most resident memory in bytes. `None` while the load runs.
    after: Option<(Resources, u64)>,
}

impl Meter {
    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt begins.
    pub fn begin(&self) {
        // Resets the highest resident memory (proc(5)). Where the kernel refuses, that of earlier trials stays in it.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        *self.marks() = Marks { before: resources(), after: None };
    }

    /// The attempt has ended, by its last outcome or by an abort. Later calls change nothing.
    pub fn end(&self) {
        self.marks().after.get_or_insert_with(|| (resources(), peak_bytes()));
    }

    /// What the attempt has used. `None` before its end.
    pub fn usage(&self) -> Option<ClientUsage> {
        let Marks { before, after } = *self.marks();
        let (after, peak_bytes) = after?;
        Some(ClientUsage {
            user_nanoseconds: after.user.saturating_sub(before.user),
            system_nanoseconds: after.system.saturating_sub(before.system),
            context_switches: after.context_switches.saturating_sub(before.context_switches),
            peak_bytes,
            ..ClientUsage::default()
        })
    }
}

/// The highest resident memory since the last reset. 0 if the kernel does not say.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kibibytes.unwrap_or_default().saturating_mul(1024)
}

#[cfg(test)]
mod tests {
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
}
