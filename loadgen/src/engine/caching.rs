//! Client-side caches: which reads are answered without the server, and what invalidates them. Holds no values, only which keys are cached.
//!
//! The order of messages on a connection decides. The server tracks a key when it executes the read, so a push that invalidates it comes
//! after the reply on the same connection, and is handled after it.

mod push;
mod table;
mod writes;

use redisbench_wire::plan::{CacheScope, Caching as Plan, CachingMode, Keys, ShardPlan, Verify};

use super::pipeline::{Class, Request};
use crate::record::CacheRecord;
use crate::resp::{ProtocolError, Reply};
use crate::workload::Workload;
use push::{Missing, Partial, Push};
use table::{Entry, Table};
use writes::RecentWrites;

/// Precedes a read whose key is to be tracked, with [`CachingMode::OptIn`].
const CACHING_YES: &[u8] = b"*3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$3\r\nYES\r\n";

/// A connection's part of the caches.
#[derive(Debug, Default)]
struct Tracked {
    /// The number of times that its entries were dropped together.
    epoch: u32,
    /// Its entries.
    entries: u32,
    /// The beginning of a push message.
    partial: Partial,
    /// True if the next read is tracked, once `CLIENT CACHING YES` before it was answered.
    opted_in: Option<bool>,
}

/// The caches of one worker. Absent without caching.
#[derive(Debug)]
pub(super) struct Caching {
    plan: Plan,
    /// Per operation, what distinguishes its entries from those of others; `None` if its replies are not cached.
    reads: Vec<Option<u64>>,
    /// Per operation, whether it may change its keys.
    writes: Vec<bool>,
    /// True if all writes to a key are this worker's, which makes hits on older values known.
    verifies: bool,
    /// The most entries of a cache.
    most: usize,
    /// One for each connection, or one for all.
    tables: Vec<Table>,
    connections: Vec<Tracked>,
    recent: RecentWrites,
    record: CacheRecord,
    /// Room for a key.
    text: Vec<u8>,
    /// Room for the hashes of a request's keys.
    hashes: Vec<u64>,
}

impl Caching {
    pub(super) fn of(plan: &ShardPlan) -> Option<Box<Self>> {
        let caching = plan.workload.options.caching.clone()?;
        let operations = plan.workload.operations.len();
        let mut reads = vec![None; operations];
        for index in &caching.operations {
            if let Some(salt) = reads.get_mut(*index as usize) {
                *salt = Some(mixed(u64::from(*index) + 1));
            }
        }
        let mut writes = vec![false; operations];
        for index in &caching.writes {
            writes.iter_mut().skip(*index as usize).take(1).for_each(|writes| *writes = true);
        }
        let keys = |keys: &Keys| keys.count;
        let spaces = plan.workload.operations.iter().filter_map(|operation| operation.keys.as_ref());
        let largest = spaces.chain([&plan.workload.keys]).map(keys).max().unwrap_or(1);
        let most = largest.saturating_mul(caching.operations.len() as u64).min(caching.entries.into());
        let mut all = Self {
            reads,
            writes,
            verifies: plan.verify == Verify::Values,
            most: most as usize,
            tables: Vec::new(),
            connections: Vec::new(),
            recent: RecentWrites::new(),
            record: CacheRecord::default(),
            text: Vec::new(),
            hashes: Vec::new(),
            plan: caching,
        };
        if all.is_shared() {
            all.tables.push(Table::new(all.most));
        }
        Some(Box::new(all))
    }

    /// Returns whether all connections share one cache.
    pub(super) fn is_shared(&self) -> bool {
        self.plan.scope == CacheScope::Shard
    }

    /// Makes room for this many connections.
    pub(super) fn grow(&mut self, connections: usize) {
        while self.connections.len() < connections {
            self.connections.push(Tracked::default());
            if !self.is_shared() {
                self.tables.push(Table::new(self.most));
            }
        }
    }

    /// Begins to count, with empty caches.
    pub(super) fn begin(&mut self) {
        self.record = CacheRecord::default();
        self.recent = RecentWrites::new();
        for index in 0..self.connections.len() {
            self.flush(index, false);
        }
        self.tables.iter_mut().for_each(Table::clear);
    }

    pub(super) fn record(&self) -> &CacheRecord {
        &self.record
    }

    /// Drops the entries of a connection, which receives no more of their invalidations. `counts` counts it.
    pub(super) fn flush(&mut self, index: usize, counts: bool) {
        let tracked = &mut self.connections[index];
        self.record.counts.flushes += u64::from(counts && tracked.entries > 0);
        tracked.epoch = tracked.epoch.wrapping_add(1);
        tracked.entries = 0;
    }

    /// Like [`Self::flush`], for a connection that is gone.
    pub(super) fn lost(&mut self, index: usize, counts: bool) {
        self.flush(index, counts);
        let tracked = &mut self.connections[index];
        tracked.partial.clear();
        tracked.opted_in = None;
    }

    /// All connections were closed.
    pub(super) fn disconnected(&mut self) {
        (0..self.connections.len()).for_each(|index| self.lost(index, false));
    }

    /// Like [`Self::flush`], of all connections.
    pub(super) fn flush_all(&mut self, counts: bool) {
        (0..self.connections.len()).for_each(|index| self.flush(index, counts));
    }

    fn table(&mut self, index: usize) -> &mut Table {
        let table = if self.is_shared() { 0 } else { index };
        &mut self.tables[table]
    }

    fn salt(&self, operation: u16) -> Option<u64> {
        self.reads.get(usize::from(operation)).copied().flatten()
    }

    /// The hash of the first key of request `k`.
    fn hash_of(&mut self, k: u64, operation: u16, workload: &Workload) -> u64 {
        let mut first = None;
        workload.each_key(k, operation, &mut self.text, |key| first = first.or(Some(hash(key))));
        first.unwrap_or_default()
    }

    /// Returns whether a cache answers a request: that of connection `index`, or the one of all. `counts` counts it.
    pub(super) fn hits(
        &mut self,
        index: usize,
        request: &Request,
        workload: &Workload,
        now: u64,
        counts: bool,
    ) -> bool {
        let Some(salt) = self.salt(request.operation) else { return false };
        let key = self.hash_of(request.k, request.operation, workload);
        let ttl = self.plan.ttl_nanoseconds;
        let table = self.table(index);
        let Some(place) = table.find(key ^ salt) else { return false };
        let entry = table.entry(place);
        let valid = entry.is_of(self.connections[entry.owner as usize].epoch);
        let expired = entry.at.saturating_add(ttl) <= now;
        if !valid || expired {
            self.drop_entry(index, place);
            self.record.counts.expired += u64::from(valid && counts);
            return false;
        }
        self.table(index).touch(place);
        if counts {
            self.record.counts.hits += 1;
            let stale = self.verifies && self.recent.was_acknowledged_after(key, entry.at);
            self.record.counts.stale_hits += u64::from(stale);
        }
        true
    }

    /// Removes the entry of a place of connection `index`'s cache. Returns it if it was valid.
    fn drop_entry(&mut self, index: usize, place: usize) -> Option<Entry> {
        let entry = self.table(index).remove(place);
        self.is_gone(&entry).then_some(entry)
    }

    /// Accounts for a removed entry. Returns whether it was valid.
    fn is_gone(&mut self, entry: &Entry) -> bool {
        let owner = &mut self.connections[entry.owner as usize];
        let valid = entry.is_of(owner.epoch);
        owner.entries -= u32::from(valid);
        valid
    }

    /// The most bytes that precede a request.
    pub(super) const PREFIX_LENGTH: usize = CACHING_YES.len();

    /// Writes the command that precedes a request to the beginning of `room`, if there is one. Returns its length.
    pub(super) fn encode_prefix(&self, request: &Request, room: &mut [u8]) -> usize {
        if !self.is_prefixed(request) {
            return 0;
        }
        room[..CACHING_YES.len()].copy_from_slice(CACHING_YES);
        CACHING_YES.len()
    }

    /// Returns whether `CLIENT CACHING YES` precedes a request of a trial. After ASKING it cannot: each applies to the next command only.
    fn is_prefixed(&self, request: &Request) -> bool {
        let of_trial =
            matches!(request.class, Class::Undecided | Class::Warmup | Class::Measured | Class::OrphanOfTrial);
        self.has_prefixes() && of_trial && !request.hops.is_asking() && self.salt(request.operation).is_some()
    }

    /// Returns whether requests of an aborted trial get several replies.
    pub(super) fn has_prefixes(&self) -> bool {
        self.plan.mode == CachingMode::OptIn
    }

    /// Notes what was sent: `staged` on connection `index`, at `sent`. `measured` if undecided requests are.
    pub(super) fn sent(&mut self, index: usize, staged: &[Request], sent: u64, measured: bool, workload: &Workload) {
        for request in staged {
            let counts = match request.class {
                Class::Measured => true,
                Class::Undecided => measured,
                Class::Warmup | Class::Fill => false,
                _ => continue,
            };
            let operation = usize::from(request.operation);
            if request.class == Class::Fill || self.writes.get(operation).is_some_and(|writes| *writes) {
                let recent = &mut self.recent;
                workload.each_key(request.k, request.operation, &mut self.text, |key| {
                    recent.sent(hash(key), sent, index as u32);
                });
            } else if counts && request.hops.is_first() && self.salt(request.operation).is_some() {
                self.record.counts.misses += 1;
            }
        }
    }

    /// Takes a reply to `CLIENT CACHING YES` before `request`, the oldest one of connection `index`. Returns whether it was one.
    pub(super) fn takes(&mut self, index: usize, request: Option<Request>, reply: Reply) -> bool {
        let Some(request) = request.filter(|request| self.is_prefixed(request)) else { return false };
        let opted_in = &mut self.connections[index].opted_in;
        if opted_in.is_some() {
            return false;
        }
        *opted_in = Some(reply != Reply::Error);
        self.record.counts.caching_calls += u64::from(request.class == Class::Measured);
        true
    }

    /// Notes that the oldest request of connection `index` has its reply. Returns whether the server tracks its key.
    pub(super) fn replied(&mut self, index: usize) -> bool {
        match self.plan.mode {
            CachingMode::OptIn => self.connections[index].opted_in.take() == Some(true),
            CachingMode::Default | CachingMode::Broadcast => true,
        }
    }

    /// Handles a reply without an error to a request that was sent at `sent`. `tracked` as returned by [`Self::replied`].
    pub(super) fn answered(&mut self, index: usize, answered: Answered<'_>, workload: &Workload, counts: bool) {
        let Answered { request, sent, now, reply, tracked } = answered;
        if request.class == Class::Fill || self.writes.get(usize::from(request.operation)).is_some_and(|writes| *writes)
        {
            self.wrote(index, request, sent, reply == Reply::Nil, workload);
        } else if let Some(salt) = self.salt(request.operation).filter(|_| tracked) {
            let key = self.hash_of(request.k, request.operation, workload);
            let prefixes = &self.plan.prefixes;
            let covered = prefixes.is_empty() || prefixes.iter().any(|prefix| self.text.starts_with(prefix.as_bytes()));
            if covered {
                self.keep(index, key ^ salt, now, counts);
            }
        }
    }

    fn keep(&mut self, index: usize, hash: u64, now: u64, counts: bool) {
        let entry = Entry::new(hash, now, index as u32, self.connections[index].epoch);
        self.connections[index].entries += 1;
        let (before, dropped) = self.table(index).insert(entry);
        if let Some(before) = before {
            self.is_gone(&before);
        }
        if let Some(dropped) = dropped {
            let valid = self.is_gone(&dropped);
            self.record.counts.evicted += u64::from(valid && counts);
        }
    }

    /// An acknowledged write. Unless it will be pushed, the connection's own entries of its keys are dropped.
    fn wrote(&mut self, index: usize, request: &Request, sent: u64, nil: bool, workload: &Workload) {
        self.hash_keys(request, workload);
        for at in 0..self.hashes.len() {
            let key = self.hashes[at];
            // A condition was not met, or nothing was there to change.
            if nil {
                self.recent.refused(key, sent);
            } else {
                self.recent.acknowledged(key, sent);
            }
            if !self.plan.no_loop {
                continue;
            }
            for salt in 0..self.reads.len() {
                let Some(salt) = self.reads[salt] else { continue };
                let table = self.table(index);
                if let Some(place) = table.find(key ^ salt)
                    && table.entry(place).owner == index as u32
                {
                    self.drop_entry(index, place);
                }
            }
        }
    }

    /// Notes that the server refused a request that was sent at `sent`.
    pub(super) fn refused(&mut self, request: &Request, sent: u64, workload: &Workload) {
        if self.writes.get(usize::from(request.operation)).is_some_and(|writes| *writes) {
            self.hash_keys(request, workload);
            self.hashes.iter().for_each(|key| self.recent.refused(*key, sent));
        }
    }

    fn hash_keys(&mut self, request: &Request, workload: &Workload) {
        let hashes = &mut self.hashes;
        hashes.clear();
        workload.each_key(request.k, request.operation, &mut self.text, |key| hashes.push(hash(key)));
    }

    /// Takes the push messages at the beginning of `input`, which is between two replies of connection `index`. Returns false if the rest
    /// of a message has not arrived.
    ///
    /// # Errors
    /// Fails if a message is not RESP.
    #[inline]
    pub(super) fn pushes(
        &mut self,
        index: usize,
        input: &mut &[u8],
        now: u64,
        counts: bool,
    ) -> Result<bool, ProtocolError> {
        if !self.connections[index].partial.is_empty() {
            let joined = self.connections[index].partial.join(input);
            let mut rest = &joined[..];
            let whole = self.push(index, &mut rest, now, counts)?;
            // The kept beginning was part of the message, so all of the rest is of `input`.
            *input = &input[input.len() - rest.len().min(input.len())..];
            if !whole {
                return Ok(false);
            }
        }
        while input.first() == Some(&b'>') {
            if !self.push(index, input, now, counts)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes one push message. Returns false if its rest has not arrived.
    fn push(&mut self, index: usize, input: &mut &[u8], now: u64, counts: bool) -> Result<bool, ProtocolError> {
        match push::take(input) {
            Ok(Push::Invalidate(keys)) => keys.for_each(|key| self.invalidate(index, hash(key), now, counts)),
            Ok(Push::InvalidateAll) => self.flush(index, counts),
            Ok(Push::Other) => {}
            Err(Missing::Incomplete) => {
                self.connections[index].partial.keep(input)?;
                return Ok(false);
            }
            Err(Missing::Malformed(error)) => return Err(error),
        }
        Ok(true)
    }

    /// Drops the entries of a key that connection `index` was told of.
    fn invalidate(&mut self, index: usize, key: u64, now: u64, counts: bool) {
        let (mut found, mut used, mut since) = (false, false, u64::MAX);
        for salt in 0..self.reads.len() {
            let Some(salt) = self.reads[salt] else { continue };
            let Some(place) = self.table(index).find(key ^ salt) else { continue };
            if let Some(entry) = self.drop_entry(index, place) {
                found = true;
                used |= entry.is_used();
                since = since.min(entry.at);
            }
        }
        if !counts {
            return;
        }
        let all = &mut self.record.counts;
        all.invalidations += 1;
        all.not_cached += u64::from(!found);
        all.invalidated_unused += u64::from(found && !used);
        if found
            && let Some((sent, by)) = self.recent.first_after(key, since)
            && by != index as u32
        {
            self.record.invalidated(now.saturating_sub(sent));
        }
    }
}

/// A request with its reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered<'a> {
    pub request: &'a Request,
    pub sent: u64,
    pub now: u64,
    pub reply: Reply,
    /// True if the server tracks its key.
    pub tracked: bool,
}

/// A hash of a key's text, eight bytes at a time.
fn hash(key: &[u8]) -> u64 {
    let mut hash = key.len() as u64;
    for chunk in key.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = mixed(hash ^ u64::from_le_bytes(word));
    }
    hash
}

/// The finalizer of `SplitMix64` (Steele, Lea and Flood 2014).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
