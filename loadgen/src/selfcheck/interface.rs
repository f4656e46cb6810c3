//! Bytes on the wire, in short intervals.

use std::fs::File;
use std::io::Read as _;

use redisbench_wire::snapshot::Interface;

/// The most interfaces that are looked at: a machine of containers may have hundreds.
const INTERFACES: usize = 64;

/// The counts of all interfaces over a load.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    counts: Vec<Counts>,
    /// What the kernel said last. Kept, because it is asked ten times a second.
    text: String,
}

#[derive(Debug)]
struct Counts {
    /// As last read.
    received: u64,
    sent: u64,
    seen: Interface,
}

impl Interfaces {
    /// As they stand when a load begins.
    pub(super) fn begin() -> Self {
        let counts = |(name, received, sent): (&str, u64, u64)| Counts {
            received,
            sent,
            seen: Interface { name: name.to_owned(), ..Interface::default() },
        };
        let mut text = String::new();
        read(&mut text);
        Self { counts: parse(&text).take(INTERFACES).map(counts).collect(), text }
    }

    /// An interval of so many nanoseconds is over.
    pub(super) fn look(&mut self, nanoseconds: u64) {
        let mut text = std::mem::take(&mut self.text);
        read(&mut text);
        self.add(&text, nanoseconds);
        self.text = text;
    }

    fn add(&mut self, text: &str, nanoseconds: u64) {
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
            seen.busiest_received_bytes_per_second = seen.busiest_received_bytes_per_second.max(rate(more_received));
            seen.busiest_sent_bytes_per_second = seen.busiest_sent_bytes_per_second.max(rate(more_sent));
        }
    }

    /// The one that carried most: where the target is, unless something else is louder than the load.
    pub(super) fn busiest(&self) -> Option<Interface> {
        let all = self.counts.iter().map(|counts| &counts.seen);
        all.max_by_key(|seen| seen.received_bytes.saturating_add(seen.sent_bytes)).cloned()
    }
}

/// Reads the kernel's counts in place of what was read before. Without them there is no interface.
fn read(text: &mut String) {
    text.clear();
    if File::open("/proc/net/dev").and_then(|mut file| file.read_to_string(text)).is_err() {
        text.clear();
    }
}

/// Name, bytes received and bytes sent of every interface: the first and the ninth number behind the name.
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
        let counts = |name: &str| Counts {
            received: 1000,
            sent: 100,
            seen: Interface { name: name.to_owned(), ..Interface::default() },
        };
        interfaces.counts = vec![counts("lo"), counts("eth0")];
        interfaces.add(&text(1000, 6000, 200), 100_000_000);
        interfaces.add(&text(1001, 7000, 1200), 100_000_000);
        let expected = Interface {
            name: "eth0".into(),
            nanoseconds: 200_000_000,
            received_bytes: 6000,
            sent_bytes: 1100,
            busiest_received_bytes_per_second: 50_000,
            busiest_sent_bytes_per_second: 10_000,
        };
        assert_eq!(interfaces.busiest(), Some(expected));
    }

    #[test]
    fn nonsense_is_no_interface() {
        assert_eq!(parse("a\nb: 1 2\nc: x 2 3 4 5 6 7 8 9\n").count(), 0);
        assert!(Interfaces::begin().busiest().is_some());
    }
}
