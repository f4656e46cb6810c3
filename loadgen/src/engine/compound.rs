//! Replies to compound requests: transactions, and WAIT after a request. All replies are read before the request has its
//! outcome, so nothing is left on the connection for the next request.

use super::connections::Connection;
use super::pipeline::{Class, Request};
use super::progress::{Error, Part, Progress};
use crate::resp::Reply;
use crate::workload::Workload;

/// The outcome of a compound request.
#[derive(Debug)]
pub(super) struct CompoundOutcome {
    pub request: Request,
    /// The time of its send.
    pub sent: u64,
    /// That of its command, or any other value for a transaction.
    pub reply: Reply,
    pub error: Option<Error>,
    /// Fewer replicas than WAIT asked for acknowledged the write.
    pub under_replicated: bool,
}

/// Takes a noted reply of a connection. `None` if it is the outcome of a single command. Otherwise the request's outcome, if this was its
/// last reply. Fails if the reply violates the protocol.
#[cold]
pub(super) fn take(
    connection: &mut Connection,
    trial: &Workload,
    reply: Reply,
) -> Option<Result<Option<CompoundOutcome>, &'static str>> {
    let (flight, requests) = connection.pipeline.oldest()?;
    // Preload commands are single; their class is decided by the send.
    let request = flight.decide(*requests.first()?);
    let compound = trial.compound(request.operation).filter(|_| is_of_trial(&request))?;
    let progress = connection.progress.get_or_insert_default();
    let decoder = &connection.decoder;
    let error = if reply == Reply::Error { decoder.error_text() } else { &[] };
    let part = Part { reply, note: decoder.note(), error, nested: decoder.nested_error() };
    if let Err(strange) = progress.take(compound, &part) {
        return Some(Err(strange));
    }
    if progress.seen < compound.replies() {
        return Some(Ok(None));
    }
    let Progress { error, nil, acknowledged, .. } = std::mem::take(&mut **progress);
    let (request, sent) = connection.pipeline.answered()?;
    let under_replicated = acknowledged.zip(compound.replicas).is_some_and(|(found, wanted)| found < wanted.into());
    let reply = if nil { Reply::Nil } else { Reply::Value };
    Some(Ok(Some(CompoundOutcome { request, sent, reply, error, under_replicated })))
}

/// Returns whether a command is a request of a trial, including an aborted one.
fn is_of_trial(request: &Request) -> bool {
    matches!(request.class, Class::Undecided | Class::Warmup | Class::Measured | Class::OrphanOfTrial)
}
