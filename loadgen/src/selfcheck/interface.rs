//! Bytes on the wire, in short intervals.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;

use hdrhistogram::Histogram;
use redisbench_wire::snapshot::Interface;

/// The most interfaces to watch: a machine with containers may have hundreds.
const INTERFACES: usize = 64;

/// The highest rate that the histogram distinguishes: 8 Tbit/s.
const HIGHEST_RATE: u64 = 1 << 40;

/// A link counts if it carries more than the loopback interface's bytes divided by this. Less is background traffic.
const LINKED: u64 = 10;

/// The quantile for the sustained rate: four of five intervals reach or exceed it.
const SUSTAINED: f64 = 0.2;

/// Byte counts of all interfaces over a load.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    counts: Vec<LinkCounts>,
    /// The last text from the kernel. Reused, because it is read ten times a second.
    text: String,
}

#[derive(Debug)]
struct LinkCounts {
    /// The last readings.
    received: u64,
    sent: u64,
    seen: Interface,
    /// Rates of all intervals, with two significant digits.
    received_rates: Option<Histogram<u32>>,
    sent_rates: Option<Histogram<u32>>,
}

impl LinkCounts {
    fn new(name: &str, received: u64, sent: u64) -> Self {
        // Cannot fail, because the bounds are valid constants.
        let rates = || Histogram::new_with_bounds(1, HIGHEST_RATE, 2).ok();
        let seen = Interface { name: name.to_owned(), ..Interface::default() };
        Self { received, sent, seen, received_rates: rates(), sent_rates: rates() }
    }
}

impl Interfaces {
    /// Reads the counts at the start of a load.
    pub(super) fn begin() -> Self {
        let mut text = String::new();
        read(&mut text);
        let counts = parse(&text).take(INTERFACES).map(|(name, received, sent)| LinkCounts::new(name, received, sent));
        Self { counts: counts.collect(), text }
    }

    /// Adds an interval of this length. `loaded` is true if all of it was under load.
    pub(super) fn look(&mut self, nanoseconds: u64, loaded: bool) {
        let mut text = std::mem::take(&mut self.text);
        read(&mut text);
        self.add(&text, nanoseconds, loaded);
        self.text = text;
    }

    fn add(&mut self, text: &str, nanoseconds: u64, loaded: bool) {
        for (name, received, sent) in parse(text) {
            let Some(counts) = self.counts.iter_mut().find(|counts| counts.seen.name == name) else { continue };
            let more_received = received.saturating_sub(counts.received);
            let more_sent = sent.saturating_sub(counts.sent);
            (counts.received, counts.sent) = (received, sent);
            let seen = &mut counts.seen;
            seen.nanoseconds += nanoseconds;
            seen.received_bytes += more_received;
            seen.sent_bytes += more_sent;
            let rate = |bytes: u64| {
                let per_second = u128::from(bytes) * 1_000_000_000 / u128::from(nanoseconds.max(1));
                u64::try_from(per_second).unwrap_or(u64::MAX)
            };
            if loaded {
                for (rates, bytes) in [(&mut counts.received_rates, more_received), (&mut counts.sent_rates, more_sent)]
                {
                    if let Some(rates) = rates {
                        rates.saturating_record(rate(bytes));
                    }
                }
            }
            seen.busiest_received_bytes_per_second = seen.busiest_received_bytes_per_second.max(rate(more_received));
            seen.busiest_sent_bytes_per_second = seen.busiest_sent_bytes_per_second.max(rate(more_sent));
        }
    }

    /// The interface that carried most bytes: the one towards the target, unless other traffic exceeds the load. The loopback interface
    /// counts only if no other carried a tenth of it, because with a sidecar every byte passes there once more than over the link.
    pub(super) fn busiest(&self) -> Option<Interface> {
        let carried = |counts: &&LinkCounts| counts.seen.received_bytes.saturating_add(counts.seen.sent_bytes);
        let (loopback, links): (Vec<_>, Vec<_>) =
            self.counts.iter().partition(|counts| counts.seen.name == Interface::LOOPBACK);
        let loopback = loopback.into_iter().max_by_key(carried);
        let link = links.into_iter().max_by_key(carried);
        let busiest = match (loopback, link) {
            (Some(loopback), Some(link)) if carried(&link) < carried(&loopback).div_ceil(LINKED) => loopback,
            (loopback, link) => link.or(loopback)?,
        };
        let sustained =
            |rates: &Option<Histogram<u32>>| rates.as_ref().map_or(0, |rates| rates.value_at_quantile(SUSTAINED));
        Some(Interface {
            network: std::fs::metadata("/proc/self/ns/net").map_or(0, |network| network.ino()),
            sustained_received_bytes_per_second: sustained(&busiest.received_rates),
            sustained_sent_bytes_per_second: sustained(&busiest.sent_rates),
            ..busiest.seen.clone()
        })
    }
}

/// Replaces `text` by the kernel's counts. Without them there is no interface.
fn read(text: &mut String) {
    text.clear();
    if File::open("/proc/net/dev").and_then(|mut file| file.read_to_string(text)).is_err() {
        text.clear();
    }
}

/// Name, bytes received and bytes sent of every interface: the first and the ninth number after the name.
fn parse(text: &str) -> impl Iterator<Item = (&str, u64, u64)> {
    text.lines().filter_map(|line| {
        let (name, numbers) = line.split_once(':')?;
        let mut numbers = numbers.split_whitespace();
        let received = numbers.next()?.parse().ok()?;
        let sent = numbers.nth(7)?.parse().ok()?;
        Some((name.trim(), received, sent))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lo: u64, received: u64, sent: u64) -> String {
        format!(
            "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo \
             frame compressed multicast|bytes\n    lo: {lo} 1 0 0 0 0 0 0 {lo} 1 0 0 0 0 0 0\n  eth0:{received} 2 0 0 0 0 0 0 {sent} 2 0 0 0 \
             0 0 0\n"
        )
    }

    #[test]
    fn the_busiest_interval_of_the_busiest_interface_is_kept() {
        let mut interfaces = Interfaces::begin();
        interfaces.counts = vec![LinkCounts::new("lo", 1000, 100), LinkCounts::new("eth0", 1000, 100)];
        interfaces.add(&text(1000, 6000, 200), 100_000_000, true);
        interfaces.add(&text(1001, 7000, 1200), 100_000_000, true);
        let expected = Interface {
            name: "eth0".into(),
            nanoseconds: 200_000_000,
            received_bytes: 6000,
            sent_bytes: 1100,
            busiest_received_bytes_per_second: 50_000,
            busiest_sent_bytes_per_second: 10_000,
            ..Interface::default()
        };
        let found = interfaces.busiest().unwrap();
        let (received, sent) = (found.sustained_received_bytes_per_second, found.sustained_sent_bytes_per_second);
        // The lesser of two intervals, to two digits.
        assert!((10_000..10_100).contains(&received) && (1_000..1_010).contains(&sent), "{found:?}");
        assert_ne!(found.network, 0);
        let rest = Interface {
            network: 0,
            sustained_received_bytes_per_second: 0,
            sustained_sent_bytes_per_second: 0,
            ..found
        };
        assert_eq!(rest, expected);
    }

    #[test]
    fn a_sidecar_does_not_hide_the_link() {
        let name = |loopback: u64, link: u64| {
            let mut interfaces = Interfaces::begin();
            interfaces.counts = vec![LinkCounts::new("lo", 0, 0), LinkCounts::new("eth0", 0, 0)];
            interfaces.add(&text(loopback, link, link), 100_000_000, true);
            interfaces.busiest().unwrap().name
        };
        assert_eq!(name(20_000, 10_000), "eth0", "every byte passed the loopback interface twice");
        assert_eq!(name(20_000, 2_000), "eth0");
        assert_eq!(name(20_000, 1_999), "lo", "the link carried something else");
        assert_eq!(name(0, 0), "eth0");
    }

    #[test]
    fn what_four_of_five_intervals_carried_is_known_whatever_the_first_let_pass() {
        let mut interfaces = Interfaces::begin();
        interfaces.counts = vec![LinkCounts::new("eth0", 0, 0)];
        // Idle before the load, a burst that the token bucket passes, and then the bucket's rate.
        let mut received = 0;
        for (bytes, loaded) in [(0, false), (0, false), (9_000_000, true)].into_iter().chain([(250_000, true); 9]) {
            received += bytes;
            interfaces.add(&text(0, received, 0), 100_000_000, loaded);
        }
        let sustained = interfaces.busiest().unwrap().sustained_received_bytes_per_second;
        assert!((2_480_000..=2_520_000).contains(&sustained), "{sustained}");
    }

    #[test]
    fn nonsense_is_no_interface() {
        assert_eq!(parse("a\nb: 1 2\nc: x 2 3 4 5 6 7 8 9\n").count(), 0);
        assert!(Interfaces::begin().busiest().is_some());
    }
}
