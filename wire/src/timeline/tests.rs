use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use proptest::prelude::*;

use super::*;
use crate::histogram::HIGHEST_NANOSECONDS;

#[test]
fn buckets_follow_one_another_and_are_narrow() {
    let mut next = 0;
    for index in 0..BUCKETS {
        assert_eq!(bucket(next), index);
        let highest = highest_in(index);
        assert_eq!(bucket(highest), index, "{highest}");
        assert!(next < 4096 || (highest - next) as f64 <= next as f64 / 31.0, "{next} to {highest}");
        next = highest + 1;
    }
    assert!(next > HIGHEST_NANOSECONDS);
}

fn part(latencies: &[u64]) -> SpanPart {
    let mut response = Coarse::default();
    for latency in latencies {
        response.record(*latency, 1);
    }
    let count = latencies.len() as u64;
    let counts = Outcomes { scheduled: count, succeeded: count, ..Outcomes::default() };
    SpanPart { counts, response: response.buckets(), ..SpanPart::default() }
}

fn second(second: u32, latencies: &[u64]) -> Span {
    Span { second, seconds: 1, sent_bytes: 3, parts: vec![part(latencies)], ..Span::default() }
}

/// The sum of all `spans`.
fn sum<'a>(spans: impl IntoIterator<Item = &'a Span>) -> Span {
    let mut sum = Sum::default();
    spans.into_iter().for_each(|span| sum.add(span));
    sum.take(0, 1)
}

#[test]
fn the_last_hour_is_kept_by_the_second_and_the_rest_longer() {
    let kept = kept_spans(1);
    let mut history = History::default();
    for at in 0..10_000 {
        history.push(second(at, &[u64::from(at)]), kept);
        assert_eq!(history.complete(), at + 1);
    }
    let spans: Vec<&Span> = history.since(0).collect();
    assert!(spans.windows(2).all(|pair| pair[0].end() == pair[1].second), "each second once");
    let lengths: Vec<u32> = spans.iter().map(|span| span.seconds).collect();
    let seconds = lengths.iter().filter(|seconds| **seconds == 1).count();
    assert!((kept - 60..=kept + 60).contains(&seconds), "{seconds}");
    assert_eq!(lengths.iter().filter(|seconds| **seconds == 60).count(), (10_000 - seconds) / 60);
    assert_eq!(sum(spans).counts().succeeded, 10_000);
    assert_eq!(history.since(9_998).map(|span| span.second).collect::<Vec<_>>(), [9_998, 9_999]);
}

fn of_nodes(at: u32, nodes: &[(&str, u64, u64, &[u64])]) -> Span {
    let node = |(address, requests, errors, latencies): &(&str, u64, u64, &[u64])| {
        let service = part(latencies).response;
        NodePart { address: (*address).to_owned(), requests: *requests, errors: *errors, service }
    };
    Span { nodes: nodes.iter().map(node).collect(), ..second(at, &[]) }
}

#[test]
fn nodes_are_added_up_by_address() {
    let one = of_nodes(4, &[("b", 2, 0, &[100, 200]), ("a", 1, 1, &[])]);
    let other = of_nodes(4, &[("a", 1, 0, &[300]), ("c", 0, 0, &[])]);
    let both = of_nodes(4, &[("a", 2, 1, &[300]), ("b", 2, 0, &[100, 200]), ("c", 0, 0, &[])]);
    let merged = merge(vec![one, other]);
    assert_eq!((merged.len(), &merged[0].nodes), (1, &both.nodes));
    let mut known = Sum::default();
    known.add(&of_nodes(3, &[("gone", 5, 0, &[1; 5])]));
    let mut window = Sum::default();
    window.add(&of_nodes(4, &[("a", 1, 1, &[])]));
    window.know_nodes(&known);
    let found = window.take(4, 1).nodes;
    let found: Vec<_> = found.iter().map(|node| (node.address.as_str(), node.requests, node.errors)).collect();
    assert_eq!(found, [("a", 1, 1), ("gone", 0, 0)]);
    assert!(window.take(5, 1).nodes.is_empty(), "each sum begins without any");
}

/// Shards choose the names, and may invent any number of them.
#[test]
fn nodes_beyond_the_bound_are_one() {
    let mut sum = Sum::default();
    for node in 0..2 * limits::NODES as u64 {
        sum.add(&of_nodes(0, &[(&format!("10.0.0.{node}:6379"), 1, 1, &[])]));
    }
    let nodes = sum.take(0, 1).nodes;
    assert_eq!(nodes.len(), limits::NODES);
    assert_eq!(nodes.iter().map(|node| node.requests).sum::<u64>(), 2 * limits::NODES as u64);
}

#[test]
fn seconds_of_many_nodes_are_kept_for_a_shorter_time() {
    assert_eq!([1, 4, 100, 256, 1_024].map(kept_spans), [3_600, 3_600, 153, 60, 60]);
}

#[test]
fn a_large_mix_keeps_days_in_bounded_memory() {
    let kept = kept_spans(64);
    assert_eq!(kept, 240);
    let mut history = History::default();
    for minute in 0..30_000 {
        history.push(second(minute * 60 + 7, &[1_000]), kept);
    }
    let spans: Vec<&Span> = history.since(0).collect();
    assert!(spans.len() < 30_000 / 60 + 2 * (240 + 60), "{}", spans.len());
    assert_eq!(sum(spans).counts().succeeded, 30_000);
}

#[test]
fn a_longer_span_takes_the_seconds_of_others() {
    let minute = Span { seconds: 60, ..second(60, &[1, 2]) };
    let spans = merge(vec![second(59, &[5]), second(61, &[3]), minute, second(119, &[4]), second(120, &[6])]);
    let found: Vec<_> = spans.iter().map(|span| (span.second, span.seconds, span.counts().succeeded)).collect();
    assert_eq!(found, [(59, 1, 1), (60, 60, 4), (120, 1, 1)]);
    assert_eq!(spans[1].sent_bytes, 9);
}

#[test]
fn what_does_not_fit_is_asked_for_again() {
    let spans: Vec<Span> = (0..10).map(|at| second(at, &[1_000])).collect();
    let mut timeline = Timeline { from: 0, complete: 9, more: false, spans };
    timeline.cut(3 * timeline.spans[0].weight());
    assert_eq!((timeline.spans.len(), timeline.complete, timeline.more), (3, 3, true));
    timeline.cut(0);
    assert_eq!((timeline.spans.len(), timeline.complete), (1, 1), "or nothing would ever come");
}

#[test]
fn nonsense_is_no_histogram() {
    let read = |bytes: &[u8]| Buckets::read(&BASE64.encode(bytes));
    assert_eq!(read(&[3, 1, 0, 2]).unwrap().iter().collect::<Vec<_>>(), [(3, 1), (4, 2)]);
    assert_eq!(read(&[3]), Err("truncated number"));
    assert_eq!(read(&[3, 0x80]), Err("truncated number"));
    assert_eq!(read(&[3, 0]), Err("count out of range"));
    assert_eq!(read(&[0xff, 0x7f, 1]), Err("too many buckets"));
    assert_eq!(read(&[&[3][..], &[0xff; 9], &[1]].concat()), Err("count out of range"));
    assert_eq!(read(&[&[3][..], &[0xff; 9], &[2]].concat()), Err("truncated number"));
    assert_eq!(Buckets::read("!"), Err("not base64"));
    assert_eq!(Buckets::read(&"A".repeat(1 << 20)), Err("longer than its buckets allow"));
}

proptest! {
    #[test]
    fn what_is_sent_is_what_was_recorded(
        values in prop::collection::vec((prop_oneof![0..10_000_u64, 0..=HIGHEST_NANOSECONDS], 1..1_000_000_u64), 0..50),
    ) {
        let mut coarse = Coarse::default();
        let mut expected = BTreeMap::<usize, u64>::new();
        for (value, times) in &values {
            coarse.record(*value, *times);
            *expected.entry(bucket(*value)).or_default() += times;
        }
        let text = serde_json::to_string(&coarse.buckets()).unwrap();
        let read: Buckets = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read.iter().collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
        prop_assert_eq!(read.count(), values.iter().map(|(_, times)| times).sum::<u64>());
        let mut again = Coarse::default();
        again.add(&read);
        prop_assert_eq!(again, coarse);
    }

    #[test]
    fn no_order_and_no_loss_matters(
        spans in prop::collection::vec((0..400_u32, prop::collection::vec(0..1_000_000_u64, 0..5)), 0..40),
    ) {
        let spans: Vec<Span> = spans.iter().map(|(at, latencies)| second(*at, latencies)).collect();
        let merged = merge(spans.clone());
        prop_assert!(merged.windows(2).all(|pair| pair[0].end() <= pair[1].second));
        prop_assert_eq!(sum(&merged), sum(&spans));
        let mut history = History::default();
        for span in merged {
            history.push(span, 100);
        }
        prop_assert_eq!(sum(history.since(0)), sum(&spans));
    }
}
