//! Why a reconciliation failed, for its metric, its retry, and the condition Stalled.

use std::time::Duration;

use redisbench_benchmark::credential::CredentialError;
use redisbench_benchmark::report::conditions::reason;
use tokio::task::JoinError;

use super::apply::ApplyError;
use super::observe::NotFilled;
use crate::client::CallError;
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

/// Classes of [`ReconcileError`], by what resolves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorClass {
    /// The caches are not filled.
    Cache,
    /// Another client wrote first.
    Conflict,
    /// No reply from the API server.
    Connection,
    Credential,
    /// The operator lacks a right.
    Forbidden,
    /// A bug in the operator.
    Internal,
    NameTaken,
    Panic,
    /// The API server refused the request.
    Refused,
    /// The API server failed.
    Server,
    StillDeleting,
    Throttled,
    Timeout,
}

impl ErrorClass {
    /// The label in metrics.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::Conflict => "conflict",
            Self::Connection => "connection",
            Self::Credential => "credential",
            Self::Forbidden => "forbidden",
            Self::Internal => "internal",
            Self::NameTaken => "name_taken",
            Self::Panic => "panic",
            Self::Refused => "refused",
            Self::Server => "server",
            Self::StillDeleting => "still_deleting",
            Self::Throttled => "throttled",
            Self::Timeout => "timeout",
        }
    }
}

impl ReconcileError {
    pub(super) fn class(&self) -> ErrorClass {
        match self {
            Self::NotFilled(_) => ErrorClass::Cache,
            Self::Panicked(_) => ErrorClass::Panic,
            Self::Credential(_) => ErrorClass::Credential,
            Self::Timeout | Self::Apply(ApplyError::Call(CallError::Timeout { .. })) => ErrorClass::Timeout,
            Self::Apply(ApplyError::NameTaken { .. }) => ErrorClass::NameTaken,
            Self::Apply(ApplyError::StillDeleting { .. }) => ErrorClass::StillDeleting,
            Self::Apply(ApplyError::Superseded { .. }) => ErrorClass::Conflict,
            Self::Apply(ApplyError::Json(_)) => ErrorClass::Internal,
            Self::Apply(ApplyError::Call(error @ CallError::Api { .. })) => match error.code() {
                Some(409) => ErrorClass::Conflict,
                Some(403) => ErrorClass::Forbidden,
                Some(429) => ErrorClass::Throttled,
                Some(400..=499) => ErrorClass::Refused,
                Some(_) => ErrorClass::Server,
                None => ErrorClass::Connection,
            },
        }
    }

    /// Reason and message for the condition Stalled, if only a person can resolve the failure.
    pub(super) fn for_user(&self) -> Option<(&'static str, String)> {
        let why = match self.class() {
            ErrorClass::NameTaken => reason::NAME_TAKEN,
            ErrorClass::Forbidden => "Forbidden",
            ErrorClass::Refused => "Refused",
            ErrorClass::Cache
            | ErrorClass::Conflict
            | ErrorClass::Connection
            | ErrorClass::Credential
            | ErrorClass::Internal
            | ErrorClass::Panic
            | ErrorClass::Server
            | ErrorClass::StillDeleting
            | ErrorClass::Throttled
            | ErrorClass::Timeout => return None,
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
        match self.class() {
            ErrorClass::Connection | ErrorClass::Server | ErrorClass::Throttled | ErrorClass::Timeout => {
                Some((reason::API_SERVER_FAILING, chain(self)))
            }
            ErrorClass::Cache
            | ErrorClass::Conflict
            | ErrorClass::Credential
            | ErrorClass::Forbidden
            | ErrorClass::Internal
            | ErrorClass::NameTaken
            | ErrorClass::Panic
            | ErrorClass::Refused
            | ErrorClass::StillDeleting => None,
        }
    }
}
