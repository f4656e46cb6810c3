//! Runs six hundred worlds on all processors, and checks that a seed always gives the same world. `make simulate` runs more.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use redisbench_simulate::{COLLECTED, PANICKED, Report, UNATTENDED, simulate, simulate_all};

const SEEDS: u64 = 600;
/// Additional seeds that found bugs.
const FOUND: [u64; 1] = [75_089];
/// The minimum number of worlds with each ending. There are far more.
const OF_EACH: usize = 4;

#[test]
fn every_invariant_holds_in_every_world() {
    let endings = Mutex::new(Vec::new());
    // In how many worlds each of these happened.
    let noteworthy = [UNATTENDED, COLLECTED, PANICKED].map(|event| (event, AtomicUsize::new(0)));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    simulate_all((1..=SEEDS).chain(FOUND), threads, |seed, report| {
        if let Some(violation) = report.violation {
            let replayed = simulate(seed, true).unwrap();
            panic!("seed {seed}: {violation}\n{}", replayed.trace.join("\n"));
        }
        for (event, worlds) in &noteworthy {
            worlds.fetch_add(usize::from(report.events.of(event) > 0), Ordering::Relaxed);
        }
        endings.lock().unwrap().push(report.ending);
        true
    })
    .unwrap();
    let endings = endings.into_inner().unwrap();
    assert_eq!(endings.len() as u64, SEEDS + FOUND.len() as u64);
    for phase in ["Succeeded", "Failed", "Aborted", "Deleted"] {
        let count = endings.iter().filter(|ending| ending.starts_with(phase)).count();
        assert!(count >= OF_EACH, "too tame or too wild: {count} of {} end {phase}", endings.len());
    }
    for (event, worlds) in noteworthy {
        let worlds = worlds.into_inner();
        assert!(worlds >= OF_EACH, "in {worlds} of {}: {event}", endings.len());
    }
}

#[test]
fn a_seed_replays_exactly() {
    for seed in 1..=12 {
        let (first, second) = (simulate(seed, true).unwrap(), simulate(seed, true).unwrap());
        let difference = first.trace.iter().zip(&second.trace).find(|(first, second)| first != second);
        assert_eq!(difference, None, "seed {seed}");
        assert_eq!(first, second, "seed {seed}");
        let untold = simulate(seed, false).unwrap();
        assert_eq!(untold, Report { trace: Vec::new(), ..first }, "seed {seed} with and without its trace");
    }
}
