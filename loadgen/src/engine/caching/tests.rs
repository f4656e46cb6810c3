use redisbench_wire::plan::{Operation, Preload, TrialPlan};

use super::super::pipeline::Hops;
use super::*;

const GET: u16 = 0;
const SET: u16 = 1;

/// Nanoseconds between two events, of which a histogram holds multiples exactly.
const STEP: u64 = 1 << 16;

/// Three connections that read and write three keys.
struct World {
    caching: Box<Caching>,
    workload: Workload,
    now: u64,
}

fn plan(change: impl FnOnce(&mut Plan)) -> TrialPlan {
    let mut plan = TrialPlan { preload: Preload::None, ..TrialPlan::basic("redis:6379") };
    plan.workload_mut().operations =
        vec![Operation::of("get", 1, "GET __key__"), Operation::of("set", 1, "SET __key__ __data__")];
    plan.workload_mut().keys.pattern = redisbench_wire::plan::KeyPattern::Sequential;
    plan.workload_mut().keys.count = 3;
    let mut caching = Plan {
        mode: CachingMode::Default,
        scope: CacheScope::Connection,
        entries: 10,
        ttl_nanoseconds: u64::MAX,
        prefixes: Vec::new(),
        no_loop: true,
        operations: vec![0],
        writes: vec![1],
    };
    change(&mut caching);
    plan.workload_mut().options.caching = Some(caching);
    plan
}

impl World {
    fn new(change: impl FnOnce(&mut Plan)) -> Self {
        Self::of(plan(change))
    }

    fn of(plan: TrialPlan) -> Self {
        let workload = Workload::of_trial(&plan).unwrap();
        let mut caching = Caching::of(&plan.into()).unwrap();
        caching.grow(3);
        Self { caching, workload, now: 0 }
    }

    fn request(k: u64, operation: u16) -> Request {
        Request { k, due: 0, operation, class: Class::Measured, hops: Hops::default() }
    }

    /// Reads key `k` on a connection. Returns whether a cache answered.
    fn read(&mut self, index: usize, k: u64) -> bool {
        self.now += STEP;
        let request = Self::request(k, GET);
        if self.caching.hits(index, &request, &self.workload, self.now, true) {
            return true;
        }
        self.caching.sent(index, &[request], self.now, true, &self.workload);
        if self.caching.has_prefixes() {
            assert!(self.caching.takes(index, Some(request), Reply::Value));
        }
        assert!(!self.caching.takes(index, Some(request), Reply::Value), "this is the reply to the read");
        let tracked = self.caching.replied(index);
        let answered =
            Answered { request: &request, sent: self.now - STEP / 2, now: self.now, reply: Reply::Value, tracked };
        self.caching.answered(index, answered, &self.workload, true);
        false
    }

    /// Writes key `k` on a connection, acknowledged at once.
    fn write(&mut self, index: usize, k: u64) {
        self.now += STEP;
        let request = Self::request(k, SET);
        self.caching.sent(index, &[request], self.now, true, &self.workload);
        let answered =
            Answered { request: &request, sent: self.now, now: self.now, reply: Reply::Value, tracked: false };
        self.caching.answered(index, answered, &self.workload, true);
    }

    /// The server tells a connection about key `k`, in pieces of `cut` bytes.
    fn push(&mut self, index: usize, k: u64, cut: usize) {
        self.now += STEP;
        let mut text = Vec::new();
        self.workload.each_key(k, GET, &mut text, |_| {});
        let length = text.len().to_string();
        let push = [&b">2\r\n$10\r\ninvalidate\r\n*1\r\n$"[..], length.as_bytes(), b"\r\n", &text, b"\r\n"];
        self.receive(index, &push.concat(), cut);
    }

    fn receive(&mut self, index: usize, bytes: &[u8], cut: usize) {
        let mut whole = true;
        for mut piece in bytes.chunks(cut) {
            whole = self.caching.pushes(index, &mut piece, self.now, true).unwrap();
            assert!(piece.is_empty());
        }
        assert!(whole);
    }

    fn counts(&self) -> redisbench_wire::snapshot::CacheCounts {
        self.caching.record().counts
    }
}

#[test]
fn a_read_is_cached_until_a_push_names_its_key() {
    for cut in [1, 7, 1_000] {
        let mut world = World::new(|_| {});
        assert!(!world.read(0, 0) && world.read(0, 0) && !world.read(0, 1));
        assert!(!world.read(1, 0), "each connection has a cache of its own");
        world.push(0, 0, cut);
        assert!(!world.read(0, 0) && world.read(0, 1) && world.read(1, 0));
        world.push(0, 2, cut);
        let counts = world.counts();
        assert_eq!((counts.hits, counts.misses), (3, 4));
        assert_eq!((counts.invalidations, counts.not_cached, counts.invalidated_unused), (2, 1, 0));
    }
}

#[test]
fn an_entry_that_no_read_used_was_cached_in_vain() {
    let mut world = World::new(|_| {});
    world.read(0, 0);
    world.push(0, 0, 9);
    assert_eq!(world.counts().invalidated_unused, 1);
}

#[test]
fn connections_of_a_shard_share_a_cache() {
    let mut world = World::new(|caching| caching.scope = CacheScope::Shard);
    assert!(!world.read(0, 0) && world.read(1, 0) && world.read(2, 0));
    // The connection that read it is told, and it alone keeps the entry alive.
    world.caching.lost(1, true);
    assert!(world.read(1, 0));
    world.caching.lost(0, true);
    assert!(!world.read(1, 0));
    assert_eq!(world.counts().flushes, 1, "connection 1 had no entries");
}

#[test]
fn a_flush_drops_the_entries_of_its_connection() {
    let mut world = World::new(|_| {});
    world.read(0, 0);
    world.read(1, 0);
    world.receive(0, b">2\r\n$10\r\ninvalidate\r\n_\r\n", 3);
    assert!(!world.read(0, 0) && world.read(1, 0));
    world.caching.flush_all(true);
    assert!(!world.read(0, 0) && !world.read(1, 0));
    assert_eq!((world.counts().flushes, world.counts().invalidations), (3, 0));
}

#[test]
fn own_writes_drop_an_entry_without_a_push_only_with_no_loop() {
    for no_loop in [true, false] {
        let mut world = World::new(|caching| caching.no_loop = no_loop);
        world.read(0, 0);
        world.read(1, 0);
        world.write(0, 0);
        assert_eq!(world.read(0, 0), !no_loop);
        assert!(world.read(1, 0), "the other connection waits for its push");
    }
}

#[test]
fn opted_in_reads_are_cached_and_those_after_asking_are_not() {
    let mut world = World::new(|caching| caching.mode = CachingMode::OptIn);
    assert!(!world.read(0, 0) && world.read(0, 0));
    assert_eq!(world.counts().caching_calls, 1);
    let mut room = [0; 64];
    let request = World::request(0, GET);
    assert_eq!(world.caching.encode_prefix(&request, &mut room), CACHING_YES.len());
    assert_eq!(world.caching.encode_prefix(&World::request(0, SET), &mut room), 0);
    let mut asking = request;
    asking.hops.ask(true);
    assert_eq!(world.caching.encode_prefix(&asking, &mut room), 0);
    assert!(!world.caching.takes(0, Some(asking), Reply::Value));
    // A refused CACHING leaves its read untracked.
    assert!(world.caching.takes(1, Some(request), Reply::Error));
    assert!(!world.caching.replied(1));
}

#[test]
fn broadcast_caches_only_keys_of_its_prefixes() {
    for (prefix, cached) in [("rb:", true), ("other:", false)] {
        let mut world = World::new(|caching| {
            (caching.mode, caching.prefixes) = (CachingMode::Broadcast, vec![prefix.into()]);
        });
        world.read(0, 0);
        assert_eq!(world.read(0, 0), cached, "{prefix}");
    }
}

#[test]
fn entries_end_by_age_and_by_room() {
    let mut world = World::new(|caching| (caching.entries, caching.ttl_nanoseconds) = (2, 4 * STEP));
    world.read(0, 0);
    world.read(0, 1);
    assert!(!world.read(0, 2) && world.counts().evicted == 1);
    assert!(world.read(0, 2), "one step old");
    world.now += 4 * STEP;
    assert!(!world.read(0, 2) && world.counts().expired == 1);
}

#[test]
fn an_invalidation_takes_from_the_first_write_of_another_connection_to_the_push() {
    let mut world = World::new(|_| {});
    world.read(0, 0);
    world.write(1, 0);
    let first = world.now;
    world.write(1, 0);
    world.push(0, 0, 99);
    // A histogram rounds up within its bucket.
    let steps = |world: &World| world.caching.record().slowest().map(|nanoseconds| nanoseconds / STEP);
    assert_eq!(steps(&world), Some((world.now - first) / STEP));
    // The reader's own write, and a write of another shard.
    let mut world = World::new(|caching| caching.no_loop = false);
    world.read(0, 0);
    world.write(0, 0);
    world.push(0, 0, 99);
    world.read(0, 1);
    world.push(0, 1, 99);
    assert_eq!((world.counts().invalidations, steps(&world)), (2, None));
}

#[test]
fn a_hit_after_an_acknowledged_write_is_stale_where_values_are_verified() {
    for (verify, stale) in [(Verify::Values, 1), (Verify::None, 0)] {
        let mut plan = plan(|_| {});
        plan.verify = verify;
        let mut world = World::of(plan);
        world.read(0, 0);
        assert!(world.read(0, 0) && world.counts().stale_hits == 0);
        world.write(1, 0);
        assert!(world.read(0, 0));
        assert_eq!(world.counts().stale_hits, stale);
        world.push(0, 0, 99);
        assert!(!world.read(0, 0) && world.read(0, 0));
        assert_eq!(world.counts().stale_hits, stale);
    }
}
