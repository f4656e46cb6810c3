//! The measurement of a trial: what every report and export is a view of, written and read back as one JSON document.

mod seconds;

use std::collections::BTreeSet;
use std::io;

use redisbench_wire::Probe;
use redisbench_wire::histogram::{EncodedHistogram, HistogramError, Kind};
use redisbench_wire::snapshot::{ServerStats, Snapshot, Tally};
use serde::{Deserialize, Serialize};

use crate::api::RedisBenchmarkSpec;
use crate::api::status::{
    Latencies, Requests, Synchronization, ThresholdStatus, TopologyStatus, TrialResult, TrialStatus, Verdict,
};
use crate::measurement::measured::Measured;
use crate::measurement::merge::Merged;
use crate::measurement::{Outcome, ShardEvidence};

pub use seconds::{NamedPart, Second, seconds};

/// Format of the document. An incompatible change gets a new number.
pub const FORMAT: &str = "redisbench.dev/result/v1";

/// Name of the document among the artifacts.
pub const DOCUMENT: &str = "result.json";

/// Maximum bytes of a piece: a ConfigMap holds 1 MiB, and a request with the piece escapes every quote of its JSON.
pub const PIECE_BYTES: usize = 900 << 10;

/// Maximum number of pieces. A longer document is shortened, with a mark for each omitted part.
pub const PIECES: usize = 64;

/// Merged and judged measurement of a trial. Written as the full result, it has complete lists; in a status, [`Self::shorten`] has cut them.
/// Times are in nanoseconds, histograms HDR V2-deflate in base64.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Measurement {
    /// [`FORMAT`].
    pub format: String,
    pub benchmark: String,
    /// The run's identity.
    pub run_id: String,
    pub trial: TrialStatus,
    /// The spec of this trial as it ran, with the defaults: one target, and the values of its sweep, preset or search. Secrets are only
    /// named. None in results of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Box<RedisBenchmarkSpec>>,
    #[serde(default)]
    pub versions: Versions,
    pub result: TrialResult,
    pub verdict: Verdict,
    /// Start skew and clock uncertainty of the shards.
    pub synchronization: Synchronization,
    /// The target's servers, with changes and outages.
    pub topology: TopologyStatus,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<ThresholdStatus>,
    /// The merged histograms; always in the full result, never in a status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histograms: Option<Histograms>,
    /// Requests of all shards per second since the start, in order, without idle seconds.
    pub seconds: Vec<Second>,
    /// Set if the seconds were omitted because the document was too large.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seconds_left_out: bool,
    /// One record per shard.
    pub shards: Vec<ShardRecord>,
    /// Set if the shards' snapshots were omitted because the document was too large.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shards_left_out: bool,
}

/// Versions of the programs behind a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// Of redisbench. None in results of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redisbench: Option<String>,
    /// Of the target's servers, such as `Valkey 9.1.2`, each once. Empty if unknown, such as without `measurement.serverStats`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
}

impl Versions {
    /// Of this program, and of the servers that reported one.
    pub fn of(servers: Option<&ServerStats>) -> Self {
        let servers = servers.into_iter().flat_map(|servers| &servers.nodes);
        let each: BTreeSet<_> = servers.filter_map(|node| node.version.clone()).collect();
        Self { redisbench: Some(env!("CARGO_PKG_VERSION").to_owned()), servers: each.into_iter().collect() }
    }
}

/// All merged histograms of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

impl HistogramSet {
    /// Adds these requests of a trial, with their counts and response time, to those of other trials.
    ///
    /// # Errors
    /// If a histogram violates the contract.
    pub(super) fn add_to(
        &self,
        sum: &mut Measured,
        requests: &Requests,
        response_time: &Latencies,
    ) -> Result<(), HistogramError> {
        self.response.add_to(&mut sum.response, Kind::Request)?;
        if let Some(replies) = &self.error_replies {
            let sum = sum.error_replies.get_or_insert_with(|| Kind::Request.empty());
            replies.add_to(sum, Kind::Request)?;
        }
        let longest = response_time.max_nanoseconds.filter(|_| requests.overflow > 0).unwrap_or(0);
        sum.tally.add(&Tally {
            scheduled: requests.scheduled,
            succeeded: requests.succeeded,
            unanswered: requests.unanswered,
            unsent: requests.unsent,
            in_flight: requests.in_flight,
            overflow: requests.overflow,
            overflow_max_nanoseconds: longest,
            ..Tally::default()
        });
        sum.unknown = sum.unknown.saturating_add(requests.unknown);
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedHistograms {
    pub name: String,
    #[serde(flatten)]
    pub histograms: HistogramSet,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeHistogram {
    pub id: String,
    /// Service time of succeeded requests.
    pub service: EncodedHistogram,
}

/// One shard's final state and data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardRecord {
    pub index: u32,
    /// The process that sent the snapshot: the pod's UID.
    pub incarnation: String,
    /// The machine that it ran on.
    pub host: String,
    /// Why it is lost, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// True if the snapshot is not the final one.
    pub partial: bool,
    /// Its last snapshot: the final one, unless `partial`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
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
pub fn shard_records(outcome: Outcome) -> Vec<ShardRecord> {
    let probes = outcome.probes.into_iter().map(Some).chain(std::iter::repeat(None));
    let record = |(shard, probe): (ShardEvidence, _)| ShardRecord {
        index: shard.shard,
        incarnation: shard.incarnation,
        host: shard.host,
        lost: shard.lost,
        partial: shard.partial,
        snapshot: shard.snapshot,
        probe,
    };
    outcome.shards.into_iter().zip(probes).map(record).collect()
}

impl Measurement {
    /// A measurement with nothing but its `result` and `verdict`.
    pub fn new(trial: TrialStatus, result: TrialResult, verdict: Verdict) -> Self {
        Self {
            format: FORMAT.to_owned(),
            benchmark: String::new(),
            run_id: String::new(),
            trial,
            spec: None,
            versions: Versions::default(),
            result,
            verdict,
            synchronization: Synchronization::default(),
            topology: TopologyStatus::default(),
            thresholds: Vec::new(),
            histograms: None,
            seconds: Vec::new(),
            seconds_left_out: false,
            shards: Vec::new(),
            shards_left_out: false,
        }
    }

    /// Joins and reads the pieces of a full result.
    ///
    /// # Errors
    /// If they are not a measurement in this [`FORMAT`].
    pub fn read<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Result<Self, serde_json::Error> {
        serde_json::from_str(&pieces.into_iter().collect::<String>())
    }

    /// Cuts the document into pieces, named `result.json`, or `result.json.000` and so on; joined in order, they are the document. If the
    /// document is too long, parts are omitted and marked as such: first the shards' snapshots, then the seconds, then the histograms of
    /// nodes, then those of operations.
    ///
    /// The trials of a run share the room of one. Each may have at least one piece, without the parts that can be omitted, and the names
    /// contain the trial.
    ///
    /// # Errors
    /// If it cannot be written as JSON, or if the remaining document is still too long.
    pub fn pieces(&mut self) -> Result<Vec<(String, String)>, serde_json::Error> {
        let TrialStatus { index, of, .. } = self.trial;
        let share = (PIECE_BYTES - LONGEST_CHARACTER) * PIECES / (of.max(1) as usize);
        let most = (PIECE_BYTES - LONGEST_CHARACTER) * (PIECES / of.max(1) as usize).max(1);
        let pieces = self.pieces_within(PIECE_BYTES, share.min(most), most)?;
        let prefix = if of > 1 { trial_prefix(index) } else { String::new() };
        Ok(pieces.into_iter().map(|(name, piece)| (format!("{prefix}{name}"), piece)).collect())
    }

    /// Omits parts while the document is longer than `wanted` bytes. With all parts omitted, it may have up to `most` bytes.
    fn pieces_within(
        &mut self,
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
                full.histograms.iter_mut().for_each(|all| (all.nodes, all.nodes_left_out) = (Vec::new(), true));
            },
            |full| {
                full.histograms
                    .iter_mut()
                    .for_each(|all| (all.operations, all.operations_left_out) = (Vec::new(), true));
            },
        ];
        for shorten in shorten {
            if let Ok(pieces) = pieces(DOCUMENT, &*self, piece, wanted) {
                return Ok(pieces);
            }
            shorten(self);
        }
        pieces(DOCUMENT, &*self, piece, most)
    }
}

/// A piece may end this many bytes early, because it is not cut within a character.
const LONGEST_CHARACTER: usize = 4;

/// Writes `document` as JSON into pieces of at most `piece` bytes, which must hold any character. A single piece has the plain name.
///
/// # Errors
/// If it cannot be written as JSON, or has more than `most` bytes. The bound applies while writing: with many shards the document may be
/// larger than the memory.
pub(crate) fn pieces(
    name: &str,
    document: &impl Serialize,
    piece: usize,
    most: usize,
) -> Result<Vec<(String, String)>, serde_json::Error> {
    let mut pieces = Pieces::new(piece, most);
    serde_json::to_writer(&mut pieces, document)?;
    let cut = pieces.finish().map_err(serde_json::Error::io)?;
    let alone = cut.len() == 1;
    let name = |index: usize| if alone { name.to_owned() } else { format!("{name}.{index:03}") };
    Ok(cut.into_iter().enumerate().map(|(index, piece)| (name(index), piece)).collect())
}

/// Cuts what is written at character boundaries into pieces, so that a long document is never in memory twice.
struct Pieces {
    full: Vec<String>,
    last: Vec<u8>,
    /// Maximum bytes of a piece.
    piece: usize,
    /// Maximum bytes of all pieces.
    most: usize,
    written: usize,
}

impl Pieces {
    fn new(piece: usize, most: usize) -> Self {
        Self { full: Vec::new(), last: Vec::new(), piece, most, written: 0 }
    }

    /// Ends the last piece, which is full, before `next`. If `next` continues a character, the next piece begins with that character.
    fn cut(&mut self, next: u8) -> io::Result<()> {
        let end = if is_continuation(next) {
            self.last.iter().rposition(|byte| !is_continuation(*byte)).unwrap_or_default()
        } else {
            self.last.len()
        };
        if end == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a character that is longer than a piece"));
        }
        // The document is long, so the next piece is not copied while it grows.
        let mut begun = Vec::with_capacity(self.piece);
        begun.extend_from_slice(&self.last[end..]);
        self.last.truncate(end);
        self.full.push(text(std::mem::replace(&mut self.last, begun))?);
        Ok(())
    }

    fn finish(self) -> io::Result<Vec<String>> {
        let mut pieces = self.full;
        pieces.push(text(self.last)?);
        Ok(pieces)
    }
}

impl io::Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.most - self.written {
            return Err(io::Error::other(format!("longer than {} bytes", self.most)));
        }
        self.written += bytes.len();
        let mut rest = bytes;
        while let Some(next) = rest.first() {
            if self.last.len() == self.piece {
                self.cut(*next)?;
            }
            let (fits, after) = rest.split_at(rest.len().min(self.piece - self.last.len()));
            self.last.extend_from_slice(fits);
            rest = after;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns whether `byte` is not the first of its UTF-8 character.
fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// The text of a piece, without spare capacity.
fn text(mut piece: Vec<u8>) -> io::Result<String> {
    piece.shrink_to_fit();
    String::from_utf8(piece).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::api::status::{LimitedBy, VerdictValue};
    use proptest::prelude::*;
    use redisbench_wire::limits;
    use redisbench_wire::timeline::{Span, SpanPart};

    #[test]
    fn what_fits_is_one_piece() {
        let expected = [("result.json".to_owned(), "\"ab\"".to_owned())];
        assert_eq!(pieces(DOCUMENT, &"ab", 4, 4).unwrap(), expected);
    }

    #[test]
    fn what_does_not_fit_is_cut_in_order() {
        let expected = [("result.json.000", "\"abc"), ("result.json.001", "\"")];
        let expected = expected.map(|(name, piece)| (name.to_owned(), piece.to_owned()));
        assert_eq!(pieces(DOCUMENT, &"abc", 4, 5).unwrap(), expected);
        assert_eq!(pieces(DOCUMENT, &"abc", 4, 4).unwrap_err().to_string(), "longer than 4 bytes");
    }

    #[test]
    fn what_is_no_text_is_refused() {
        Pieces::new(4, 100).write_all(&[0x80; 5]).unwrap_err();
        let mut pieces = Pieces::new(4, 100);
        pieces.write_all(&[0x80]).unwrap();
        pieces.finish().unwrap_err();
    }

    /// The pieces of `document`, cut from the whole of it.
    fn cut(document: &str, most: usize) -> Vec<String> {
        let (mut rest, mut cut) = (document, Vec::new());
        while rest.len() > most {
            let (piece, after) = rest.split_at(limits::edge(rest, most));
            cut.push(piece.to_owned());
            rest = after;
        }
        cut.push(rest.to_owned());
        cut
    }

    /// Builds a result whose parts take about 100 kB each, in at most `most` pieces of 1 kB.
    fn shortened_to(most: usize) -> (usize, serde_json::Value) {
        let text = |length: usize| -> EncodedHistogram { serde_json::from_value("x".repeat(length).into()).unwrap() };
        let set = |length| HistogramSet { response: text(length), service: None, error_replies: None };
        let outcome = crate::sample::outcome((0..20).map(|shard| crate::sample::snapshot(shard, &[1_000])).collect());
        let mut shards = shard_records(outcome);
        let why = "w".repeat(5_000);
        let long = "n".repeat(100_000);
        let span = Span { seconds: 1, ..Span::default() };
        let spec = crate::sample::open_loop(1);
        let mut second = seconds(&spec.plan, std::slice::from_ref(&span)).remove(0);
        second.operations = vec![NamedPart { name: long, part: SpanPart::default() }];
        for shard in &mut shards {
            shard.lost = Some(why.clone());
        }
        let trial = crate::report::trial(0, 1, 1, None);
        let verdict = Verdict {
            value: VerdictValue::Valid,
            reasons: Vec::new(),
            limited_by: LimitedBy::Unknown,
            component: None,
        };
        let mut full = Measurement {
            histograms: Some(Histograms {
                total: set(5_000),
                operations: vec![NamedHistograms { name: "get".into(), histograms: set(100_000) }],
                operations_left_out: false,
                nodes: vec![NodeHistogram { id: "a".into(), service: text(100_000) }],
                nodes_left_out: false,
            }),
            seconds: vec![second],
            shards,
            ..Measurement::new(trial, TrialResult::default(), verdict)
        };
        let bytes = (1_000 - LONGEST_CHARACTER) * most;
        let pieces = full.pieces_within(1_000, bytes, bytes).unwrap();
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
        fn pieces_are_those_of_the_whole_document(
            document in "\\PC{0,200}",
            most in 4_usize..50,
            write in 1_usize..80,
        ) {
            let mut pieces = Pieces::new(most, document.len());
            for bytes in document.as_bytes().chunks(write) {
                pieces.write_all(bytes).unwrap();
            }
            let pieces = pieces.finish().unwrap();
            prop_assert!(pieces.iter().all(|piece| piece.len() <= most));
            prop_assert_eq!(&pieces, &cut(&document, most));
            prop_assert_eq!(pieces.concat(), document);
        }
    }
}
