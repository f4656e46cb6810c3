//! The full result: everything that the status leaves out, as one JSON document, cut into pieces that fit into ConfigMaps.

mod seconds;

use std::borrow::Cow;
use std::io;

use redisbench_wire::histogram::{EncodedHistogram, HistogramError};
use redisbench_wire::snapshot::Snapshot;
use redisbench_wire::{Probe, limits};
use serde::{Deserialize, Serialize};

use crate::api::status::{Synchronization, ThresholdStatus, TopologyStatus, TrialResult, TrialStatus, Verdict};
use crate::measurement::merge::{Measured, Merged};
use crate::measurement::{Outcome, ShardOutcome};

pub use seconds::{NamedPart, Second, seconds};

/// Format of the document. An incompatible change gets a new number.
pub const FORMAT: &str = "redisbench.dev/result/v1";

/// Name of the document among the artifacts.
pub const DOCUMENT: &str = "result.json";

/// Maximum bytes of a piece: a ConfigMap holds 1 MiB, and a request with the piece escapes every quote of its JSON.
pub const PIECE_BYTES: usize = 900 << 10;

/// Maximum number of pieces. A longer document is shortened, with a mark for each omitted part.
pub const PIECES: usize = 64;

/// The full result of a trial, as it is written and read back. Times are in nanoseconds, histograms HDR V2-deflate in base64.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FullResult<'a> {
    /// [`FORMAT`].
    pub format: Cow<'a, str>,
    pub benchmark: Cow<'a, str>,
    /// The run's identity.
    pub run_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<Cow<'a, TrialStatus>>,
    /// Like in the status, but with complete lists.
    pub result: Cow<'a, TrialResult>,
    /// Like in the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Cow<'a, Verdict>>,
    /// Like in the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synchronization: Option<Cow<'a, Synchronization>>,
    /// Like in the status, but with complete lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<Cow<'a, TopologyStatus>>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub thresholds: Cow<'a, [ThresholdStatus]>,
    /// The merged histograms.
    pub histograms: Histograms,
    /// Requests of all shards per second since the start, in order, without idle seconds.
    pub seconds: Vec<Second<'a>>,
    /// Set if the seconds were omitted because the document was too large.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seconds_left_out: bool,
    /// One record per shard.
    pub shards: Vec<ShardRecord<'a>>,
    /// Set if the shards' snapshots were omitted because the document was too large.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shards_left_out: bool,
}

/// All merged histograms of a trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Histograms {
    /// All requests.
    pub total: HistogramSet,
    pub operations: Vec<NamedHistograms>,
    /// Set if the histograms of operations were omitted because the document was too large.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operations_left_out: bool,
    /// Service time per Redis node, by its id.
    pub nodes: Vec<NodeHistogram>,
    /// Set if the histograms of nodes were omitted because the document was too large.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nodes_left_out: bool,
}

/// The histograms of one set of requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistogramSet {
    /// Response time of succeeded requests.
    pub response: EncodedHistogram,
    /// Service time of succeeded requests; only in an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<EncodedHistogram>,
    /// Response time of requests that were answered with an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_replies: Option<EncodedHistogram>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedHistograms {
    pub name: String,
    #[serde(flatten)]
    pub histograms: HistogramSet,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeHistogram {
    pub id: String,
    /// Service time of succeeded requests.
    pub service: EncodedHistogram,
}

/// One shard's final state and data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardRecord<'a> {
    pub index: u32,
    /// The process that sent the snapshot: the pod's UID.
    pub incarnation: Cow<'a, str>,
    /// The machine that it ran on.
    pub host: Cow<'a, str>,
    /// Why it is lost, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Cow<'a, str>>,
    /// Whether the snapshot is not the final one.
    pub partial: bool,
    /// Its last snapshot: the final one, unless `partial`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Cow<'a, Snapshot>>,
    /// Result of the probe with half of the connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
}

/// Prefix of the artifact names of one trial of several.
pub fn trial_prefix(trial: u32) -> String {
    format!("trial-{trial}.")
}

/// Encodes the histograms of `merged`.
///
/// # Errors
/// If one cannot be encoded.
pub fn histograms(merged: &Merged) -> Result<Histograms, HistogramError> {
    let operations = merged
        .operations
        .iter()
        .map(|operation| Ok(NamedHistograms { name: operation.name.clone(), histograms: set(&operation.measured)? }));
    let nodes = merged
        .nodes
        .iter()
        .map(|node| Ok(NodeHistogram { id: node.id.clone(), service: EncodedHistogram::encode(&node.service)? }));
    Ok(Histograms {
        total: set(&merged.total)?,
        operations: operations.collect::<Result<_, HistogramError>>()?,
        operations_left_out: false,
        nodes: nodes.collect::<Result<_, HistogramError>>()?,
        nodes_left_out: false,
    })
}

fn set(measured: &Measured) -> Result<HistogramSet, HistogramError> {
    Ok(HistogramSet {
        response: EncodedHistogram::encode(&measured.response)?,
        service: measured.service.as_ref().map(EncodedHistogram::encode).transpose()?,
        error_replies: measured.error_replies.as_ref().map(EncodedHistogram::encode).transpose()?,
    })
}

/// One record per shard of `outcome`.
pub fn shard_records(outcome: &Outcome) -> Vec<ShardRecord<'_>> {
    let probes = outcome.probes.iter().copied().map(Some).chain(std::iter::repeat(None));
    outcome.shards.iter().zip(probes).map(|(shard, probe)| ShardRecord::of(shard, probe)).collect()
}

impl<'a> ShardRecord<'a> {
    fn of(outcome: &'a ShardOutcome, probe: Option<Probe>) -> Self {
        Self {
            index: outcome.shard,
            incarnation: Cow::Borrowed(&outcome.incarnation),
            host: Cow::Borrowed(&outcome.host),
            lost: outcome.lost.as_deref().map(Cow::Borrowed),
            partial: outcome.partial,
            snapshot: outcome.snapshot.as_ref().map(Cow::Borrowed),
            probe,
        }
    }
}

impl FullResult<'_> {
    /// Cuts the document into pieces, named `result.json`, or `result.json.000` and so on; joined in order, they are the document. If the
    /// document is too long, parts are omitted and marked as such: first the shards' snapshots, then the seconds, then the histograms of
    /// nodes, then those of operations.
    ///
    /// # Errors
    /// If it cannot be written as JSON, or if the remaining document is still too long.
    pub fn pieces(self) -> Result<Vec<(String, String)>, serde_json::Error> {
        self.pieces_of(PIECE_BYTES, PIECES)
    }

    /// Like [`Self::pieces`], for one trial of several, which share the room of one. Each may have at least one piece, without the parts
    /// that can be omitted. The names contain the trial.
    ///
    /// # Errors
    /// As [`Self::pieces`].
    pub fn pieces_of_trial(self, trial: u32, of: u32) -> Result<Vec<(String, String)>, serde_json::Error> {
        let share = (PIECE_BYTES - LONGEST_CHARACTER) * PIECES / (of.max(1) as usize);
        let most = (PIECE_BYTES - LONGEST_CHARACTER) * (PIECES / of.max(1) as usize).max(1);
        let pieces = self.pieces_within(PIECE_BYTES, share.min(most), most)?;
        let prefix = trial_prefix(trial);
        Ok(pieces.into_iter().map(|(name, piece)| (format!("{prefix}{name}"), piece)).collect())
    }

    fn pieces_of(self, piece: usize, most: usize) -> Result<Vec<(String, String)>, serde_json::Error> {
        let bytes = (piece - LONGEST_CHARACTER) * most;
        self.pieces_within(piece, bytes, bytes)
    }

    /// Omits parts while the document is longer than `wanted` bytes. With all parts omitted, it may have up to `most` bytes.
    fn pieces_within(
        mut self,
        piece: usize,
        wanted: usize,
        most: usize,
    ) -> Result<Vec<(String, String)>, serde_json::Error> {
        let shorten: [fn(&mut Self); 4] = [
            |full| {
                full.shards.clear();
                full.shards_left_out = true;
            },
            |full| {
                full.seconds.clear();
                full.seconds_left_out = true;
            },
            |full| {
                full.histograms.nodes.clear();
                full.histograms.nodes_left_out = true;
            },
            |full| {
                full.histograms.operations.clear();
                full.histograms.operations_left_out = true;
            },
        ];
        for shorten in shorten {
            if let Ok(document) = self.document(wanted) {
                return Ok(pieces(DOCUMENT, &document, piece));
            }
            shorten(&mut self);
        }
        Ok(pieces(DOCUMENT, &self.document(most)?, piece))
    }

    /// Writes the document, unless it is longer than `most` bytes. The bound applies while writing: with many shards the document may be
    /// larger than the memory.
    fn document(&self, most: usize) -> Result<String, serde_json::Error> {
        let mut bounded = Bounded { text: Vec::new(), most };
        serde_json::to_writer(&mut bounded, self)?;
        String::from_utf8(bounded.text).map_err(|error| serde_json::Error::io(io::Error::other(error)))
    }
}

/// A piece may end this many bytes early, because it is not cut within a character.
const LONGEST_CHARACTER: usize = 4;

/// A writer that fails beyond `most` bytes.
struct Bounded {
    text: Vec<u8>,
    most: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.text.len() + bytes.len() > self.most {
            return Err(io::Error::other(format!("longer than {} bytes", self.most)));
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Cuts `document` at character boundaries into pieces of at most `most` bytes, which must hold any character. A single piece has the plain
/// name.
pub(crate) fn pieces(name: &str, document: &str, most: usize) -> Vec<(String, String)> {
    let mut rest = document;
    let mut cut = Vec::new();
    while rest.len() > most {
        let (piece, after) = rest.split_at(limits::edge(rest, most));
        cut.push(piece);
        rest = after;
    }
    cut.push(rest);
    let alone = cut.len() == 1;
    let name = |index: usize| if alone { name.to_owned() } else { format!("{name}.{index:03}") };
    cut.into_iter().enumerate().map(|(index, piece)| (name(index), piece.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use redisbench_wire::timeline::{Part, Span};

    #[test]
    fn what_fits_is_one_piece() {
        assert_eq!(pieces(DOCUMENT, "abcd", 4), [("result.json".to_owned(), "abcd".to_owned())]);
        assert_eq!(pieces(DOCUMENT, "", 4), [("result.json".to_owned(), String::new())]);
    }

    #[test]
    fn what_does_not_fit_is_cut_in_order() {
        let expected = [("result.json.000", "abcd"), ("result.json.001", "e")];
        assert_eq!(pieces(DOCUMENT, "abcde", 4), expected.map(|(name, piece)| (name.to_owned(), piece.to_owned())));
    }

    /// Builds a result whose parts take about 100 kB each, in at most `most` pieces of 1 kB.
    fn shortened_to(most: usize) -> (usize, serde_json::Value) {
        let text = |length: usize| -> EncodedHistogram { serde_json::from_value("x".repeat(length).into()).unwrap() };
        let set = |length| HistogramSet { response: text(length), service: None, error_replies: None };
        let outcome = crate::sample::outcome((0..20).map(|shard| crate::sample::snapshot(shard, &[1_000])).collect());
        let mut shards = shard_records(&outcome);
        let why = "w".repeat(5_000);
        let long = "n".repeat(100_000);
        let span = Span { seconds: 1, ..Span::default() };
        let spec = crate::sample::open_loop(1);
        let mut second = seconds(&spec.plan, std::slice::from_ref(&span)).remove(0);
        let part = Part::default();
        second.operations = vec![NamedPart { name: long.as_str().into(), part: Cow::Borrowed(&part) }];
        for shard in &mut shards {
            shard.lost = Some(why.as_str().into());
        }
        let full = FullResult {
            format: FORMAT.into(),
            benchmark: "sample".into(),
            run_id: "run".into(),
            trial: None,
            result: Cow::Owned(TrialResult::default()),
            verdict: None,
            synchronization: None,
            topology: None,
            thresholds: Cow::Borrowed(&[]),
            histograms: Histograms {
                total: set(5_000),
                operations: vec![NamedHistograms { name: "get".into(), histograms: set(100_000) }],
                operations_left_out: false,
                nodes: vec![NodeHistogram { id: "a".into(), service: text(100_000) }],
                nodes_left_out: false,
            },
            seconds: vec![second],
            seconds_left_out: false,
            shards,
            shards_left_out: false,
        };
        let pieces = full.pieces_of(1_000, most).unwrap();
        assert!(pieces.iter().all(|(_, piece)| piece.len() <= 1_000));
        let document: String = pieces.iter().map(|(_, piece)| piece.as_str()).collect();
        (pieces.len(), serde_json::from_str(&document).unwrap())
    }

    #[test]
    fn what_would_not_fit_is_left_out_in_order_and_named() {
        for (most, left_out) in [(1_000, 0), (350, 1), (250, 2), (150, 3), (20, 4)] {
            let (pieces, document) = shortened_to(most);
            assert!(pieces <= most, "{pieces} pieces, not {most}");
            let named = [
                &document["shardsLeftOut"],
                &document["secondsLeftOut"],
                &document["histograms"]["nodesLeftOut"],
                &document["histograms"]["operationsLeftOut"],
            ];
            assert_eq!(named.iter().take_while(|named| **named == true).count(), left_out, "{most}");
            assert_eq!(named.iter().filter(|named| **named == true).count(), left_out, "{most}");
            assert_eq!(document["histograms"]["total"]["response"].as_str().unwrap().len(), 5_000);
        }
    }

    proptest! {
        #[test]
        fn joined_pieces_are_the_document(document in "\\PC{0,200}", most in 4_usize..50) {
            let pieces = pieces(DOCUMENT, &document, most);
            prop_assert!(pieces.iter().all(|(_, piece)| piece.len() <= most));
            prop_assert!(pieces.is_sorted_by_key(|(name, _)| name));
            prop_assert_eq!(pieces.into_iter().map(|(_, piece)| piece).collect::<String>(), document);
        }
    }
}
