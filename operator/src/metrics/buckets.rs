//! A latency histogram for Prometheus, with classic and with native buckets.

use std::sync::LazyLock;

use hdrhistogram::Histogram;
use redisbench_wire::histogram::HIGHEST_NANOSECONDS;

/// Native buckets divide each doubling into 2^schema parts: a quantile is off by at most 9 %.
pub const SCHEMA: i32 = 3;

/// Upper bounds of the classic buckets, in nanoseconds: 7 per decade from 10 microseconds to 60 s. A quantile is off by at most the factor
/// 1.5 between two bounds.
static BOUNDS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let decades = (3..=9).flat_map(|power| [10, 15, 20, 30, 40, 60, 80].map(|step| step * 10_u64.pow(power)));
    decades.filter(|bound| *bound <= 60_000_000_000).collect()
});

#[derive(Clone, Debug, PartialEq)]
pub struct Buckets {
    /// Times per classic bucket, not cumulative. The last entry is for those above the last bound.
    classic: Vec<u64>,
    /// Times per native bucket, by index.
    native: Vec<(i32, u64)>,
    pub count: u64,
    /// The sum of all times, in seconds.
    pub sum: f64,
}

impl Buckets {
    /// From `histogram` in nanoseconds, plus `overflow` times that were longer than its highest value.
    pub fn of(histogram: &Histogram<u64>, overflow: u64) -> Self {
        let mut buckets = Self {
            classic: vec![0; BOUNDS.len() + 1],
            native: Vec::new(),
            count: 0,
            sum: histogram.mean() * histogram.len() as f64 / 1e9,
        };
        for value in histogram.iter_recorded() {
            buckets.add(value.value_iterated_to(), value.count_at_value());
        }
        if overflow > 0 {
            buckets.add(HIGHEST_NANOSECONDS, overflow);
            buckets.sum += seconds(HIGHEST_NANOSECONDS) * overflow as f64;
        }
        buckets
    }

    /// Adds times that are not shorter than those before. Saturates at the largest signed number: shards' counts are untrusted.
    fn add(&mut self, nanoseconds: u64, count: u64) {
        let count = count.min(u64::MAX / 2 - self.count);
        self.count += count;
        self.classic[BOUNDS.partition_point(|bound| *bound < nanoseconds)] += count;
        let index = native_index(nanoseconds);
        match self.native.last_mut() {
            Some((last, sum)) if *last == index => *sum += count,
            _ => self.native.push((index, count)),
        }
    }

    /// The upper bounds of the classic buckets in seconds, the last infinite, with the number of times in each, not cumulative.
    pub fn classic(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS.iter().map(|bound| seconds(*bound)).chain([f64::INFINITY]);
        bounds.zip(self.classic.iter().copied()).collect()
    }

    /// Runs of consecutive native buckets, each with the gap before it and its length; and every bucket's difference from the one before.
    pub fn spans(&self) -> (Vec<(i32, u32)>, Vec<i64>) {
        let (mut spans, mut deltas) = (Vec::<(i32, u32)>::new(), Vec::new());
        let (mut next, mut before) = (0, 0);
        for (index, count) in &self.native {
            match spans.last_mut() {
                Some((_, length)) if *index == next => *length += 1,
                _ => spans.push((index - next, 1)),
            }
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            deltas.push(count - before);
            (next, before) = (index + 1, count);
        }
        (spans, deltas)
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// The bucket with index i holds times above 2^((i-1)/8) and up to 2^(i/8) seconds.
#[expect(clippy::cast_possible_truncation, reason = "between -240 and 74")]
fn native_index(nanoseconds: u64) -> i32 {
    (seconds(nanoseconds.max(1)).log2() * f64::from(1 << SCHEMA)).ceil() as i32
}

#[cfg(test)]
mod tests {
    use redisbench_wire::histogram::Kind;

    use super::*;

    fn of(nanoseconds: &[u64], overflow: u64) -> Buckets {
        let mut histogram = Kind::Request.empty();
        for value in nanoseconds {
            histogram.record(*value).unwrap();
        }
        Buckets::of(&histogram, overflow)
    }

    #[test]
    fn classic_buckets_hold_every_time() {
        let buckets = of(&[9_000, 15_000, 1_400_000, 599_000_000_000], 1);
        let up_to = |bound: f64| -> u64 {
            buckets.classic().iter().filter(|(end, _)| *end <= bound).map(|(_, count)| count).sum()
        };
        assert_eq!([0.000_01, 0.000_02, 0.002, 60.0, f64::INFINITY].map(up_to), [1, 2, 3, 3, 5]);
        assert_eq!(buckets.count, 5);
        assert!((buckets.sum - 1199.0).abs() < 2.0, "{}", buckets.sum);
        let bounds: Vec<f64> = buckets.classic().into_iter().map(|(bound, _)| bound).collect();
        assert!(bounds.is_sorted() && bounds.windows(2).all(|pair| pair[1] < pair[0] * 1.501 || pair[1].is_infinite()));
    }

    #[test]
    fn counts_of_hostile_shards_saturate() {
        let mut histogram = Kind::Request.empty();
        histogram.record_n(1_000_000, u64::MAX / 2).unwrap();
        let buckets = Buckets::of(&histogram, u64::MAX);
        assert_eq!(buckets.count, u64::MAX / 2);
        assert_eq!(buckets.classic().iter().map(|(_, count)| count).sum::<u64>(), buckets.count);
    }

    #[test]
    fn native_buckets_hold_every_time_within_nine_percent() {
        let times = [1_000, 60_000, 61_000, 1_000_000, 250_000_000];
        let buckets = of(&times, 0);
        let (spans, deltas) = buckets.spans();
        // Back to indices and counts, as Prometheus does it.
        let (mut index, mut at, mut count, mut found) = (0, 0, 0, Vec::new());
        for (offset, length) in spans {
            index += offset;
            for _ in 0..length {
                count += deltas[at];
                found.push((index, count));
                (index, at) = (index + 1, at + 1);
            }
        }
        assert_eq!(found.iter().map(|(_, count)| count).sum::<i64>(), 5);
        for time in times {
            let holds = |(index, _): &&(i32, i64)| {
                let end = 2_f64.powf(f64::from(*index) / 8.0) * 1e9 * 1.002;
                time as f64 <= end && time as f64 > end / 1.094
            };
            assert!(found.iter().any(|bucket| holds(&bucket)), "{time} in {found:?}");
        }
    }
}
