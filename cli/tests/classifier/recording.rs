//! Recordings of verdicts' inputs, compressed, with the expected verdict: the directories of `benchmark/tests/evidence`.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::situation::{Expected, Situation};

/// Only the first turns are kept. All of them would be large, and similar.
const KEPT: u32 = 3;

/// All recordings on a machine in one state.
pub struct Recordings {
    root: PathBuf,
    machine: String,
}

/// A recording to be written.
pub struct Recording {
    folder: PathBuf,
    name: String,
    expected: Expected,
}

impl Recordings {
    /// `machine` is the state of the machine, such as `busy`.
    pub fn of(machine: String) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benchmark/tests/evidence");
        Self { root, machine }
    }

    /// The recording of a situation's `turn`, from 1. None if it is not kept.
    pub fn file(&self, situation: &Situation, turn: u32) -> Option<Recording> {
        (turn <= KEPT).then(|| Recording {
            folder: self.root.join(situation.key),
            name: format!("{}-{turn}.json.gz", self.machine),
            expected: situation.expected,
        })
    }
}

impl Recording {
    /// Stores the verdict's input, with the expected verdict beside it.
    pub fn keep(&self, evidence: &Path) {
        fs::create_dir_all(&self.folder).unwrap();
        let mut file = GzEncoder::new(File::create(self.folder.join(&self.name)).unwrap(), Compression::best());
        file.write_all(&fs::read(evidence).unwrap()).unwrap();
        file.finish().unwrap();
        let Expected { name, value, limited_by, component, reasons, besides } = self.expected;
        let text = json!({
            "name": name,
            "value": value,
            "limitedBy": limited_by,
            "component": component,
            "reasons": reasons,
            "besides": besides,
        });
        fs::write(self.folder.join("expected.json"), format!("{text:#}\n")).unwrap();
    }
}
