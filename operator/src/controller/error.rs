//! Why a reconciliation failed, for its metric, its retry, and the condition Stalled.

use std::time::Duration;

use redisbench_benchmark::credential::CredentialError;
use redisbench_benchmark::report::conditions::reason;
use tokio::task::JoinError;

use super::apply::ApplyError;
use super::observe::NotFilled;
use crate::telemetry::chain;

/// Timeout of one reconciliation.
pub(super) const RECONCILE: Duration = Duration::from_secs(120);

#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    #[error(transparent)]
    NotFilled(#[from] NotFilled),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error("failed to create the run's credential")]
    Credential(#[from] CredentialError),
    #[error("reconciliation timed out after {} s", RECONCILE.as_secs())]
    Timeout,
    /// A bug in the operator.
    #[error("reconciliation panicked; see the operator's log")]
    Panicked(#[from] JoinError),
}

impl ReconcileError {
    /// The error class for metrics: one of a few values.
    pub(super) fn class(&self) -> &'static str {
        match self {
            Self::NotFilled(_) => "cache",
            Self::Panicked(_) => "panic",
            Self::Credential(_) => "credential",
            Self::Timeout | Self::Apply(ApplyError::Timeout { .. }) => "timeout",
            Self::Apply(ApplyError::NameTaken { .. }) => "name_taken",
            Self::Apply(ApplyError::StillDeleting { .. }) => "still_deleting",
            Self::Apply(ApplyError::Superseded { .. }) => "conflict",
            Self::Apply(ApplyError::Json(_)) => "internal",
            Self::Apply(error @ ApplyError::Api { .. }) => match error.code() {
                Some(409) => "conflict",
                Some(403) => "forbidden",
                Some(429) => "throttled",
                Some(400..=499) => "refused",
                Some(_) => "server",
                None => "connection",
            },
        }
    }

    /// Reason and message for the condition Stalled, if only a person can resolve the failure.
    pub(super) fn for_user(&self) -> Option<(&'static str, String)> {
        let why = match self.class() {
            "name_taken" => reason::NAME_TAKEN,
            "forbidden" => "Forbidden",
            "refused" => "Refused",
            _ => return None,
        };
        Some((why, chain(self)))
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Apply(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Reason and message for the condition Stalled, if the failure is temporary but persists.
    pub(super) fn lasting_failure(&self) -> Option<(&'static str, String)> {
        matches!(self.class(), "throttled" | "server" | "connection" | "timeout")
            .then(|| (reason::API_SERVER_FAILING, chain(self)))
    }
}
