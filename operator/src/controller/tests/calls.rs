//! Checks in the sources which of them call the API server, and with which verbs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const CALLERS: [(&str, &[&str]); 6] = [
    // Reads only an object whose name is taken.
    ("controller/apply.rs", &["create", "delete", "get", "patch", "patch_status"]),
    ("controller/apply/events.rs", &["publish"]),
    ("controller/observe.rs", &["get", "get_opt", "list"]),
    // Fills the caches.
    ("controller/watch.rs", &[]),
    // Outside of reconciling: the Lease, and the start of a trial.
    ("leader.rs", &["create", "get_opt", "replace"]),
    ("tasks/journal.rs", &["get", "patch_status"]),
];

fn sources(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

fn verbs(code: &str) -> BTreeSet<&str> {
    let after = ["api.", "api().", "recorder."].into_iter().flat_map(|caller| code.split(caller).skip(1));
    after.filter_map(|call| Some(call.split_once('(')?.0)).collect()
}

#[test]
fn only_observe_reads_and_only_apply_writes() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut callers = BTreeMap::new();
    for path in sources(&source) {
        let name = path.strip_prefix(&source).unwrap().to_str().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
        let calls = ["Api<", "Api::namespaced", "Api::all", "recorder.publish("].iter().any(|word| code.contains(word));
        if calls && !name.contains("test") {
            let verbs = verbs(code).into_iter().map(str::to_owned).collect::<Vec<_>>();
            callers.insert(name.to_owned(), verbs);
        }
    }
    let allowed =
        CALLERS.map(|(name, verbs)| (name.to_owned(), verbs.iter().copied().map(str::to_owned).collect::<Vec<_>>()));
    assert_eq!(callers, BTreeMap::from(allowed));
}
