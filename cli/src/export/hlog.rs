//! Interval log of `HdrHistogram`, format 1.3: the response times of succeeded requests, second by second.

use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use redisbench_benchmark::measurement::seconds::measured;

use super::error::ExportError;
use super::rows::{seconds, start};
use super::trials::only;
use crate::reading::Reading;

/// Nanoseconds in a millisecond: the unit of the longest time in each line.
const MILLISECOND: f64 = 1e6;

pub fn write(reading: &Reading) -> Result<Vec<u8>, ExportError> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| ExportError::Write("the interval log", error);
    let trial = only(reading)?;
    // Without a base time, which Python's reader cannot add: readers take such small times as relative to the start.
    let began = SystemTime::from(start(trial)?);
    let (mut text, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment(&format!("Response time of succeeded requests of {}, in nanoseconds.", reading.name()))
        .add_comment("Values are rounded up by at most 3.2 %.")
        .with_start_time(began)
        .with_max_value_divisor(MILLISECOND)
        .begin_log_with(&mut text, &mut serializer)
        .map_err(|error| failed(error.into()))?;
    for second in seconds(trial)? {
        let times = measured(std::iter::once(&second.total)).response;
        let [from, length] = [second.second, second.seconds].map(|seconds| Duration::from_secs(seconds.into()));
        log.write_histogram(&times, from, length, None).map_err(|error| failed(error.to_string().into()))?;
    }
    Ok(text)
}
