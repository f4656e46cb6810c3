//! Hostile input for tests. A crate with decoders lists its [`Target`]s: plain functions of bytes that must neither
//! panic nor exceed their memory limit. [`drive`] feeds them with mutated valid documents:
//!
//! - in `cargo test`, every input of the crate's `corpus/` folder, then a fixed number of cases from a fixed seed;
//! - with `FUZZ_SECONDS` set (`make fuzz`), for that time, from `FUZZ_SEED` or the time of day.
//!
//! An input that fails is printed as hex and saved in `corpus/`, so that every later test run replays it.

mod memory;
mod mutate;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

pub use memory::{Meter, peak};
pub use mutate::{Random, mutate, mutate_somewhere};

/// A decoder under test.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Also the name of its corpus folder.
    pub name: &'static str,
    /// Decodes, and uses the result like the product does. Panics on a violated invariant.
    pub run: fn(&[u8]),
    /// Valid input.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Texts with a meaning for the decoder.
    pub words: fn() -> Vec<String>,
    /// The memory limit: a number of bytes, plus a number per byte of input.
    pub memory: (usize, usize),
    /// Number of cases in `cargo test`.
    pub cases: u64,
}

/// Drives every target of the crate whose manifest is in `crate_folder`.
pub fn drive(crate_folder: &str, targets: &[Target]) {
    let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|text| text.parse::<u64>().ok());
    let seed = std::env::var("FUZZ_SEED").ok().and_then(|text| text.parse::<u64>().ok());
    let share = seconds.map(|seconds| Duration::from_secs(seconds) / u32::try_from(targets.len()).unwrap_or(1).max(1));
    for target in targets {
        let seed = seed.unwrap_or_else(|| if seconds.is_some() { time_of_day() } else { 1 });
        let folder = Path::new(crate_folder).join("corpus").join(target.name);
        let (began, slowest) = (Instant::now(), Duration::ZERO);
        let driven = Driver { target, folder, began, share, cases: 0, slowest, most_memory: 0 }.run(seed);
        let rate = driven.cases as f64 / driven.began.elapsed().as_secs_f64();
        println!(
            "fuzz {}: {} cases from seed {seed}, {rate:.0} per second, slowest {:.0} ms, peak memory {} KiB",
            target.name,
            driven.cases,
            driven.slowest.as_secs_f64() * 1e3,
            driven.most_memory / 1024
        );
    }
}

fn time_of_day() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

struct Driver<'a> {
    target: &'a Target,
    folder: PathBuf,
    began: Instant,
    share: Option<Duration>,
    cases: u64,
    slowest: Duration,
    most_memory: usize,
}

impl Driver<'_> {
    fn run(mut self, seed: u64) -> Self {
        for file in self.corpus() {
            match std::fs::read(&file) {
                Ok(input) => self.case(&input, false),
                Err(error) => println!("failed to read {}: {error}", file.display()),
            }
        }
        let (seeds, words) = ((self.target.seeds)(), (self.target.words)());
        // Targets assert that seeds are accepted: a refused seed would leave the code after the decoder untested.
        for seed in &seeds {
            self.case(seed, true);
        }
        let mut random = Random::new(seed);
        while !self.is_over() {
            let input = mutate(&seeds[random.below(seeds.len())], &words, &mut random);
            self.case(&input, true);
        }
        self
    }

    fn is_over(&self) -> bool {
        match self.share {
            Some(share) => self.began.elapsed() >= share,
            None => self.cases >= self.target.cases,
        }
    }

    fn corpus(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.sort();
        files
    }

    fn case(&mut self, input: &[u8], fresh: bool) {
        let began = Instant::now();
        let (result, held) = peak(|| catch_unwind(AssertUnwindSafe(|| (self.target.run)(input))));
        self.cases += 1;
        self.slowest = self.slowest.max(began.elapsed());
        self.most_memory = self.most_memory.max(held);
        let (fixed, per_byte) = self.target.memory;
        let allowed = fixed + per_byte * input.len();
        let failed = result.is_err() || held > allowed;
        if failed && fresh {
            self.save(input);
        }
        if let Err(panic) = result {
            resume_unwind(panic);
        }
        let (name, length) = (self.target.name, input.len());
        assert!(!failed, "{name} allocated {held} bytes for {length} bytes of input, more than {allowed}");
    }

    fn save(&self, input: &[u8]) {
        let shown: String = input.iter().take(2048).map(|byte| format!("{byte:02x}")).collect();
        println!("{} fails with {} bytes: {shown}", self.target.name, input.len());
        let hash = input.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let file = self.folder.join(format!("{hash:016x}"));
        match std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::write(&file, input)) {
            Ok(()) => println!("saved as {}", file.display()),
            Err(error) => println!("failed to write {}: {error}", file.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static METER: Meter = Meter;

    #[test]
    fn a_seed_makes_the_same_input_again() {
        let seed = br#"{"a":[1,{"b":"c"}],"d":null}"#;
        let make = |from| {
            let mut random = Random::new(from);
            (0..50).map(|_| mutate(seed, &["word".to_owned()], &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(make(7), make(7));
        assert_ne!(make(7), make(8));
    }

    #[test]
    fn the_most_that_is_held_at_one_time_is_counted() {
        let ((), held) = peak(|| {
            drop(vec![0_u8; 100_000]);
            drop(vec![0_u8; 300_000]);
        });
        assert!((300_000..310_000).contains(&held), "{held}");
    }
}
