//! Kubernetes events.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder};

use crate::controller::decision::Notice;

/// The longest note that the API accepts.
const NOTE_BYTES: usize = 1024;
const CALL: Duration = Duration::from_secs(5);

/// Publishes `notices` about `benchmark`. Failures are only logged, because the status has the same information.
pub async fn publish(recorder: &Recorder, benchmark: &ObjectReference, notices: &[Notice]) {
    for notice in notices {
        let event = Event {
            type_: if notice.warning { EventType::Warning } else { EventType::Normal },
            reason: notice.reason.clone(),
            note: Some(cut(&notice.message)),
            action: "Reconcile".into(),
            secondary: None,
        };
        match tokio::time::timeout(CALL, recorder.publish(&event, benchmark)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "failed to publish an event");
            }
            Err(_) => tracing::warn!("failed to publish an event in time"),
        }
    }
}

fn cut(message: &str) -> String {
    let mut end = message.len().min(NOTE_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_notes_are_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        let long = "é".repeat(600) + "x";
        assert_eq!(cut(&long).len(), 1024);
        assert_eq!(cut(&format!("x{long}")).len(), 1023);
    }
}
