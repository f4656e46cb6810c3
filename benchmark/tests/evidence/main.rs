//! Judges recordings of real runs. Each directory is a situation: `expected.json` holds the expected verdict, and every other file the
//! verdict's input from one run, on an idle or on a busy machine. `make record-evidence` writes all of them. A recording that is judged
//! wrongly is a bug of the verdict.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use redisbench_benchmark::evidence::Evidence;
use serde::Deserialize;
use serde_json::Value;

/// Fewer would leave situations out.
const SITUATIONS: usize = 53;

/// Fewer of a situation would be chance: three runs on an idle machine and three beside another busy process, less those that could not be
/// made.
const RECORDINGS: usize = 5;

/// More than any recording unpacks to.
const MOST_BYTES: u64 = 64 << 20;

/// The verdict expected of a situation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Expected {
    name: String,
    value: String,
    limited_by: String,
    /// The end of the component; empty if there must be none, and `ID` for a server as a whole.
    component: String,
    /// Required reasons, notes included. No others may appear.
    reasons: Vec<String>,
    /// Optional reasons: the situation causes them now and then.
    besides: Vec<String>,
}

/// A verdict that differs from the expected one.
struct Complaint {
    /// All is right but that no limit is named.
    undecided: bool,
    text: String,
}

impl Expected {
    /// The differences from the expected verdict.
    fn complaint(&self, verdict: &Value) -> Option<Complaint> {
        let text = |field: &str| verdict[field].as_str().unwrap_or_default();
        // Left out where there is none.
        let reasons = verdict["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
        let reasons: Vec<&str> = reasons.iter().map(|one| one["reason"].as_str().unwrap()).collect();
        let named = match self.component.as_str() {
            "" => text("component").is_empty(),
            "ID" => !text("component").is_empty() && !text("component").contains('/') && text("component") != "Path",
            end => text("component").ends_with(end),
        };
        let known = |reason: &&str| self.reasons.iter().chain(&self.besides).any(|one| one == reason);
        let undecided = text("limitedBy") == "Unknown" && text("component").is_empty();
        let right = text("value") == self.value
            && (undecided || text("limitedBy") == self.limited_by && named)
            && reasons.iter().all(known)
            && self.reasons.iter().all(|reason| reasons.contains(&reason.as_str()));
        let missed = undecided && self.limited_by != "Unknown";
        (!right || missed)
            .then(|| Complaint { undecided: right, text: format!("{}: not {self:?}, but {verdict:#}", self.name) })
    }
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn verdict(recording: &Path) -> Result<Value, String> {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(recording).unwrap()).take(MOST_BYTES).read_to_string(&mut text).unwrap();
    let evidence: Evidence = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let verdict = evidence.verdict().map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(verdict).unwrap())
}

#[test]
fn recordings_are_called_what_they_must_be() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/evidence");
    let (mut wrong, mut undecided, mut count) = (Vec::new(), Vec::new(), 0);
    let situations: Vec<_> = sorted(&root).into_iter().filter(|path| path.is_dir()).collect();
    assert!(situations.len() >= SITUATIONS, "{} situations", situations.len());
    for situation in situations {
        let expected: Expected =
            serde_json::from_str(&fs::read_to_string(situation.join("expected.json")).unwrap()).unwrap();
        let recordings: Vec<_> =
            sorted(&situation).into_iter().filter(|path| path.extension().is_some_and(|end| end == "gz")).collect();
        assert!(recordings.len() >= RECORDINGS, "{} has {} recordings", situation.display(), recordings.len());
        count += recordings.len();
        for recording in recordings {
            let complaint = match verdict(&recording) {
                Ok(verdict) => expected.complaint(&verdict),
                Err(text) => Some(Complaint { undecided: false, text }),
            };
            if let Some(Complaint { undecided: only_undecided, text }) = complaint {
                let list = if only_undecided { &mut undecided } else { &mut wrong };
                list.push(format!("{}: {text}", recording.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} recordings:\n{}", wrong.len(), wrong.join("\n"));
    // Caution is no error, but it must be rare: `make verdict` has the same bound.
    assert!(undecided.len() * 50 <= count, "{} of {count} undecided:\n{}", undecided.len(), undecided.join("\n"));
}
