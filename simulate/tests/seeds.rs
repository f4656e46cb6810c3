//! Two thousand worlds, in parts that run beside each other; and that a seed is a world. `make simulate` runs more.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;

use redisbench_simulate::{Report, simulate};

const SEEDS: u64 = 2_000;
const PARTS: u64 = 4;

/// Seeds beyond those that found faults.
const FOUND: [u64; 1] = [75_089];

fn part(number: u64) {
    let mut endings = BTreeSet::new();
    for seed in (1..=SEEDS).chain(FOUND).filter(|seed| seed % PARTS == number) {
        let report = simulate(seed, false).unwrap();
        if let Some(violation) = report.violation {
            let replayed = simulate(seed, true).unwrap();
            panic!("seed {seed}: {violation}\n{}", replayed.trace.join("\n"));
        }
        endings.insert(report.ending);
    }
    for phase in ["Succeeded", "Failed", "Aborted", "Deleted"] {
        assert!(endings.iter().any(|ending| ending.starts_with(phase)), "too tame or too wild: {endings:?}");
    }
}

#[test]
fn every_invariant_holds_in_the_first_quarter() {
    part(0);
}

#[test]
fn every_invariant_holds_in_the_second_quarter() {
    part(1);
}

#[test]
fn every_invariant_holds_in_the_third_quarter() {
    part(2);
}

#[test]
fn every_invariant_holds_in_the_last_quarter() {
    part(3);
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
