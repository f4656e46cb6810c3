//! A server's log and its times.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// A server's log from its standard output. Times are UTC.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<String>>);

impl Log {
    /// Reads until the output ends, so that the server never blocks on a full pipe. Returns true once a line contains `text`, or false if
    /// none does.
    pub fn follow_until(&self, output: impl Read + Send + 'static, text: &str) -> bool {
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        while let Some(line) = lines.next() {
            self.push(&line);
            if line.contains(text) {
                let log = self.clone();
                thread::spawn(move || lines.for_each(|line| log.push(&line)));
                return true;
            }
        }
        false
    }

    fn push(&self, line: &str) {
        self.0.lock().unwrap().extend([line, "\n"]);
    }

    /// The times at which lines with `text` were written, in milliseconds since the Unix epoch.
    pub fn times_of(&self, text: &str) -> Vec<u64> {
        self.0.lock().unwrap().lines().filter(|line| line.contains(text)).map(time).collect()
    }

    pub fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

/// The time of a line such as `123:M 22 Nov 2026 03:00:00.123 * Ready`.
fn time(line: &str) -> u64 {
    let words: Vec<&str> = line.split_whitespace().skip(1).take(4).collect();
    let time = DateTime::strptime("%d %b %Y %H:%M:%S%.f", words.join(" ")).unwrap();
    u64::try_from(TimeZone::UTC.to_timestamp(time).unwrap().as_millisecond()).unwrap()
}

/// Allowed difference between the load generator's times and the servers' logs, in milliseconds, on a machine that is not busy.
pub const TOLERANCE: u64 = 100;

/// Two clocks truncated to milliseconds may differ by this much.
const ROUNDING: u64 = 2;

/// Returns whether to check assertions that fail on a busy machine; `make test-timing` sets it.
pub fn is_timed() -> bool {
    std::env::var_os("REDISBENCH_TIMING").is_some()
}

/// An outage began about when the log says.
#[track_caller]
pub fn assert_begins(what: &str, told: u64, logged: u64) {
    println!("{what}: {} ms off", told.cast_signed() - logged.cast_signed());
    assert!(!is_timed() || told.abs_diff(logged) <= TOLERANCE, "{what}: told {told}, logged {logged}");
}

/// An outage ended about when the log says, and never before, because no server could reply until then.
#[track_caller]
pub fn assert_ends(what: &str, told: u64, logged: u64) {
    assert_begins(what, told, logged);
    assert!(told + ROUNDING >= logged, "{what}: told {told}, before {logged}, which was logged");
}

/// Now, in milliseconds since the Unix epoch.
pub fn now() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}
