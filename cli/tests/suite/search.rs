//! `spec.search` with a real Redis. Each step takes 12 s, so the searches are short.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use redisbench_testkit::servers::RedisServer;

use crate::support::{GETS, Run, benchmark, list, number, standalone};

fn manifest(endpoint: &str, search: &str, load: &str) -> String {
    let load = format!("  load: {{type: OpenLoop, connections: {load}, warmup: 2s}}\n  shards: {{count: 2}}\n");
    benchmark(&standalone(endpoint), &format!("{GETS}  search: {{{search}}}\n{load}"))
}

/// A search with a single rate, and `max` as limit of the 0.9 quantile.
fn one_rate(endpoint: &str, max: &str) -> String {
    let search = format!("objective: {{quantile: '0.9', max: {max}}}, rate: {{min: 200, max: 200}}");
    manifest(endpoint, &search, "4")
}

/// The proxy holds each request for 2.5 ms, next to which the load generator's own delays are short: the lowest rate fails twice.
#[test]
#[ignore = "depends on how busy the machine is: make test-timing"]
fn a_rate_that_is_out_of_reach_is_said_to_be() {
    let redis = RedisServer::start(&[]);
    let finished = Run::local(&one_rate(&paced(&redis).to_string(), "1ms"), &[]).finish();
    let status = finished.succeeded();
    assert_eq!(finished.code, Some(4), "{}", finished.stderr);
    assert_eq!(status["search"]["ending"], "MinFailed", "{status:#}");
    assert_eq!(number(&status["search"]["firstBadPerSecond"]), 200, "{status:#}");
    let steps = list(&status["trials"]);
    assert_eq!(steps.len(), 2, "{status:#}");
    for step in steps {
        assert_eq!(
            (step["search"]["outcome"].as_str(), number(&step["requests"]["scheduled"])),
            (Some("Failed"), 2_000)
        );
        assert!(step["search"]["why"].as_str().unwrap().contains("the maximum is 1.00 ms"), "{step}");
    }
}

/// The capacity of the paced proxy, in requests per second.
const CAPACITY: u32 = 400;

/// A proxy before `server` that forwards [`CAPACITY`] requests per second, one after the other. Each has a due time, so a busy machine
/// makes some late but does not lower the capacity. Runs until the test ends.
fn paced(server: &RedisServer) -> SocketAddr {
    let (server, listener) = (server.endpoint(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = listener.local_addr().unwrap();
    let next = Arc::new(Mutex::new(Instant::now()));
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut requests, next) = (client.unwrap(), Arc::clone(&next));
            let mut upstream = TcpStream::connect(&server).unwrap();
            let (mut replies, mut back) = (upstream.try_clone().unwrap(), requests.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut replies, &mut back));
            thread::spawn(move || {
                let mut chunk = [0; 4096];
                while let Ok(length @ 1..) = requests.read(&mut chunk) {
                    // A GET has exactly one asterisk.
                    let count = chunk[..length].split(|byte| *byte == b'*').count() - 1;
                    let due = {
                        let mut next = next.lock().unwrap();
                        *next = (*next).max(Instant::now())
                            + Duration::from_secs(1) / CAPACITY * u32::try_from(count).unwrap();
                        *next
                    };
                    while let Some(early @ 1..) =
                        due.checked_duration_since(Instant::now()).map(|early| early.as_nanos())
                    {
                        thread::park_timeout(Duration::from_nanos(u64::try_from(early).unwrap()));
                    }
                    if upstream.write_all(&chunk[..length]).is_err() {
                        break;
                    }
                }
                let _ = upstream.shutdown(Shutdown::Write);
            });
        }
    });
    address
}

#[test]
#[ignore = "depends on how busy the machine is: make test-timing"]
fn a_known_capacity_is_found_within_the_tolerance() {
    const TOLERANCE: f64 = 0.1;
    let redis = RedisServer::start(&[]);
    let search = "objective: {quantile: '0.9', max: 100ms}, rate: {min: 345, max: 455, toleranceBasisPoints: 1000}";
    let manifest = manifest(&paced(&redis).to_string(), search, "8, pipeline: 16");
    let finished = Run::local(&manifest, &[]).finish();
    let status = &finished.object["status"];
    let search = &status["search"];
    // Other work on the machine may delay a shard, which is reported then.
    let disturbed = search["limitedBy"] == "GeneratorCPU";
    let expected = if disturbed { ("GeneratorLimited", Some(1)) } else { ("Found", Some(0)) };
    assert_eq!((search["ending"].as_str().unwrap(), finished.code), expected, "{}\n{status:#}", finished.stderr);
    let (good, bad) = (number(&search["lastGoodPerSecond"]), number(&search["firstBadPerSecond"]));
    assert!((good as f64 / f64::from(CAPACITY) - 1.0).abs() <= TOLERANCE, "{good}: {status:#}");
    assert!(good < bad && bad as f64 <= good as f64 * (1.0 + TOLERANCE), "{good} {bad}: {status:#}");
    // Why the next step failed, and its limiting factor. A bottleneck before the server is invisible except to a probe, which runs after a
    // step that missed its rate and needs a long queue.
    assert!(search["why"].as_str().unwrap().contains("the maximum is 100 ms"), "{search:#}");
    let limit = (search["limitedBy"].as_str().unwrap(), search["component"].as_str());
    assert!(disturbed || matches!(limit, ("Unknown", _) | ("Target", Some("Path"))), "{search:#}");
    for step in status["trials"].as_array().unwrap() {
        let (step, scheduled) = (&step["search"], number(&step["requests"]["scheduled"]));
        let offered = number(&step["ratePerSecond"]);
        assert!(scheduled.abs_diff(offered * 10) <= 1, "{scheduled} at {offered}");
        assert_eq!(step["outcome"] == "Failed", step["why"].is_string(), "{step}");
        assert_eq!(step["outcome"] == "Failed", step["limitedBy"].is_string(), "{step}");
    }
    let said = finished.stderr;
    assert!(said.contains(": failed: p90 was") && said.contains(": passed, 2 of 3 times"), "{said}");
    assert!(!said.contains("of 100"), "{said}");
}

/// The only rate passes, and then three more times.
#[test]
fn the_answer_is_confirmed_by_three_fresh_trials() {
    let redis = RedisServer::start(&[]);
    let finished = Run::local(&one_rate(&redis.endpoint(), "10m"), &[]).finish();
    let status = finished.succeeded();
    assert_eq!(status["search"]["ending"], "MaxPassed", "{status:#}");
    assert_eq!(number(&status["search"]["lastGoodPerSecond"]), 200, "{status:#}");
    let confirmations: Vec<_> =
        list(&status["trials"]).iter().map(|step| step["search"]["confirmation"].as_u64()).collect();
    assert_eq!(confirmations, [None, Some(1), Some(2), Some(3)], "{status:#}");
}
