//! Checks the sources of the hot path for forbidden dependencies.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the hot path: each is a file, a directory, or both.
const ROOMS: [&str; 8] = ["engine", "record", "resp", "workload", "schedule", "sys", "cluster", "verify"];

/// Forbidden everywhere in them: logging, the cold side, locks, and shared cells.
const NOWHERE: [&str; 19] = [
    "tracing::",
    "crate::control",
    "crate::target",
    "println!",
    "Mutex",
    "RwLock",
    "Condvar",
    "Barrier",
    "Semaphore",
    "Notify",
    "OnceLock",
    "OnceCell",
    "LazyLock",
    "ArcSwap",
    "parking_lot",
    "crossbeam",
    "static mut",
    "thread_local!",
    "sync::Once",
];

/// Where workers and the cold side share state: values written when a connection or phase changes, and channels that a worker checks
/// between two polls. No request touches any of it.
const MEETING_PLACES: [&str; 10] = [
    "engine/api.rs",
    "engine/common.rs",
    "engine/connections.rs",
    "engine/assembly.rs",
    "engine/mailbox.rs",
    "engine/outbox.rs",
    "engine/running.rs",
    "engine/together.rs",
    "engine/worker.rs",
    "engine/worker/commands.rs",
];

fn sources(of: &Path) -> Vec<PathBuf> {
    if of.is_file() {
        return vec![of.to_owned()];
    }
    let entries = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| sources(&path)).filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}

/// All sources of the hot path by path below `src`, without tests and fixtures.
fn hot() -> Vec<(String, String)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for room in ROOMS {
        let places = [source.join(room), source.join(room).with_extension("rs")];
        let there: Vec<_> = places.iter().filter(|place| place.exists()).collect();
        assert!(!there.is_empty(), "there is no room {room}: name the rooms that there are");
        for path in there.into_iter().flat_map(|place| sources(place)) {
            let name = path.strip_prefix(&source).unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
            let is_test = name.ends_with("tests.rs") || name.contains("/tests/") || name.ends_with("differential.rs");
            if !is_test {
                found.push((name, text));
            }
        }
    }
    found
}

#[test]
fn the_hot_path_knows_neither_logging_nor_the_control_side_nor_locks() {
    let sources = hot();
    assert!(sources.len() > 40, "only {} sources", sources.len());
    for (name, text) in &sources {
        for word in NOWHERE {
            assert!(!text.contains(word), "{name} mentions {word}");
        }
        assert!(name == "sys.rs" || !text.contains("unsafe {"), "{name} has unsafe code");
    }
    for room in ROOMS {
        assert!(sources.iter().any(|(name, _)| name.starts_with(room)), "nothing of {room} was read");
    }
}

#[test]
fn atomics_and_channels_stay_where_workers_meet_the_cold_side() {
    for (name, text) in hot() {
        let meets =
            ["Atomic", "atomic::", "sync::mpsc", "sync::watch", "oneshot"].iter().any(|word| text.contains(word));
        assert!(!meets || MEETING_PLACES.contains(&name.as_str()), "{name} has an atomic or a channel");
    }
}
