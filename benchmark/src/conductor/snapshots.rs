//! Which snapshot replaces the one that is kept. Pure.

use redisbench_wire::limits;
use redisbench_wire::snapshot::Snapshot;

/// Whether `new` replaces `kept` as the snapshot of `shard` in `attempt`. That it comes from the accepted incarnation
/// is checked with the answer that held it.
///
/// # Errors
/// When it is no snapshot of this shard and attempt, breaks the contract's bounds, or does not add up: no data.
pub fn replaces(kept: Option<&Snapshot>, new: &Snapshot, shard: u32, attempt: u32) -> Result<bool, String> {
    if (new.shard, new.attempt) != (shard, attempt) {
        return Err(format!("a snapshot of shard {}, attempt {}, not of attempt {attempt}", new.shard, new.attempt));
    }
    let bounds = [
        ("operations", new.operations.len(), limits::OPERATIONS),
        ("nodes", new.nodes.len(), limits::NODES),
        ("errors", new.errors.len(), limits::ERROR_KINDS),
        ("series points", new.series.completed.len(), limits::SERIES_POINTS),
    ];
    if let Some((what, length, bound)) = bounds.into_iter().find(|(_, length, bound)| length > bound) {
        return Err(format!("{length} {what} in a snapshot, beyond {bound}"));
    }
    if !new.total.balances() || !new.warmup.balances() || !new.operations.iter().all(|o| o.tally.balances()) {
        return Err("a snapshot whose requests do not add up".to_owned());
    }
    Ok(kept.is_none_or(|kept| new.sequence > kept.sequence))
}

/// Whether anything has happened between two snapshots of one shard. A trial that stands still may have failed.
pub fn advances(kept: &Snapshot, new: &Snapshot) -> bool {
    let mark = |snapshot: &Snapshot| {
        let outcomes =
            |tally: &redisbench_wire::snapshot::Tally| (tally.scheduled, tally.succeeded, tally.errors, tally.unsent);
        (snapshot.stage, outcomes(&snapshot.total), outcomes(&snapshot.warmup))
    };
    mark(kept) != mark(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conductor::tests::snapshot;

    #[test]
    fn only_a_higher_sequence_replaces() {
        let kept = snapshot(1, 2, 5);
        assert_eq!(replaces(None, &kept, 1, 2), Ok(true));
        assert_eq!(replaces(Some(&kept), &snapshot(1, 2, 4), 1, 2), Ok(false));
        assert_eq!(replaces(Some(&kept), &snapshot(1, 2, 5), 1, 2), Ok(false));
        assert_eq!(replaces(Some(&kept), &snapshot(1, 2, 6), 1, 2), Ok(true));
    }

    #[test]
    fn what_is_not_of_this_trial_is_no_data() {
        assert!(replaces(None, &snapshot(0, 2, 1), 1, 2).is_err());
        assert!(replaces(None, &snapshot(1, 1, 1), 1, 2).is_err());
    }

    #[test]
    fn what_does_not_add_up_is_no_data() {
        let mut lopsided = snapshot(1, 2, 1);
        lopsided.total.scheduled += 1;
        assert!(replaces(None, &lopsided, 1, 2).is_err());
    }

    #[test]
    fn lists_are_bounded() {
        let mut long = snapshot(1, 2, 1);
        long.series.completed = vec![0; limits::SERIES_POINTS + 1];
        assert!(replaces(None, &long, 1, 2).unwrap_err().contains("series points"));
    }
}
