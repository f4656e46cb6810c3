//! What a status has room for besides the lines of its trials.

use serde::Serialize;

use crate::api::RedisBenchmarkStatus;

/// The most bytes that a status of several trials may come to with what is filled in: conditions and verdict have the rest
/// of 256 KiB.
const STATUS_BYTES: usize = 228 << 10;

/// Bytes that are left.
pub(super) struct Room(usize);

impl Room {
    /// Beside what `status` has already.
    pub(super) fn of(status: &RedisBenchmarkStatus) -> Self {
        Self(STATUS_BYTES.saturating_sub(bytes(status)))
    }

    /// As many of `items`, from the first, as there is room for, and how many are left out.
    pub(super) fn fill<T: Serialize>(mut self, mut items: Vec<T>) -> (Vec<T>, u64) {
        let all = items.len();
        let fits = |item: &&T| {
            let left = self.0.checked_sub(bytes(item) + 1);
            self.0 = left.unwrap_or(self.0);
            left.is_some()
        };
        let listed = items.iter().take_while(fits).count();
        items.truncate(listed);
        (items, (all - listed) as u64)
    }
}

/// The length of something as JSON.
fn bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}
