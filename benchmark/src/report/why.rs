//! Room for reasons and figures: all lines of a benchmark must fit into a status.

/// Maximum bytes of a line's reason, for few trials, for many, and for many whose lines also have long settings. The first holds any reason
/// whole; otherwise a trial's artifact does.
const WHY_BYTES: usize = 512;
const WHY_OF_MANY_BYTES: usize = 48;
const WHY_OF_LONG_BYTES: usize = 24;

/// Lines with more swept fields have a long setting.
pub(super) const FIELDS: usize = 3;

/// From this many trials on, lines are short: all of them must fit into a status.
pub(super) const MANY: u32 = 100;

/// Maximum reasons of a verdict.
pub(super) const REASONS: usize = 16;

/// Maximum bytes of a line's reason in a benchmark with this number of trials and swept fields.
pub(super) fn why_bytes(trials: u32, fields: usize) -> usize {
    match (trials >= MANY, fields > FIELDS) {
        (false, _) => WHY_BYTES,
        (true, false) => WHY_OF_MANY_BYTES,
        (true, true) => WHY_OF_LONG_BYTES,
    }
}

/// Returns whether the lines of a benchmark with this number of trials and swept fields, of several clients or not, have room for a reason.
/// Clients have their processor time in it.
pub(super) fn has_room_for_why(trials: u32, fields: usize, of_clients: bool) -> bool {
    trials < MANY || fields <= FIELDS || !of_clients
}

/// The same for the load generator's share.
pub(super) fn has_room_for_shares(trials: u32, fields: usize, of_clients: bool) -> bool {
    trials < MANY || (fields <= FIELDS && !of_clients)
}

/// The same for counts of client-side caches.
pub(super) fn has_room_for_cache(trials: u32, fields: usize) -> bool {
    trials < MANY || fields < 2
}
