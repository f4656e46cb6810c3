//! `spec.load.connectionLifetime`: connections that are closed and made again. The doc comments are the text of `kubectl explain`.

use std::time::Duration;

use redisbench_wire::plan::{self, LifetimeSpread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::GoDuration;
use super::problem::Problem;
use super::spec::RedisBenchmarkSpec;
use super::validate::{Durations, HOUR, MILLISECOND, nanoseconds};

/// Closes each connection after a number of requests or a time and makes it again, like clients that come and go. A connection finishes its
/// requests first, so this causes no errors. Connects have their own latencies in `status.result.connections`. Exactly one of `requests`
/// and `duration` is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionLifetimeSpec {
    /// Number of requests after which a connection is closed, 1 to 1000000000: 1 is a connection for each request. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub requests: Option<u32>,
    /// Time after which a connection is closed, 10ms to 24h. Not set by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<GoDuration>,
    /// Distribution of the ends. `Even` shortens the first life of each connection, by a different amount, so that connections are closed
    /// evenly over time. `Together` gives all the full length: with `duration`, all connections are closed at the same time, again and
    /// again, a reconnect storm. Default `Even`.
    #[serde(default)]
    pub spread: LifetimeSpread,
}

/// The lifetime of connections. None without one, or if a rule is broken.
pub(super) fn check(spec: &RedisBenchmarkSpec, problems: &mut Vec<Problem>) -> Option<plan::Lifetime> {
    let ConnectionLifetimeSpec { requests, duration, spread } = spec.load.connection_lifetime.as_ref()?;
    let limit = match (requests, duration) {
        (Some(count), _) => plan::LifetimeLimit::Requests { count: *count },
        (None, duration) => {
            let duration = duration.as_ref()?;
            let mut durations = Durations { problems: &mut *problems, within: "spec.load.connectionLifetime" };
            let length = durations.between("duration", duration, 10 * MILLISECOND, 24 * HOUR);
            check_rate(spec, duration, length, problems);
            plan::LifetimeLimit::Duration { nanoseconds: nanoseconds(length) }
        }
    };
    Some(plan::Lifetime { limit, spread: *spread })
}

/// Checks that `connectRate` allows each connection to be made once in a lifetime.
fn check_rate(spec: &RedisBenchmarkSpec, duration: &GoDuration, length: Duration, problems: &mut Vec<Problem>) {
    let Some(rate) = spec.load.connect_rate else { return };
    let connections = spec.load.connections;
    if u128::from(rate) * length.as_nanos() < u128::from(connections) * 1_000_000_000 {
        let message = format!(
            "is too short to make {connections} connections at load.connectRate, which is {rate} per second: raise one of \
             the two"
        );
        problems.push(Problem::new("spec.load.connectionLifetime.duration", duration, message));
    }
}
