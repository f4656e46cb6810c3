//! Findings of reply verification in their form for the status.

use redisbench_wire::plan::Verify;
use redisbench_wire::snapshot::{self, VerificationCounts};

use super::conditions::{Truth, reason};
use crate::api::Validated;
use crate::api::status::{FindingResult, VerificationResult};
use crate::human;
use crate::measurement::Outcome;
use crate::measurement::merge::Merged;

/// Maximum findings in a full result.
const FINDINGS: usize = 256;

/// None if nothing was checked.
pub fn result(spec: &Validated, outcome: &Outcome, merged: &Merged) -> Option<VerificationResult> {
    let counts = merged.verification?;
    let mode = spec.plan.verify;
    if mode == Verify::None {
        return None;
    }
    let mut findings: Vec<FindingResult> = Vec::new();
    for outcome in &outcome.shards {
        let Some(snapshot) = &outcome.snapshot else { continue };
        let start = snapshot.window.start_nanoseconds;
        let of_shard = snapshot.verification.iter().flat_map(|verification| &verification.findings);
        findings.extend(of_shard.map(|of| finding(of, outcome.shard, start)).take(FINDINGS));
    }
    // The first findings are the most useful ones.
    findings.sort_by_key(|finding| finding.after_start_milliseconds);
    findings.truncate(FINDINGS);
    Some(VerificationResult { mode, counts, findings })
}

fn finding(of: &snapshot::Finding, shard: u32, start: u64) -> FindingResult {
    let cut = |text: &str, most: usize| text.chars().take(most).collect::<String>();
    FindingResult {
        kind: of.kind,
        key: cut(&of.key, 256),
        expected: cut(&of.expected, 128),
        seen: cut(&of.seen, 128),
        node: cut(&of.node, 262),
        shard,
        after_start_milliseconds: of.at_nanoseconds.saturating_sub(start) / 1_000_000,
    }
}

/// The condition Verified.
pub(super) fn condition(found: &VerificationCounts) -> (Truth, &'static str, String) {
    let counts = [
        (found.corrupt, "corrupt value", ""),
        (found.mismatched, "wrong reply", ""),
        (found.lost_writes, "lost write", ""),
        (found.lost_keys, "lost key", ""),
        (found.unread_keys, "key", " that could not be read at the end"),
        (found.indeterminate, "indeterminate reply", ""),
    ];
    let told = counts.into_iter().filter(|(number, ..)| *number > 0);
    let told: Vec<String> = told.map(|(number, noun, more)| human::counted(number, noun) + more).collect();
    let (checked, were) = (human::counted(found.checked, "reply"), human::were(found.checked));
    let message = match told.as_slice() {
        [] => format!("{checked} {were} checked, no problems found"),
        told => format!("{checked} {were} checked: {}", told.join(", ")),
    };
    match (found.is_wrong(), found.corrupt.max(found.mismatched), found.unread_keys) {
        (true, 0, _) => (Truth::False, reason::DATA_LOST, message),
        (true, ..) => (Truth::False, reason::WRONG_REPLIES, message),
        (false, _, 0) => (Truth::True, reason::VERIFIED, message),
        (false, ..) => (Truth::Unknown, reason::KEYS_UNREAD, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::merge::merge;
    use crate::sample::{SECOND, outcome, plan, snapshot, spec};

    #[test]
    fn shards_findings_come_together_in_the_order_of_time() {
        let mut spec = spec(2, &serde_json::json!({"type": "ClosedLoop", "duration": "10s"}));
        plan(&mut spec).verify = Verify::Values;
        let of = |shard: u32, at: u64| {
            let mut snapshot = snapshot(shard, &[1000; 5]);
            let finding = |at: u64| snapshot::Finding {
                kind: snapshot::FindingKind::LostWrite,
                key: "rb:1".into(),
                expected: "9".into(),
                seen: "7".into(),
                node: "redis:6379".into(),
                at_nanoseconds: snapshot.window.start_nanoseconds + at,
            };
            snapshot.verification = Some(snapshot::Verification {
                counts: VerificationCounts { checked: 100, lost_writes: 2, ..VerificationCounts::default() },
                findings: vec![finding(at), finding(at + 2 * SECOND)],
            });
            snapshot
        };
        let outcome = outcome(vec![of(0, 2 * SECOND), of(1, SECOND)]);
        let merged = merge(&spec.plan, &outcome).unwrap().unwrap();
        let found = result(&spec, &outcome, &merged).unwrap();
        assert_eq!((found.mode, found.counts.checked, found.counts.lost_writes), (Verify::Values, 200, 4));
        let order: Vec<_> = found.findings.iter().map(|of| (of.shard, of.after_start_milliseconds)).collect();
        assert_eq!(order, [(1, 1000), (0, 2000), (1, 3000), (0, 4000)]);
        let (truth, why, message) = condition(&found.counts);
        assert_eq!((truth, why), (Truth::False, reason::DATA_LOST));
        assert_eq!(message, "200 replies were checked: 4 lost writes");
    }

    #[test]
    fn the_condition_says_what_is_known() {
        let of = |found: VerificationCounts| {
            let (truth, why, _) = condition(&found);
            (truth, why)
        };
        let found = VerificationCounts::default;
        assert_eq!(of(found()), (Truth::True, reason::VERIFIED));
        assert_eq!(of(VerificationCounts { indeterminate: 1, ..found() }), (Truth::True, reason::VERIFIED));
        assert_eq!(of(VerificationCounts { unread_keys: 1, ..found() }), (Truth::Unknown, reason::KEYS_UNREAD));
        assert_eq!(
            of(VerificationCounts { unread_keys: 1, lost_keys: 1, ..found() }),
            (Truth::False, reason::DATA_LOST)
        );
        assert_eq!(
            of(VerificationCounts { corrupt: 1, lost_keys: 1, ..found() }),
            (Truth::False, reason::WRONG_REPLIES)
        );
    }
}
