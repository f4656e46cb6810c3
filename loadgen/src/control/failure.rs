//! The engine's errors as failures of the trial.

use std::error::Error;

use redisbench_wire::plan::Target;
use redisbench_wire::{FailureReason, ShardFailure};

use crate::engine::{ConnectFailure, EngineError};
use crate::target;

pub fn of_engine(error: &EngineError) -> ShardFailure {
    let reason = match error {
        EngineError::BadPlan(_) => FailureReason::BadPlan,
        EngineError::Start(_) => FailureReason::Resources,
        EngineError::Unreachable | EngineError::Encode(_) => FailureReason::Internal,
    };
    target::failure(reason, &describe(error))
}

/// The failure that a lasting connect error becomes.
pub fn of_connecting(reason: ConnectFailure, message: &str, target: &Target) -> ShardFailure {
    let name = &target.name;
    let reason = match reason {
        ConnectFailure::HandshakeRefused => {
            return target::of_target(target, &target::refused_handshake(name, message));
        }
        ConnectFailure::NotSecure => {
            // Cut the cause, so that the advice after it survives the limit on the whole message.
            let said: String = message.chars().take(180).collect();
            let message = format!("target {name}: {said}: check {}.tls", target.field());
            return target::failure(FailureReason::TlsFailed, &message);
        }
        ConnectFailure::Resources => FailureReason::Resources,
        ConnectFailure::Refused | ConnectFailure::TimedOut | ConnectFailure::Broken => FailureReason::Unreachable,
    };
    target::failure(reason, &format!("target {name}: {message}"))
}

/// The error and its causes on one line.
pub fn describe(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use redisbench_wire::limits;
    use redisbench_wire::plan::TrialPlan;

    use super::*;

    #[test]
    fn causes_are_told() {
        let failure = of_engine(&EngineError::Start(std::io::Error::other("no more threads")));
        assert_eq!(failure.reason, FailureReason::Resources);
        assert_eq!(failure.message, "failed to start a worker: no more threads");
    }

    #[test]
    fn a_refused_connection_names_the_field_of_its_target() {
        let target = Target { index: 1, ..TrialPlan::basic("redis:6379").target };
        let told = |reason| of_connecting(reason, "10.0.0.1:6379: WRONGPASS invalid", &target).message;
        assert!(told(ConnectFailure::HandshakeRefused).ends_with("check spec.targets[1].auth.secretRef"));
        assert!(told(ConnectFailure::NotSecure).ends_with("check spec.targets[1].tls"));
    }

    #[test]
    fn long_messages_are_cut() {
        assert_eq!(target::failure(FailureReason::Internal, &"x".repeat(1000)).message.len(), limits::MESSAGE_BYTES);
    }
}
