//! Processor time that the load generator did not get.

use std::fs;
use std::path::{Path, PathBuf};

use redisbench_testkit::servers::RedisServer;
use redisbench_wire::snapshot::Generator;

use crate::machine::{Spinner, alone, easy, lasting, pin_workers, processor, ready, saturating, until_silent};

/// The verdict's threshold.
const WAITING: u32 = 200_000;

const SECOND: u64 = 1_000_000_000;

#[tokio::test]
#[ignore = "depends on how busy the machine is: make test-timing"]
async fn a_process_beside_it_shows_as_waiting_for_a_processor() {
    let _machine = alone().await;
    let server = RedisServer::start(&[]);
    let mut bench = ready(saturating(), &server).await;
    let processor = processor();
    pin_workers(&processor);
    let _spinner = Spinner::on(&processor);
    bench.start(1);
    let generator = bench.finished(1).await.generator;
    assert!(generator.longest_waiting_worker_millionths >= WAITING, "{generator:?}");
    assert!(generator.run_queue_nanoseconds <= generator.load_nanoseconds, "{generator:?}");
}

#[tokio::test]
#[ignore = "depends on how busy the machine is: make test-timing"]
async fn a_quiet_run_lacks_no_processor_time() {
    let _machine = alone().await;
    let is_silent = |generator: &Generator| {
        generator.longest_waiting_worker_millionths < WAITING
            && generator.busiest_worker_millionths < 950_000
            && generator.throttled_nanoseconds == 0
    };
    let generator = until_silent(easy(), |snapshot| is_silent(&snapshot.generator)).await.generator;
    assert!(generator.load_nanoseconds >= 500_000_000 && generator.processors > 0, "{generator:?}");
}

#[tokio::test]
async fn a_finished_load_has_its_seconds_since_the_start() {
    let _machine = alone().await;
    let server = RedisServer::start(&[]);
    let mut bench = ready(lasting(easy(), 1_500), &server).await;
    for attempt in 1..=2 {
        bench.start(attempt);
        assert_eq!(bench.live().await.generator.strain, None);
        let snapshot = bench.finished(attempt).await;
        let points: Vec<_> = snapshot.generator.strain.as_ref().unwrap().points().collect();
        assert_eq!((points[0].from, points[0].until), (0, SECOND));
        // The whole load, and the time until the first look after it.
        let load = snapshot.window.drained_nanoseconds - snapshot.window.start_nanoseconds;
        assert!(points.last().unwrap().until >= load, "{points:?} of {load} ns");
        assert!(points.iter().all(|point| point.mean == point.worst), "{points:?}");
        assert!(points.iter().any(|point| point.mean.busiest_worker > 0), "{points:?}");
    }
}

#[tokio::test]
#[ignore = "makes a cgroup, which needs root: make test-selfcheck"]
async fn a_quota_shows_as_throttled_time() {
    let _machine = alone().await;
    let server = RedisServer::start(&[]);
    let mut bench = ready(saturating(), &server).await;
    let group = Quota::of_a_twentieth();
    group.enter();
    bench.start(1);
    let generator = bench.finished(1).await.generator;
    drop(group);
    // The worker needs a whole processor and gets a twentieth.
    assert!(generator.throttled_nanoseconds > generator.load_nanoseconds / 20, "{generator:?}");
    assert!(generator.busiest_worker_millionths < 500_000, "{generator:?}");
}

/// A cgroup with a quota of a twentieth of a processor, removed when dropped.
struct Quota {
    group: PathBuf,
    before: PathBuf,
}

impl Quota {
    fn of_a_twentieth() -> Self {
        let second = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
        let (mount, own) = if second { ("/sys/fs/cgroup", "0::") } else { ("/sys/fs/cgroup/cpu", ":cpu") };
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
        let line = groups.lines().find(|line| line.contains(own)).unwrap();
        let before = Path::new(mount).join(line.rsplit(':').next().unwrap().trim_start_matches('/'));
        let group = Path::new(mount).join(format!("redisbench-test-{}", std::process::id()));
        if second {
            fs::write(Path::new(mount).join("cgroup.subtree_control"), "+cpu").unwrap();
        }
        fs::create_dir(&group).unwrap_or_else(|error| panic!("failed to make {}: {error}", group.display()));
        let (file, quota) = if second { ("cpu.max", "5000 100000") } else { ("cpu.cfs_quota_us", "5000") };
        fs::write(group.join(file), quota).unwrap();
        Self { group, before }
    }

    fn enter(&self) {
        fs::write(self.group.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = fs::write(self.before.join("cgroup.procs"), std::process::id().to_string());
        let _ = fs::remove_dir(&self.group);
    }
}
