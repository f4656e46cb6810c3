//! Validation of `spec.load.connectionLifetime`.

use std::time::Duration;

use redisbench_wire::plan;

use crate::api::duration::{Durations, GoDuration, HOUR, MILLISECOND, nanoseconds};
use crate::api::lifetime::ConnectionLifetimeSpec;
use crate::api::problem::Problem;
use crate::api::spec::RedisBenchmarkSpec;

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
