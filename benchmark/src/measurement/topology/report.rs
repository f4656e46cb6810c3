//! Converts the merged topology to its form in the status.

use std::cmp::Reverse;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use redisbench_wire::topology::{Change, Outage, SlotRange};

use super::MergedTopology;
use crate::api::status::{TopologyChange, TopologyStatus, Unavailability};
use crate::human;

/// Maximum entries of a list.
const LISTED: usize = 32;

/// Maximum ranges of an entry.
const RANGES: usize = 8;

/// Maximum length of `host:port`.
const ADDRESS: usize = 262;

impl MergedTopology {
    /// The complete report. `start_at` is the start instant in nanoseconds since the Unix epoch.
    pub fn report(&self, start_at: Option<u64>) -> TopologyStatus {
        let at = |nanoseconds: u64| {
            let micros = start_at?.checked_add(nanoseconds)? / 1_000;
            Timestamp::from_microsecond(i64::try_from(micros).ok()?).ok().map(MicroTime)
        };
        let milliseconds = |nanoseconds: u64| {
            let signed = |nanoseconds: u64| i64::try_from(nanoseconds / 1_000_000).unwrap_or(i64::MAX);
            signed(nanoseconds) - signed(self.measured_from)
        };
        let change = |change: &Change| TopologyChange {
            at: at(change.at_nanoseconds),
            milliseconds: milliseconds(change.at_nanoseconds),
            what: change.what,
            node: human::cut(&change.node, ADDRESS).to_owned(),
            from: change.from.as_deref().map(|from| human::cut(from, ADDRESS).to_owned()),
            slots: self.slotted.then(|| count(&change.slots)),
            ranges: texts(&change.slots),
        };
        let unavailability = |(outage, slots): (&Outage, Vec<SlotRange>)| Unavailability {
            start_at: at(outage.from_nanoseconds),
            start_milliseconds: milliseconds(outage.from_nanoseconds),
            length_milliseconds: outage.nanoseconds() / 1_000_000,
            slots: self.slotted.then(|| count(&slots)),
            ranges: if self.slotted { texts(&slots) } else { Vec::new() },
            node: human::cut(&outage.node, ADDRESS).to_owned(),
            reads_only: outage.reads,
            lasting: outage.lasting,
        };
        TopologyStatus {
            primaries: self.primaries,
            replicas: self.replicas,
            changes: self.changes.iter().map(change).collect(),
            unavailability: self.alike().into_iter().map(unavailability).collect(),
            left_out: self.left_out,
        }
    }

    /// Groups outages of the same time and node, with the slots of all of them.
    fn alike(&self) -> Vec<(&Outage, Vec<SlotRange>)> {
        let mut alike: Vec<(&Outage, Vec<SlotRange>)> = Vec::new();
        for outage in &self.outages {
            let same = |other: &Outage| Outage { slots: outage.slots, ..other.clone() } == *outage;
            match alike.iter_mut().rev().find(|(other, _)| same(other)) {
                Some((_, slots)) => slots.push(outage.slots),
                None => alike.push((outage, vec![outage.slots])),
            }
        }
        alike
    }
}

/// Shortens the report for the status: the first changes, and the longest outages.
pub fn shortened(mut whole: TopologyStatus) -> TopologyStatus {
    let left_out = |length: usize| length.saturating_sub(LISTED) as u64;
    whole.left_out += left_out(whole.changes.len()) + left_out(whole.unavailability.len());
    whole.changes.truncate(LISTED);
    if whole.unavailability.len() > LISTED {
        whole.unavailability.sort_by_key(|time| Reverse(time.length_milliseconds));
        whole.unavailability.truncate(LISTED);
        whole.unavailability.sort_by_key(|time| time.start_milliseconds);
    }
    whole
}

fn count(slots: &[SlotRange]) -> u32 {
    let count: u64 = slots.iter().map(|range| range.count()).sum();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn texts(slots: &[SlotRange]) -> Vec<String> {
    let text = |range: &SlotRange| match range {
        SlotRange { first, last } if first == last => first.to_string(),
        SlotRange { first, last } => format!("{first}-{last}"),
    };
    slots.iter().take(RANGES).map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage(first: u16, last: u16, from: u64, until: u64) -> Outage {
        Outage {
            slots: SlotRange { first, last },
            reads: false,
            node: "a:1".into(),
            from_nanoseconds: from * 1_000_000,
            until_nanoseconds: until * 1_000_000,
            lasting: false,
        }
    }

    #[test]
    fn times_are_those_of_the_measurement_and_of_the_day() {
        let topology = MergedTopology {
            slotted: true,
            measured_from: 2_000_000_000,
            outages: vec![outage(0, 9, 1_500, 2_700), outage(20, 20, 1_500, 2_700), outage(30, 39, 1_500, 2_800)],
            ..MergedTopology::default()
        };
        let told = topology.report(Some(1_790_000_000_000_000_000)).unavailability;
        assert_eq!(told.len(), 2);
        let first = &told[0];
        assert_eq!((first.start_milliseconds, first.length_milliseconds, first.slots), (-500, 1_200, Some(11)));
        assert_eq!(first.ranges, ["0-9", "20"]);
        let day = serde_json::to_value(first).unwrap()["startAt"].as_str().unwrap().to_owned();
        assert_eq!(day, "2026-09-21T14:13:21.500000Z");
    }

    #[test]
    fn what_is_no_cluster_has_no_slots() {
        let topology = MergedTopology { outages: vec![outage(0, 16_383, 10, 20)], ..MergedTopology::default() };
        let told = topology.report(None).unavailability;
        assert_eq!((told[0].slots, told[0].ranges.len(), told[0].start_at.is_none()), (None, 0, true));
    }

    #[test]
    fn the_longest_times_are_kept_in_their_order() {
        let outages = (0..40).map(|n| outage(0, 9, 100 * n, 100 * n + 20 + n % 20)).collect();
        let topology = MergedTopology { outages, ..MergedTopology::default() };
        let told = shortened(topology.report(None));
        assert_eq!((told.unavailability.len(), told.left_out), (32, 8));
        assert!(told.unavailability.iter().all(|time| time.length_milliseconds >= 24));
        assert!(told.unavailability.is_sorted_by_key(|time| time.start_milliseconds));
    }
}
