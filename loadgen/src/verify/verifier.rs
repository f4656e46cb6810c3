//! Verifies the replies of one worker, and tracks the keys that it owns.

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

/// Bytes kept of a reply whose content is not compared.
const SHORT_REPLY: usize = 256;

/// Errors that prove that a command was not executed. Others, such as a proxy's, may follow an execution.
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

/// The time at which a request may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// It has begun.
    Now,
    /// Only after the write in flight to this key.
    After(u32),
}

/// The server and time of a reply.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'m> {
    /// The server's address.
    pub node: &'m str,
    /// Nanoseconds of the monotonic clock.
    pub at: u64,
}

/// Verifies the replies of one worker.
#[derive(Debug)]
pub struct Verifier {
    /// In the plan's order of operations.
    checks: Vec<Check>,
    own: Option<Own>,
    found: Verification,
    /// Incomplete replies by connection.
    partial: HashMap<usize, PartialReply>,
    /// The most bytes of a reply to keep.
    keep: usize,
}

/// The checks of an operation's replies.
#[derive(Debug)]
struct Check {
    name: String,
    kinds: Kinds,
    /// The operation's effect on a followed key.
    role: Role,
}

/// The keys that a shard owns.
#[derive(Debug)]
struct Own {
    keys: Keys,
    width: usize,
    /// The index of the first one in the whole keyspace.
    first: u64,
    /// Their number.
    count: u64,
    writer: Writer,
    table: KeyTable,
    /// Requests in flight that read or write an owned key, by number.
    pending: HashMap<u64, Pending>,
}

#[derive(Debug)]
enum KeyTable {
    Written(Written),
    Counted(Counted),
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    key: u32,
    /// For a write its number, for a read the lowest number that it must return.
    sequence: u32,
    writes: bool,
}

#[derive(Debug, Default)]
struct PartialReply {
    bytes: Vec<u8>,
    cut: bool,
}

impl Verifier {
    /// Returns `None` if `plan` asks for no verification. `may_evict`: the server may evict keys.
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

    /// True if it follows values. Then one worker must own all keys.
    pub fn follows(&self) -> bool {
        self.own.is_some()
    }

    /// The findings so far.
    pub fn found(&self) -> &Verification {
        &self.found
    }

    /// Drops the findings. Keeps the state of keys, because the keys remain.
    pub fn forget_findings(&mut self) {
        self.found = Verification::default();
    }

    /// Registers request `k` of `operation` with this key number before it is sent, unless it must wait.
    pub fn begin(&mut self, k: u64, operation: u16, number: u64) -> Begin {
        let (Some(own), Some(check)) = (&mut self.own, self.checks.get(usize::from(operation))) else {
            return Begin::Now;
        };
        let Some(key) = own.index(number) else { return Begin::Now };
        let pending = match (check.role, &mut own.table) {
            (Role::Write { .. } | Role::Count { .. }, table) if table.is_in_flight(key) => return Begin::After(key),
            (Role::Write { expires, .. }, KeyTable::Written(written)) => {
                Pending { key, sequence: written.begin(key, expires), writes: true }
            }
            (Role::Count { .. }, KeyTable::Counted(counted)) => {
                counted.begin(key);
                Pending { key, sequence: 0, writes: true }
            }
            (Role::Read, KeyTable::Written(written)) => Pending { key, sequence: written.expected(key), writes: false },
            _ => return Begin::Now,
        };
        own.pending.insert(k, pending);
        Begin::Now
    }

    /// Request `k` will not be sent. Returns the key that it would have written.
    pub fn cancelled(&mut self, k: u64) -> Option<u32> {
        self.ended(k, true)
    }

    /// Stamps the encoded command of request `k`.
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

    /// Stamps the preload command of key `k`.
    pub fn stamp_preload(&mut self, k: u64, command: &mut [u8]) {
        if let Some((own, key)) = self.preloading(k)
            && let KeyTable::Written(written) = &mut own.table
            && let Some(value) = argument(command, 2)
        {
            // A command may be encoded more than once before it is sent.
            let sequence = written.in_flight(key).unwrap_or_else(|| written.begin(key, false));
            own.writer.write(k, sequence, value);
        }
    }

    /// The preload's write of key `k` was answered, with nil if the key existed.
    pub fn preloaded(&mut self, k: u64, nil: bool) {
        if let Some((KeyTable::Written(written), key)) = self.preloading(k).map(|(own, key)| (&mut own.table, key))
            && let Some(sequence) = written.in_flight(key)
        {
            if nil { written.rejected(key, sequence) } else { written.acknowledged(key, sequence) }
        }
    }

    /// The preload's write of key `k` failed.
    pub fn preload_failed(&mut self, k: u64) {
        if let Some((KeyTable::Written(written), key)) = self.preloading(k).map(|(own, key)| (&mut own.table, key))
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

    /// Verifies the reply to request `k`, which is not an error. Returns the key that it wrote, which is free for another write.
    pub fn answered(&mut self, k: u64, operation: u16, seen: Seen<'_>, moment: Moment<'_>) -> Option<u32> {
        self.found.counts.checked += 1;
        let check = self.checks.get(usize::from(operation))?;
        let pending = self.own.as_mut().and_then(|own| own.pending.remove(&k));
        if !check.kinds.has(seen) {
            let expected = check.kinds.names();
            let key = match (&self.own, pending) {
                (Some(own), Some(pending)) => own.name(pending.key),
                _ => format!("operation {}", check.name),
            };
            self.found.counts.mismatched += 1;
            self.keep(FindingKind::Mismatch, &key, expected, seen.name(), moment);
            let own = self.own.as_mut()?;
            let pending = pending?;
            // A reply of the wrong type does not prove that the write was executed.
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
            (Role::Write { returns_old: false, .. }, KeyTable::Written(written)) => {
                written.acknowledged(key, sequence);
                return Some(key);
            }
            (Role::Write { .. }, KeyTable::Written(written)) => {
                // The reply is the previous value.
                let expected = written.expected(key);
                let old = stamped(seen);
                let judgement = written.read(key, expected, old);
                written.acknowledged(key, sequence);
                (judgement, expected.to_string(), says(old))
            }
            (Role::Read, KeyTable::Written(written)) => {
                let stamped = stamped(seen);
                let expected = written.expected(key).max(sequence);
                (written.read(key, sequence, stamped), expected.to_string(), says(stamped))
            }
            (Role::Count { .. }, KeyTable::Counted(counted)) => {
                let Seen::Integer(value) = seen else { return None };
                let range = counted.range(key, 1);
                (counted.counted(key, value), between(range), value.to_string())
            }
            _ => return None,
        };
        self.judge(found, key, moment);
        writes.then_some(key)
    }

    /// Request `k` failed with an error of this kind, or without an answer. Returns the key that it was writing.
    pub fn failed(&mut self, k: u64, kind: &str, answered: bool) -> Option<u32> {
        self.ended(k, answered && REJECTIONS.contains(&kind))
    }

    /// Ends request `k`, which has no reply to verify.
    fn ended(&mut self, k: u64, not_executed: bool) -> Option<u32> {
        let own = self.own.as_mut()?;
        let Pending { key, sequence, writes } = own.pending.remove(&k)?;
        if !writes {
            return None;
        }
        if not_executed {
            own.table.rejected(key, sequence);
        } else {
            self.found.counts.ambiguous_writes += 1;
            own.table.unknown(key, sequence);
        }
        Some(key)
    }

    /// Marks everything in flight as unknown, because no reply will come.
    pub fn abandon(&mut self) {
        self.partial.clear();
        let Some(own) = &mut self.own else { return };
        own.pending.clear();
        match &mut own.table {
            KeyTable::Written(written) => written.abandon(),
            KeyTable::Counted(counted) => counted.abandon(),
        }
    }

    /// The indices of the owned keys in the whole keyspace.
    pub fn own_keys(&self) -> Option<std::ops::Range<u64>> {
        self.own.as_ref().map(|own| own.first..own.first + own.count)
    }

    /// True if the last read should include key `k`, because something was sent to it.
    pub fn wants_read(&self, k: u64) -> bool {
        let Some(own) = &self.own else { return false };
        let Some(key) = k.checked_sub(own.first).filter(|key| *key < own.count) else { return false };
        match &own.table {
            KeyTable::Written(written) => written.is_touched(key as u32),
            KeyTable::Counted(counted) => counted.is_known(key as u32),
        }
    }

    /// Verifies the result of the last read of key `k`.
    pub fn read_back(&mut self, k: u64, seen: Seen<'_>, moment: Moment<'_>) {
        self.found.counts.checked += 1;
        self.found.counts.read_keys += 1;
        let Some((own, key)) = self.preloading(k) else { return };
        let found = match &mut own.table {
            KeyTable::Written(written) => {
                let stamped = match seen {
                    Seen::Bulk(value) => Some(own.writer.read(k, value)),
                    Seen::Nil => None,
                    _ => Some(Stamped::Broken),
                };
                let expected = written.expected(key);
                (written.read(key, expected, stamped), expected.to_string(), says(stamped))
            }
            KeyTable::Counted(counted) => {
                let range = between(counted.range(key, 0));
                match seen {
                    Seen::Nil => (counted.read(key, None), range, "nothing".to_owned()),
                    Seen::Bulk(text) => match std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
                        Some(value) => (counted.read(key, Some(value)), range, value.to_string()),
                        None => (Judgement::Corrupt, range, "not a number".to_owned()),
                    },
                    other => (Judgement::Corrupt, range, other.name().to_owned()),
                }
            }
        };
        self.judge(found, key, moment);
    }

    /// Counts keys that the last read could not read.
    pub fn unread(&mut self, keys: u64) {
        self.found.counts.unread_keys += keys;
    }

    fn judge(&mut self, (judgement, expected, seen): (Judgement, String, String), key: u32, moment: Moment<'_>) {
        let kind = match judgement {
            Judgement::Fine => return,
            Judgement::Indeterminate => {
                self.found.counts.indeterminate += 1;
                return;
            }
            Judgement::Lost { writes } => {
                self.found.counts.lost_writes += writes;
                FindingKind::LostWrite
            }
            Judgement::LostKey => {
                self.found.counts.lost_keys += 1;
                FindingKind::LostKey
            }
            Judgement::Corrupt => {
                self.found.counts.corrupt += 1;
                FindingKind::Corrupt
            }
            Judgement::TooHigh => {
                self.found.counts.mismatched += 1;
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

    /// Keeps a part of an incomplete reply on connection `index`.
    pub fn hold(&mut self, index: usize, piece: &[u8]) {
        let partial = self.partial.entry(index).or_default();
        let room = self.keep.saturating_sub(partial.bytes.len());
        partial.cut |= piece.len() > room;
        partial.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// The completed reply, and whether all of it was kept. `None` if `piece` is the complete reply.
    pub fn whole(&mut self, index: usize, piece: &[u8]) -> Option<(Vec<u8>, bool)> {
        if self.partial.is_empty() || !self.partial.contains_key(&index) {
            return None;
        }
        self.hold(index, piece);
        self.partial.remove(&index).map(|partial| (partial.bytes, !partial.cut))
    }

    /// Forgets a partial reply after connection `index` was replaced.
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
                None => KeyTable::Written(Written::new(room, may_evict)),
                Some(step) => KeyTable::Counted(Counted::new(room, step, may_evict)),
            },
            pending: HashMap::new(),
        }
    }

    /// The index of the owned key with this number, if it is owned.
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

impl KeyTable {
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
        Some(Stamped::Broken) => "a value that was never written".to_owned(),
    }
}

fn between((least, most): (i64, i64)) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

/// Argument `nth` of an encoded command; 0 is its name.
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

/// The position after the line that begins at `at`.
fn end_of_line(command: &[u8], at: usize) -> Option<usize> {
    Some(at + command.get(at..)?.iter().position(|byte| *byte == b'\n')? + 1)
}

#[cfg(test)]
mod tests;
