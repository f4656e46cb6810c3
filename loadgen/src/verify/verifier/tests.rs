use redisbench_wire::plan::{Operation, Part, Preload};

use super::*;
use crate::sample::plan;
use crate::verify::own_workload;
use crate::workload::Workload;

const MOMENT: Moment<'_> = Moment { node: "redis:6379", at: 7 };

fn operation(name: &str, command: &str) -> Operation {
    let part = |word: &str| match word {
        "K" => Part::Key,
        "V" => Part::Data,
        literal => Part::Literal(literal.into()),
    };
    let arguments = command.split(' ').map(|word| vec![part(word)]).collect();
    Operation { name: name.into(), weight: 1, arguments, keys: None }
}

/// A shard that follows values, and the commands that it sends.
struct Shard {
    plan: ShardPlan,
    workload: Workload,
    verifier: Box<Verifier>,
}

impl Shard {
    fn new(verify: Verify, commands: &[&str]) -> Self {
        let mut plan = plan();
        plan.verify = verify;
        plan.workload_mut().operations = commands.iter().map(|command| operation(command, command)).collect();
        let plan = plan.of_shard(1);
        let own = own_workload(&plan);
        let workload = Workload::of_trial(own.as_ref().unwrap_or(&plan)).unwrap();
        let verifier = Verifier::of(&plan, false).unwrap();
        Self { plan, workload, verifier }
    }

    /// Begins request k as one of `operation`, whatever the mix says.
    fn begin(&mut self, k: u64, operation: u16) -> Begin {
        self.verifier.begin(k, operation, self.workload.key(k, operation))
    }

    fn command(&self, k: u64, operation: u16) -> Vec<u8> {
        let mut room = vec![0; self.workload.longest() + Workload::SLACK];
        let length = self.workload.encode([k], operation, &mut room);
        room.truncate(length);
        self.verifier.stamp(k, operation, &mut room);
        room
    }

    /// Sends a write, acknowledges it, and returns the value.
    fn write(&mut self, k: u64, operation: u16) -> Vec<u8> {
        assert_eq!(self.begin(k, operation), Begin::Now);
        let mut command = self.command(k, operation);
        let value = argument(&mut command, 2).unwrap().to_vec();
        assert!(self.verifier.answered(k, operation, Seen::Status(b"OK"), MOMENT).is_some());
        value
    }

    /// The shard's next request with the same key as request k.
    fn same_key(&self, k: u64, operation: u16) -> u64 {
        let key = self.workload.key(k, operation);
        (1..1000)
            .map(|step| k + step * u64::from(self.plan.shards))
            .find(|k| self.workload.key(*k, operation) == key)
            .unwrap()
    }

    fn wrong(&self) -> Vec<(FindingKind, &str, &str)> {
        let findings = &self.verifier.found().findings;
        findings.iter().map(|found| (found.kind, found.expected.as_str(), found.seen.as_str())).collect()
    }
}

#[test]
fn what_was_written_is_read_and_nothing_else() {
    let mut shard = Shard::new(Verify::Values, &["SET K V", "GET K"]);
    let value = shard.write(1, 0);
    assert_eq!(value.len(), 100);
    let again = shard.same_key(1, 0);
    for (seen, wrong) in [
        (Seen::Bulk(&value), None),
        (Seen::Bulk(b"something else that is long enough for a stamp"), Some(FindingKind::Corrupt)),
        (Seen::Bulk(&value[..99]), Some(FindingKind::Corrupt)),
        (Seen::Bulk(b""), Some(FindingKind::Corrupt)),
        (Seen::Status(b"OK"), Some(FindingKind::Mismatch)),
        (Seen::Nil, Some(FindingKind::LostKey)),
    ] {
        let before = shard.verifier.found().findings.len();
        assert_eq!(shard.begin(again, 1), Begin::Now);
        assert_eq!(shard.verifier.answered(again, 1, seen, MOMENT), None);
        let new = shard.verifier.found().findings.get(before).map(|found| found.kind);
        assert_eq!(new, wrong, "{seen:?}");
    }
    let Verification { counts: found, findings } = shard.verifier.found();
    assert_eq!((found.checked, found.corrupt, found.mismatched, found.lost_keys), (7, 3, 1, 1));
    let finding = &findings[0];
    let number = shard.workload.key(1, 0);
    assert_eq!((finding.key.as_str(), finding.node.as_str()), (format!("rb:{number}").as_str(), "redis:6379"));
    assert_eq!(shard.wrong()[0], (FindingKind::Corrupt, "1", "a value that was never written"));
    assert_eq!(shard.wrong()[4], (FindingKind::LostKey, "1", "nothing"));
}

#[test]
fn another_keys_value_is_corrupt() {
    let mut shard = Shard::new(Verify::Values, &["SET K V", "GET K"]);
    let first = shard.write(1, 0);
    let other =
        (1..1000).map(|step| 1 + 3 * step).find(|k| shard.workload.key(*k, 0) != shard.workload.key(1, 0)).unwrap();
    shard.write(other, 0);
    let read = shard.same_key(other, 0);
    shard.begin(read, 1);
    shard.verifier.answered(read, 1, Seen::Bulk(&first), MOMENT);
    assert_eq!(shard.verifier.found().counts.corrupt, 1);
}

#[test]
fn a_key_has_one_write_in_flight_and_any_number_of_reads() {
    let mut shard = Shard::new(Verify::Values, &["SET K V", "GET K"]);
    let (second, third) = (shard.same_key(1, 0), shard.same_key(shard.same_key(1, 0), 0));
    assert_eq!(shard.begin(1, 0), Begin::Now);
    let key = u32::try_from(shard.workload.key(1, 0) - 3).unwrap();
    assert_eq!(shard.begin(second, 0), Begin::After(key), "shard 1 of 3 has keys 3 to 5 of 10");
    assert_eq!(shard.begin(third, 1), Begin::Now, "a read");
    assert_eq!(shard.verifier.answered(1, 0, Seen::Status(b"OK"), MOMENT), Some(key));
    assert_eq!(shard.begin(second, 0), Begin::Now);
    assert_eq!(shard.verifier.cancelled(second), Some(key), "it was not sent after all");
    assert_eq!(shard.begin(second, 0), Begin::Now);
}

#[test]
fn an_old_value_that_a_write_returns_is_read() {
    let mut shard = Shard::new(Verify::Values, &["SET K V GET"]);
    let (second, third) = (shard.same_key(1, 0), shard.same_key(shard.same_key(1, 0), 0));
    let mut values = Vec::new();
    let mut last = None::<usize>;
    for (k, old) in [(1, None), (second, Some(0)), (third, Some(0))] {
        assert_eq!(shard.begin(k, 0), Begin::Now);
        let mut command = shard.command(k, 0);
        values.push(argument(&mut command, 2).unwrap().to_vec());
        let seen = old.map_or(Seen::Nil, |old: usize| Seen::Bulk(&values[old]));
        assert!(shard.verifier.answered(k, 0, seen, MOMENT).is_some());
        last = old;
    }
    assert_eq!(last, Some(0));
    assert_eq!(shard.wrong(), [(FindingKind::LostWrite, "2", "1")], "the third found the first, not the second");
}

#[test]
fn a_failure_that_does_not_say_whether_it_was_executed_is_ambiguous() {
    let mut shard = Shard::new(Verify::Values, &["SET K V", "GET K"]);
    for (k, kind, answered) in [(1, "OOM", true), (4, "upstream", true), (7, "Timeout", false), (10, "READONLY", true)]
    {
        assert_eq!(shard.begin(k, 0), Begin::Now);
        assert!(shard.verifier.failed(k, kind, answered).is_some());
    }
    shard.begin(13, 1);
    assert_eq!(shard.verifier.failed(13, "Timeout", false), None, "a read");
    assert_eq!(shard.verifier.found().counts.ambiguous_writes, 2);
}

#[test]
fn the_preloads_values_are_the_first() {
    let mut shard = Shard::new(Verify::Values, &["SET K V", "GET K"]);
    let plan = shard.plan.with(|plan| plan.preload = Preload::FillMissing);
    let preload = shard.workload.preload(&plan).unwrap().unwrap();
    let mut values = Vec::new();
    for k in 3..6 {
        let mut room = vec![0; preload.longest() + Workload::SLACK];
        let length = preload.encode([k], 0, &mut room);
        for _ in 0..2 {
            shard.verifier.stamp_preload(k, &mut room[..length]);
        }
        values.push(argument(&mut room[..length], 2).unwrap().to_vec());
        shard.verifier.preloaded(k, k == 5);
    }
    assert!(shard.verifier.wants_read(3) && shard.verifier.wants_read(4), "they were written");
    assert!(!shard.verifier.wants_read(5), "it was there already");
    assert!(!shard.verifier.wants_read(2) && !shard.verifier.wants_read(6), "another shard's");
    shard.verifier.read_back(3, Seen::Bulk(&values[0]), MOMENT);
    shard.verifier.read_back(4, Seen::Bulk(&values[0]), MOMENT);
    assert_eq!(shard.wrong(), [(FindingKind::Corrupt, "1", "a value that was never written")]);
    assert_eq!(shard.verifier.found().counts.read_keys, 2);
}

#[test]
fn what_nobody_hears_of_any_more_is_ambiguous() {
    let mut shard = Shard::new(Verify::Values, &["SET K V", "GET K"]);
    let value = shard.write(1, 0);
    let second = shard.same_key(1, 0);
    shard.begin(second, 0);
    shard.verifier.abandon();
    shard.verifier.forget_findings();
    assert_eq!(shard.begin(second, 0), Begin::Now, "its number may come again");
    let own = shard.workload.key(1, 0);
    shard.verifier.answered(second, 0, Seen::Status(b"OK"), MOMENT);
    shard.verifier.read_back(own, Seen::Bulk(&value), MOMENT);
    assert_eq!(shard.wrong(), [(FindingKind::LostWrite, "3", "1")]);
    assert_eq!(shard.verifier.found().counts.lost_writes, 1, "the second was never acknowledged");
}

#[test]
fn counts_go_up_by_one() {
    let mut shard = Shard::new(Verify::Replies, &["INCR K", "GET K"]);
    let mut k = 1;
    for (value, wrong) in [(5, 0), (6, 0), (7, 0), (7, 1), (9, 2)] {
        assert_eq!(shard.begin(k, 0), Begin::Now);
        shard.verifier.answered(k, 0, Seen::Integer(value), MOMENT);
        assert_eq!(shard.wrong().len(), wrong, "{value}");
        k = shard.same_key(k, 0);
    }
    assert_eq!(shard.wrong(), [(FindingKind::LostWrite, "8", "7"), (FindingKind::Mismatch, "8", "9")]);
    let key = shard.workload.key(1, 0);
    shard.verifier.read_back(key, Seen::Bulk(b"9"), MOMENT);
    shard.verifier.read_back(key, Seen::Bulk(b"nine"), MOMENT);
    assert_eq!((shard.verifier.found().counts.lost_writes, shard.verifier.found().counts.corrupt), (1, 1));
}

#[test]
fn replies_alone_follow_nothing() {
    let mut shard = Shard::new(Verify::Replies, &["SET K V", "LPUSH list V", "WHAT K"]);
    assert!(!shard.verifier.follows() && shard.verifier.own_keys().is_none());
    for (operation, seen) in
        [(0, Seen::Status(b"OK")), (0, Seen::Integer(1)), (1, Seen::Integer(1)), (1, Seen::Nil), (2, Seen::Array)]
    {
        assert_eq!(shard.begin(1, operation), Begin::Now);
        shard.verifier.answered(1, operation, seen, MOMENT);
    }
    assert_eq!(
        shard.wrong(),
        [(FindingKind::Mismatch, "OK", "an integer"), (FindingKind::Mismatch, "an integer", "nil")]
    );
    assert_eq!(shard.verifier.found().findings[0].key, "operation SET K V");
}

#[test]
fn findings_are_bounded() {
    let mut shard = Shard::new(Verify::Replies, &["SET K V"]);
    for k in 0..1000 {
        shard.verifier.answered(k, 0, Seen::Nil, MOMENT);
    }
    let found = shard.verifier.found();
    assert_eq!((found.counts.mismatched, found.findings.len()), (1000, limits::FINDINGS));
}

#[test]
fn a_reply_in_pieces_is_put_together_up_to_a_bound() {
    let mut shard = Shard::new(Verify::Values, &["SET K V"]);
    let verifier = &mut shard.verifier;
    assert_eq!(verifier.whole(0, b"$3\r\nabc\r\n"), None, "it is all of it");
    verifier.hold(0, b"$3\r\na");
    assert_eq!(verifier.whole(1, b"+OK\r\n"), None, "another connection's");
    assert_eq!(verifier.whole(0, b"bc\r\n"), Some((b"$3\r\nabc\r\n".to_vec(), true)));
    for _ in 0..1000 {
        verifier.hold(0, &[0; 1000]);
    }
    let (bytes, whole) = verifier.whole(0, b"\r\n").unwrap();
    assert_eq!((bytes.len(), whole), (100 + SHORT_REPLY, false));
    verifier.hold(0, b"$3\r\na");
    verifier.forget(0);
    assert_eq!(verifier.whole(0, b"+OK\r\n"), None);
}
