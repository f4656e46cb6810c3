//! Checks the answers that one worker gets, and knows the keys of its own.

use std::collections::HashMap;
use std::fmt::Write as _;

use redisbench_wire::limits;
use redisbench_wire::plan::{Keys, Role, ShardPlan, Verify};
use redisbench_wire::snapshot::{Finding, FindingKind, Verification};

use super::counted::Counted;
use super::expect::Kinds;
use super::stamp::{Stamped, Writer};
use super::written::Written;
use super::{Judgement, Seen};
use crate::workload::part_of;

/// What is kept of replies whose content is not compared.
const SHORT_REPLY: usize = 256;

/// Errors with which a server says that it has not executed a command. Others, such as those that a proxy makes, may
/// come after it was.
const REJECTIONS: [&str; 22] = [
    "OOM",
    "READONLY",
    "NOAUTH",
    "NOPERM",
    "WRONGTYPE",
    "WRONGPASS",
    "MISCONF",
    "NOREPLICAS",
    "MASTERDOWN",
    "BUSY",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "LOADING",
    "MOVED",
    "ASK",
    "CROSSSLOT",
    "NOPROTO",
    "EXECABORT",
    "NOSCRIPT",
    "NOTBUSY",
    "DENIED",
    "RedirectLimit",
];

/// Whether a request may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// It has.
    Now,
    /// When the write of this key that is in flight is over.
    After(u32),
}

/// Which server said something, and when.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'m> {
    /// Its address.
    pub node: &'m str,
    /// On the monotonic clock.
    pub at: u64,
}

/// Checks the answers that one worker gets.
#[derive(Debug)]
pub struct Verifier {
    /// In the plan's order.
    checks: Vec<Check>,
    own: Option<Own>,
    found: Verification,
    /// Replies of connections that have not come to their ends.
    partial: HashMap<usize, Partial>,
    /// The most bytes of a reply that are kept.
    keep: usize,
}

/// What is checked of an operation's replies.
#[derive(Debug)]
struct Check {
    name: String,
    kinds: Kinds,
    /// What it does to the value of a key that is followed.
    role: Role,
}

/// The keys of a shard's own.
#[derive(Debug)]
struct Own {
    keys: Keys,
    width: usize,
    /// The index of the first, in the whole key space.
    first: u64,
    /// How many.
    count: u64,
    writer: Writer,
    table: Table,
    /// Requests under way that write or read one, by their numbers.
    pending: HashMap<u64, Pending>,
}

#[derive(Debug)]
enum Table {
    Written(Written),
    Counted(Counted),
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    key: u32,
    /// Of a write its number, of a read the one that must be there at least.
    sequence: u32,
    writes: bool,
}

#[derive(Debug, Default)]
struct Partial {
    bytes: Vec<u8>,
    cut: bool,
}

impl Verifier {
    /// For `plan`, if it wants anything checked. `may_evict`: the server may remove keys of its own accord.
    pub fn of(plan: &ShardPlan, may_evict: bool) -> Option<Box<Self>> {
        if plan.verify == Verify::None {
            return None;
        }
        let followed = plan.followed();
        let follows = |keys: &Keys| followed.as_ref().is_some_and(|followed| followed.keys.same_names(keys));
        let checks = plan.workload.operations.iter().map(|operation| Check {
            name: operation.name.clone(),
            kinds: Kinds::of(&operation.arguments),
            role: match Role::of(&operation.arguments) {
                role if follows(plan.workload.keys_of(operation)) => role,
                _ => Role::Beside,
            },
        });
        let values = plan.verify == Verify::Values;
        let longest = if values { plan.workload.values.size.longest() as usize } else { 0 };
        Some(Box::new(Self {
            checks: checks.collect(),
            own: followed.map(|followed| Own::new(plan, followed.keys, followed.step, may_evict)),
            found: Verification::default(),
            partial: HashMap::new(),
            keep: longest + SHORT_REPLY,
        }))
    }

    /// Whether it follows the values of keys: then one worker must have all of them.
    pub fn follows(&self) -> bool {
        self.own.is_some()
    }

    /// What was found so far.
    pub fn found(&self) -> &Verification {
        &self.found
    }

    /// Begins anew. What is known of keys stays known, because they stay.
    pub fn forget_findings(&mut self) {
        self.found = Verification::default();
    }

    /// Request `k` of `operation`, whose key has this number, is about to be sent; or has to wait.
    pub fn begin(&mut self, k: u64, operation: u16, number: u64) -> Begin {
        let (Some(own), Some(check)) = (&mut self.own, self.checks.get(usize::from(operation))) else {
            return Begin::Now;
        };
        let Some(key) = own.index(number) else { return Begin::Now };
        let pending = match (check.role, &mut own.table) {
            (Role::Write { .. } | Role::Count { .. }, table) if table.is_in_flight(key) => return Begin::After(key),
            (Role::Write { expires, .. }, Table::Written(written)) => {
                Pending { key, sequence: written.begin(key, expires), writes: true }
            }
            (Role::Count { .. }, Table::Counted(counted)) => {
                counted.begin(key);
                Pending { key, sequence: 0, writes: true }
            }
            (Role::Read, Table::Written(written)) => Pending { key, sequence: written.expected(key), writes: false },
            _ => return Begin::Now,
        };
        own.pending.insert(k, pending);
        Begin::Now
    }

    /// Request `k` will not be sent after all. Returns the key that it was to write.
    pub fn cancelled(&mut self, k: u64) -> Option<u32> {
        self.ended(k, true)
    }

    /// Puts the stamp into the encoded command of request `k`.
    pub fn stamp(&self, k: u64, operation: u16, command: &mut [u8]) {
        let Some(Check { role: Role::Write { data, .. }, .. }) = self.checks.get(usize::from(operation)) else {
            return;
        };
        if let Some(own) = &self.own
            && let Some(pending) = own.pending.get(&k)
            && let Some(value) = argument(command, *data)
        {
            own.writer.write(own.first + u64::from(pending.key), pending.sequence, value);
        }
    }

    /// Puts the stamp into the command with which the preload writes key `k`.
    pub fn stamp_preload(&mut self, k: u64, command: &mut [u8]) {
        if let Some((own, key)) = self.preloading(k)
            && let Table::Written(written) = &mut own.table
            && let Some(value) = argument(command, 2)
        {
            // It may be encoded more than once before it is sent.
            let sequence = written.in_flight(key).unwrap_or_else(|| written.begin(key, false));
            own.writer.write(k, sequence, value);
        }
    }

    /// The preload's write of key `k` was answered: with nil if the key was there already.
    pub fn preloaded(&mut self, k: u64, nil: bool) {
        if let Some((Table::Written(written), key)) = self.preloading(k).map(|(own, key)| (&mut own.table, key))
            && let Some(sequence) = written.in_flight(key)
        {
            if nil { written.rejected(key, sequence) } else { written.acknowledged(key, sequence) }
        }
    }

    /// The preload's write of key `k` failed.
    pub fn preload_failed(&mut self, k: u64) {
        if let Some((Table::Written(written), key)) = self.preloading(k).map(|(own, key)| (&mut own.table, key))
            && let Some(sequence) = written.in_flight(key)
        {
            written.unknown(key, sequence);
        }
    }

    fn preloading(&mut self, k: u64) -> Option<(&mut Own, u32)> {
        let own = self.own.as_mut()?;
        let key = k.checked_sub(own.first).filter(|key| *key < own.count)?;
        Some((own, key as u32))
    }

    /// Request `k` was answered without an error. Returns the key that it wrote, which is free for another write.
    pub fn answered(&mut self, k: u64, operation: u16, seen: Seen<'_>, moment: Moment<'_>) -> Option<u32> {
        self.found.checked += 1;
        let check = self.checks.get(usize::from(operation))?;
        let pending = self.own.as_mut().and_then(|own| own.pending.remove(&k));
        if !check.kinds.has(seen) {
            let expected = check.kinds.names();
            let key = match (&self.own, pending) {
                (Some(own), Some(pending)) => own.name(pending.key),
                _ => format!("operation {}", check.name),
            };
            self.found.mismatched += 1;
            self.keep(FindingKind::Mismatch, &key, expected, seen.name(), moment);
            let own = self.own.as_mut()?;
            let pending = pending?;
            // Whatever that was, it does not say that the write was executed.
            return pending.writes.then(|| own.table.unknown(pending.key, pending.sequence));
        }
        let (role, pending) = (check.role, pending?);
        let Pending { key, sequence, writes } = pending;
        let own = self.own.as_mut()?;
        let (first, writer) = (own.first, own.writer);
        let stamped = |seen: Seen<'_>| match seen {
            Seen::Bulk(value) => Some(writer.read(first + u64::from(key), value)),
            _ => None,
        };
        let found = match (role, &mut own.table) {
            (Role::Write { returns_old: false, .. }, Table::Written(written)) => {
                written.acknowledged(key, sequence);
                return Some(key);
            }
            (Role::Write { .. }, Table::Written(written)) => {
                // What was there just before.
                let expected = written.expected(key);
                let old = stamped(seen);
                let judgement = written.read(key, expected, old);
                written.acknowledged(key, sequence);
                (judgement, expected.to_string(), says(old))
            }
            (Role::Read, Table::Written(written)) => {
                let stamped = stamped(seen);
                let expected = written.expected(key).max(sequence);
                (written.read(key, sequence, stamped), expected.to_string(), says(stamped))
            }
            (Role::Count { .. }, Table::Counted(counted)) => {
                let Seen::Integer(value) = seen else { return None };
                let range = counted.range(key, 1);
                (counted.counted(key, value), between(range), value.to_string())
            }
            _ => return None,
        };
        self.judge(found, key, moment);
        writes.then_some(key)
    }

    /// Request `k` failed by an error of this kind, or without an answer. Returns the key that it was to write.
    pub fn failed(&mut self, k: u64, kind: &str, answered: bool) -> Option<u32> {
        self.ended(k, answered && REJECTIONS.contains(&kind))
    }

    /// Request `k` has no reply that could be judged.
    fn ended(&mut self, k: u64, not_executed: bool) -> Option<u32> {
        let own = self.own.as_mut()?;
        let Pending { key, sequence, writes } = own.pending.remove(&k)?;
        if !writes {
            return None;
        }
        if not_executed {
            own.table.rejected(key, sequence);
        } else {
            self.found.ambiguous_writes += 1;
            own.table.unknown(key, sequence);
        }
        Some(key)
    }

    /// Nobody will hear of what is in flight any more.
    pub fn abandon(&mut self) {
        self.partial.clear();
        let Some(own) = &mut self.own else { return };
        own.pending.clear();
        match &mut own.table {
            Table::Written(written) => written.abandon(),
            Table::Counted(counted) => counted.abandon(),
        }
    }

    /// The indices of the keys of its own, in the whole key space.
    pub fn own_keys(&self) -> Option<std::ops::Range<u64>> {
        self.own.as_ref().map(|own| own.first..own.first + own.count)
    }

    /// Whether the last read shall read key `k`: one that something was sent to.
    pub fn wants_read(&self, k: u64) -> bool {
        let Some(own) = &self.own else { return false };
        let Some(key) = k.checked_sub(own.first).filter(|key| *key < own.count) else { return false };
        match &own.table {
            Table::Written(written) => written.is_touched(key as u32),
            Table::Counted(counted) => counted.is_known(key as u32),
        }
    }

    /// The last read found this in key `k`.
    pub fn read_back(&mut self, k: u64, seen: Seen<'_>, moment: Moment<'_>) {
        self.found.checked += 1;
        self.found.read_keys += 1;
        let Some((own, key)) = self.preloading(k) else { return };
        let found = match &mut own.table {
            Table::Written(written) => {
                let stamped = match seen {
                    Seen::Bulk(value) => Some(own.writer.read(k, value)),
                    Seen::Nil => None,
                    _ => Some(Stamped::Broken),
                };
                let expected = written.expected(key);
                (written.read(key, expected, stamped), expected.to_string(), says(stamped))
            }
            Table::Counted(counted) => {
                let range = between(counted.range(key, 0));
                match seen {
                    Seen::Nil => (counted.read(key, None), range, "nothing".to_owned()),
                    Seen::Bulk(text) => match std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
                        Some(value) => (counted.read(key, Some(value)), range, value.to_string()),
                        None => (Judgement::Corrupt, range, "no number".to_owned()),
                    },
                    other => (Judgement::Corrupt, range, other.name().to_owned()),
                }
            }
        };
        self.judge(found, key, moment);
    }

    /// The last read could not read so many keys.
    pub fn unread(&mut self, keys: u64) {
        self.found.unread_keys += keys;
    }

    fn judge(&mut self, (judgement, expected, seen): (Judgement, String, String), key: u32, moment: Moment<'_>) {
        let kind = match judgement {
            Judgement::Fine => return,
            Judgement::Indeterminate => {
                self.found.indeterminate += 1;
                return;
            }
            Judgement::Lost { writes } => {
                self.found.lost_writes += writes;
                FindingKind::LostWrite
            }
            Judgement::LostKey => {
                self.found.lost_keys += 1;
                FindingKind::LostKey
            }
            Judgement::Corrupt => {
                self.found.corrupt += 1;
                FindingKind::Corrupt
            }
            Judgement::TooHigh => {
                self.found.mismatched += 1;
                FindingKind::Mismatch
            }
        };
        let name = self.own.as_ref().map(|own| own.name(key)).unwrap_or_default();
        self.keep(kind, &name, expected, &seen, moment);
    }

    fn keep(&mut self, kind: FindingKind, key: &str, expected: String, seen: &str, moment: Moment<'_>) {
        if self.found.findings.len() < limits::FINDINGS {
            self.found.findings.push(Finding {
                kind,
                key: limits::message(key),
                expected,
                seen: seen.to_owned(),
                node: limits::message(moment.node),
                at_nanoseconds: moment.at,
            });
        }
    }

    /// Keeps the beginning of a reply of connection `index` whose end has not come.
    pub fn hold(&mut self, index: usize, piece: &[u8]) {
        let partial = self.partial.entry(index).or_default();
        let room = self.keep.saturating_sub(partial.bytes.len());
        partial.cut |= piece.len() > room;
        partial.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// The reply whose end has come, and whether all of it was kept; none if `piece` is all of it.
    pub fn whole(&mut self, index: usize, piece: &[u8]) -> Option<(Vec<u8>, bool)> {
        if self.partial.is_empty() || !self.partial.contains_key(&index) {
            return None;
        }
        self.hold(index, piece);
        self.partial.remove(&index).map(|partial| (partial.bytes, !partial.cut))
    }

    /// Connection `index` begins anew.
    pub fn forget(&mut self, index: usize) {
        self.partial.remove(&index);
    }
}

impl Own {
    fn new(plan: &ShardPlan, keys: Keys, step: Option<i64>, may_evict: bool) -> Self {
        let part = part_of(keys.count, plan.shard.into(), plan.shards.into());
        let count = part.end - part.start;
        let room = usize::try_from(count).unwrap_or(usize::MAX);
        let last = keys.start.saturating_add(keys.count.saturating_sub(1));
        Self {
            width: (keys.width as usize).max(last.checked_ilog10().unwrap_or(0) as usize + 1),
            keys,
            first: part.start,
            count,
            writer: Writer::new(&plan.run, plan.trial, plan.shard),
            table: match step {
                None => Table::Written(Written::new(room, may_evict)),
                Some(step) => Table::Counted(Counted::new(room, step, may_evict)),
            },
            pending: HashMap::new(),
        }
    }

    /// The place of the key with this number, if it is one of its own.
    fn index(&self, number: u64) -> Option<u32> {
        let index = number.checked_sub(self.keys.start)?.checked_sub(self.first)?;
        (index < self.count).then_some(index as u32)
    }

    fn name(&self, key: u32) -> String {
        let number = self.keys.start + self.first + u64::from(key);
        let mut name = self.keys.prefix.clone();
        // Writing into memory cannot fail.
        let _ = write!(name, "{number:0width$}", width = self.width);
        name
    }
}

impl Table {
    fn is_in_flight(&self, key: u32) -> bool {
        match self {
            Self::Written(written) => written.is_in_flight(key),
            Self::Counted(counted) => counted.is_in_flight(key),
        }
    }

    fn rejected(&mut self, key: u32, sequence: u32) {
        match self {
            Self::Written(written) => written.rejected(key, sequence),
            Self::Counted(counted) => counted.rejected(key),
        }
    }

    /// Returns the key.
    fn unknown(&mut self, key: u32, sequence: u32) -> u32 {
        match self {
            Self::Written(written) => written.unknown(key, sequence),
            Self::Counted(counted) => counted.unknown(key),
        }
        key
    }
}

fn says(stamped: Option<Stamped>) -> String {
    match stamped {
        None => "nothing".to_owned(),
        Some(Stamped::Own(sequence)) => sequence.to_string(),
        Some(Stamped::Foreign) => "a value of another run".to_owned(),
        Some(Stamped::Broken) => "a value that nobody wrote".to_owned(),
    }
}

fn between((least, most): (i64, i64)) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

/// Argument `nth` of an encoded command, counted from its name, which is 0.
fn argument(command: &mut [u8], nth: usize) -> Option<&mut [u8]> {
    let mut at = end_of_line(command, 0)?;
    for argument in 0..=nth {
        let end = end_of_line(command, at)?;
        let length: usize = std::str::from_utf8(command.get(at + 1..end - 2)?).ok()?.parse().ok()?;
        if argument == nth {
            return command.get_mut(end..end + length);
        }
        at = end + length + 2;
    }
    None
}

/// Behind the line that begins at `at`.
fn end_of_line(command: &[u8], at: usize) -> Option<usize> {
    Some(at + command.get(at..)?.iter().position(|byte| *byte == b'\n')? + 1)
}

#[cfg(test)]
#[path = "verifier_tests.rs"]
mod tests;
