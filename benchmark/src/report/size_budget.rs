//! Limits lists to the room left in a status beside the lines of its trials.

use serde::Serialize;

use crate::api::{RedisBenchmarkStatus, json_bytes};

/// Maximum bytes of a status of several trials with its lists filled in. Conditions and verdict get the rest of 256 KiB.
const STATUS_BYTES: usize = 228 << 10;

/// Bytes left.
pub(super) struct SizeBudget(usize);

impl SizeBudget {
    /// Room beside the current contents of `status`.
    pub(super) fn of(status: &RedisBenchmarkStatus) -> Self {
        Self(STATUS_BYTES.saturating_sub(json_bytes(status)))
    }

    /// As many of the first `items` as fit, and the number left out.
    pub(super) fn fill<T: Serialize>(mut self, mut items: Vec<T>) -> (Vec<T>, u64) {
        let all = items.len();
        let fits = |item: &&T| {
            let left = self.0.checked_sub(json_bytes(item) + 1);
            self.0 = left.unwrap_or(self.0);
            left.is_some()
        };
        let listed = items.iter().take_while(fits).count();
        items.truncate(listed);
        (items, (all - listed) as u64)
    }
}
