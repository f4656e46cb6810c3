//! Prometheus' binary form: messages `io.prometheus.client.MetricFamily`, each after its length. Written here because `prometheus-client`
//! leaves out the start times of counters, and its feature for this form adds a compiler of protocol buffers to every build.

use prometheus_client::metrics::MetricType;

use super::buckets::{Buckets, SCHEMA};
use super::catalogue::Metric;
use super::page::{Page, Series, Value};

/// Times up to this one, in seconds, would count as zero. The default of Prometheus' own client. Marks a histogram as native, also an
/// empty one.
const ZERO_THRESHOLD: f64 = 2.938_735_877_055_719e-39;

pub fn encode(page: &Page) -> Vec<u8> {
    let mut all = Message::default();
    for (metric, series) in page.families() {
        let family = family(metric, series).0;
        all.varint(family.len() as u64);
        all.0.extend(family);
    }
    all.0
}

fn family(metric: &Metric, series: &[Series]) -> Message {
    // Its number, and the fields of its value and of the value's start time.
    let (kind, field, start) = match metric.kind {
        MetricType::Counter => (0, 3, Some(3)),
        MetricType::Histogram => (4, 7, Some(15)),
        MetricType::Gauge | MetricType::Info | MetricType::Unknown => (1, 2, None),
    };
    let mut family = Message::default();
    family.bytes(1, metric.name.as_bytes());
    family.bytes(2, metric.help.as_bytes());
    family.integer(3, kind);
    for one in series {
        let mut message = Message::default();
        for (name, value) in one.labels(metric) {
            let mut label = Message::default();
            label.bytes(1, name.as_bytes());
            label.bytes(2, value.as_bytes());
            message.bytes(1, &label.0);
        }
        let mut value = match &one.value {
            Value::Count(count) => number(*count as f64),
            Value::Number(value) => number(*value),
            Value::Histogram(buckets) => histogram(buckets),
        };
        if let (Some(start), Some(created)) = (start, one.created()) {
            value.bytes(start, &timestamp(created).0);
        }
        message.bytes(field, &value.0);
        family.bytes(4, &message.0);
    }
    family
}

fn number(value: f64) -> Message {
    let mut number = Message::default();
    number.double(1, value);
    number
}

fn histogram(buckets: &Buckets) -> Message {
    let mut histogram = Message::default();
    histogram.integer(1, buckets.count);
    histogram.double(2, buckets.sum);
    let mut cumulative = 0;
    for (bound, count) in buckets.classic() {
        cumulative += count;
        let mut bucket = Message::default();
        bucket.integer(1, cumulative);
        bucket.double(2, bound);
        histogram.bytes(3, &bucket.0);
    }
    histogram.integer(5, zigzag(SCHEMA.into()));
    histogram.double(6, ZERO_THRESHOLD);
    let (spans, deltas) = buckets.spans();
    for (offset, length) in spans {
        let mut span = Message::default();
        span.integer(1, zigzag(offset.into()));
        span.integer(2, length.into());
        histogram.bytes(12, &span.0);
    }
    let mut packed = Message::default();
    for delta in deltas {
        packed.varint(zigzag(delta));
    }
    histogram.bytes(13, &packed.0);
    histogram
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time since the Unix epoch")]
fn timestamp(seconds: f64) -> Message {
    let mut time = Message::default();
    time.integer(1, seconds as u64);
    time.integer(2, (seconds.fract() * 1e9) as u64);
    time
}

/// Signed numbers as unsigned ones, small for small absolute values.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// A message, or a part of one.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    #[expect(clippy::cast_possible_truncation, reason = "seven bits")]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn integer(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn double(&mut self, field: u64, value: f64) {
        self.varint((field << 3) | 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.varint((field << 3) | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use redisbench_wire::histogram::Kind;

    use super::super::catalogue::{LEADER, LEASE_HELD, LEASE_ROUNDS, Of, QUEUE_WAIT, RECONCILE_DURATION};
    use super::super::format::Format;
    use super::super::page::Entity;
    use super::*;

    fn page() -> Page {
        let operator = Entity { of: Of::Operator, labels: Arc::default(), created: Some(2.5) };
        let mut durations = Kind::Request.empty();
        for (nanoseconds, count) in [(9_000, 2), (10_000, 3), (11_000, 5), (3_000_000, 7), (599_000_000_000, 11)] {
            durations.record_n(nanoseconds, count).unwrap();
        }
        let mut page = Page::default();
        page.add(&LEASE_ROUNDS, &operator, &["held"], 1_u64);
        page.add(&LEASE_ROUNDS, &operator, &["raced"], 300_u64);
        page.add(&LEADER, &operator, &[], 1_u64);
        page.add(&LEASE_HELD, &operator, &[], 1_767_229_200.5);
        page.add(&RECONCILE_DURATION, &operator, &[], Arc::new(Buckets::of(&durations, 13)));
        page.add(&QUEUE_WAIT, &operator, &[], Arc::new(Buckets::of(&Kind::Request.empty(), 0)));
        page
    }

    fn read_varint(bytes: &mut &[u8]) -> u64 {
        let length = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
        let (first, rest) = bytes.split_at(length);
        *bytes = rest;
        first.iter().rev().fold(0, |value, byte| (value << 7) | u64::from(byte & 0x7f))
    }

    fn read_zigzag(value: u64) -> i64 {
        (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
    }

    /// The fields of a message: integers, and the bytes of the others.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let key = read_varint(&mut bytes);
            let (integer, length) = match key & 7 {
                0 => (read_varint(&mut bytes), 0),
                1 => (0, 8),
                _ => (0, usize::try_from(read_varint(&mut bytes)).unwrap()),
            };
            let (content, rest) = bytes.split_at(length);
            bytes = rest;
            found.push((key >> 3, integer, content));
        }
        found
    }

    fn integers(message: &[u8], field: u64) -> u64 {
        fields(message).into_iter().filter(|(number, ..)| *number == field).map(|(_, integer, _)| integer).sum()
    }

    fn parts(message: &[u8], field: u64) -> impl Iterator<Item = &[u8]> {
        fields(message).into_iter().filter(move |(number, ..)| *number == field).map(|(.., content)| content)
    }

    fn double(message: &[u8], field: u64) -> f64 {
        parts(message, field).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).sum()
    }

    /// The sum of all series of each sample, with the cumulative counts of all classic buckets.
    fn sums(mut bytes: &[u8]) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::<String, f64>::new();
        while !bytes.is_empty() {
            let length = usize::try_from(read_varint(&mut bytes)).unwrap();
            let (family, rest) = bytes.split_at(length);
            bytes = rest;
            let name = str::from_utf8(parts(family, 1).next().unwrap()).unwrap();
            let mut add = |suffix: &str, value: f64| *sums.entry(format!("{name}{suffix}")).or_default() += value;
            for metric in parts(family, 4) {
                for value in parts(metric, 2).chain(parts(metric, 3)) {
                    add("", double(value, 1));
                }
                for histogram in parts(metric, 7) {
                    add("_count", integers(histogram, 1) as f64);
                    add("_sum", double(histogram, 2));
                    parts(histogram, 3).for_each(|bucket| add("_bucket", integers(bucket, 1) as f64));
                    // Native buckets have the same times, and mark an empty histogram as native too.
                    let mut deltas = parts(histogram, 13).next().unwrap();
                    let (mut bucket, mut native) = (0_i64, 0_i64);
                    while !deltas.is_empty() {
                        bucket += read_zigzag(read_varint(&mut deltas));
                        native += bucket;
                    }
                    assert_eq!(native.cast_unsigned(), integers(histogram, 1), "{name}");
                    assert!(double(histogram, 6) > 0.0, "{name}");
                }
            }
        }
        sums
    }

    #[test]
    fn all_forms_have_the_same_sums() {
        let binary = sums(&Format::Protobuf.encode(page()));
        let known = ["redisbench_lease_rounds_total", "redisbench_reconcile_duration_seconds_count"];
        assert_eq!(known.map(|name| binary[name].to_string()), ["301", "41"]);
        for format in [Format::Text, Format::OpenMetrics] {
            let text = String::from_utf8(format.encode(page())).unwrap();
            let mut sums = BTreeMap::<String, f64>::new();
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                let (name, value) = (line.split(['{', ' ']).next().unwrap(), line.rsplit(' ').next().unwrap());
                *sums.entry(name.to_owned()).or_default() += value.parse::<f64>().unwrap();
            }
            assert_eq!(sums, binary, "{format:?}");
        }
    }

    #[test]
    fn numbers_are_encoded_as_specified() {
        let mut message = Message::default();
        message.varint(300);
        assert_eq!(message.0, [0xac, 0x02]);
        assert_eq!([0, -1, 1, -2, i64::MIN].map(zigzag), [0, 1, 2, 3, u64::MAX]);
    }

    /// Byte by byte. A real Prometheus reads histograms in e2e.
    #[test]
    fn a_counter_is_encoded_as_specified() {
        let operator = Entity { of: Of::Operator, labels: Arc::default(), created: Some(2.5) };
        let mut page = Page::default();
        page.add(&LEASE_ROUNDS, &operator, &["held"], 1_u64);
        let bytes = encode(&page);
        let start = bytes.windows(2).position(|pair| pair == [0x18, 0x00]).unwrap();
        let label = [&[0x0a, 14, 0x0a, 6][..], b"result", &[0x12, 4], b"held"].concat();
        let created = [&[0x1a, 8, 0x08, 2, 0x10][..], &[0x80, 0xca, 0xb5, 0xee, 0x01]].concat();
        let counter = [&[0x09][..], &1.0_f64.to_le_bytes(), &created].concat();
        let length = u8::try_from(counter.len()).unwrap();
        let metric = [label, vec![0x1a, length], counter].concat();
        let family = [&[0x18, 0x00, 0x22, u8::try_from(metric.len()).unwrap()][..], &metric].concat();
        assert_eq!(bytes[start..], family);
    }
}
