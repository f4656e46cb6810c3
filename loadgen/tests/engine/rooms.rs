//! What keeps the hot path hot, read from its sources.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(of: &Path) -> Vec<PathBuf> {
    if of.is_file() {
        return vec![of.to_owned()];
    }
    let entries = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| sources(&path)).filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}

#[test]
fn the_hot_path_knows_neither_logging_nor_the_control_side() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let rooms = ["engine", "engine.rs", "record", "record.rs", "resp", "resp.rs", "workload", "workload.rs"];
    let rooms = rooms.iter().chain(&["cluster", "cluster.rs", "schedule.rs"]);
    for path in rooms.flat_map(|room| sources(&source.join(room))) {
        let text = fs::read_to_string(&path).unwrap();
        for word in ["tracing", "crate::control", "crate::target", "Mutex", "RwLock", "println!"] {
            assert!(!text.contains(word), "{} mentions {word}", path.display());
        }
        let is_system_call_layer = path.ends_with("engine/sys.rs");
        assert!(is_system_call_layer || !text.contains("unsafe {"), "{} has unsafe code", path.display());
    }
}
