//! A benchmark from flags, with the names that redis-cli and redis-benchmark use.

pub mod preset_names;
pub mod target;
mod uri;

use clap::Args;
use redisbench_benchmark::api::{DurationError, GoDuration};
use serde_json::json;

use crate::draft::Draft;
use crate::manifest::Problem;
pub use target::TargetFlags;

/// Enough for a first impression, in seconds that a person waits.
const DURATION: &str = "10s";
const WARMUP: &str = "2s";
/// The same as redis-benchmark's. Tests that remove elements need to know how many.
pub const REQUESTS_OF_TESTS: u64 = 100_000;
/// Few enough to be written in a moment.
const KEYS: u64 = 10_000;

/// Target and load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Load")]
pub struct Flags {
    #[command(flatten)]
    pub target: TargetFlags,
    /// Connections of the whole benchmark [default: 50]
    #[arg(short, long, value_name = "N")]
    pub connections: Option<u32>,
    /// Requests in flight per connection [default: 1]
    #[arg(short = 'P', long, value_name = "N")]
    pub pipeline: Option<u32>,
    /// Number of requests to measure, instead of a duration
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "duration")]
    pub requests: Option<u64>,
    /// Length of the measurement, such as 30s or 5m; a plain number is seconds [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<String>,
    /// Length of the load before the measurement [default: 2s, or 0 with tests that remove elements]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub warmup: Option<String>,
    /// Requests per second of the whole benchmark. Latency then counts from when a request is due. Without it, each connection sends
    /// its next request after a reply, so the server sets the pace
    #[arg(long, value_name = "N")]
    pub rate: Option<u64>,
    /// Length of values in bytes [default: 100]
    #[arg(short, long, value_name = "BYTES")]
    pub data_size: Option<u32>,
    /// Number of keys [default: 10000]
    #[arg(short = 'r', long, value_name = "N")]
    pub keys: Option<u64>,
    /// Tests of redis-benchmark, such as `set,get,lrange_100`, one trial each [default: 80 % GET and 20 % SET]
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',')]
    pub tests: Vec<String>,
}

impl Flags {
    /// A benchmark called `name`.
    ///
    /// # Errors
    /// The flag that is wrong by itself. [`Draft::manifest`] reports what the benchmark does not allow.
    pub fn draft(&self, name: &str) -> Result<Draft, Problem> {
        let mut draft = Draft::new(name);
        self.target.apply(&mut draft)?;
        draft.set("load/type", if self.rate.is_some() { "OpenLoop" } else { "ClosedLoop" });
        draft.set_if("load/openLoop/rate", self.rate);
        draft.set_if("load/connections", self.connections);
        draft.set_if("load/pipeline", self.pipeline);
        draft.set_if("load/duration", self.duration.as_deref());
        draft.set_if("load/requests", self.requests);
        draft.set_if("load/warmup", self.warmup.as_deref());
        draft.set("workload/keys/count", self.keys.unwrap_or(KEYS));
        draft.set_if("workload/values/size/fixed/bytes", self.data_size);
        let bounded = self.duration.is_some() || self.requests.is_some();
        if self.tests.is_empty() {
            let mix = [
                json!({"name": "get", "weight": 80, "command": "GET __key__"}),
                json!({"name": "set", "weight": 20, "command": "SET __key__ __data__"}),
            ];
            draft.set("workload/operations", mix.to_vec());
            // No read should miss.
            draft.set("preload/mode", "FillMissing");
            if !bounded {
                draft.set("load/duration", DURATION);
            }
        } else {
            let (tests, remarks) = preset_names::presets(&self.tests);
            if preset_names::consume(&tests) {
                draft.set_default("load/warmup", "0s");
            }
            draft.set("workload/preset", tests);
            draft.remarks.extend(remarks);
            if !bounded {
                draft.set("load/requests", REQUESTS_OF_TESTS);
            }
        }
        draft.set_default("load/warmup", WARMUP);
        Ok(draft)
    }
}

/// A duration of the API. As for valkey-benchmark, a plain number is seconds.
pub fn duration(text: &str) -> Result<String, DurationError> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let duration = GoDuration::new(if plain { format!("{text}s") } else { text.to_owned() });
    duration.parse().map(|_| duration.as_str().to_owned())
}

#[cfg(test)]
mod tests;
