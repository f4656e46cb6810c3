//! `/metrics`, `/healthz` and `/readyz`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::Mutex;

use crate::metrics::format::Format;
use crate::scrape::Metrics;

#[derive(Clone)]
pub struct Exposed {
    metrics: Metrics,
    /// Held during a scrape: one at a time bounds their memory.
    scrape: Arc<Mutex<()>>,
    ready: Arc<AtomicBool>,
}

impl Exposed {
    /// Serves `metrics`; not ready yet.
    pub fn new(metrics: Metrics) -> Self {
        Self { metrics, scrape: Arc::default(), ready: Arc::default() }
    }

    /// Makes `/readyz` succeed, because the API server was reached. A standby is ready too, because it can take over. If only the leader
    /// were ready, no rolling update would ever finish.
    pub fn set_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    pub fn router(self) -> Router {
        Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get(async || "ok\n"))
            .route("/readyz", get(readiness))
            .with_state(self)
    }
}

/// Serves forever.
///
/// # Errors
/// If the listener fails.
pub async fn serve(listener: TcpListener, exposed: Exposed) -> std::io::Result<()> {
    axum::serve(listener, exposed.router()).await
}

async fn metrics(State(Exposed { metrics, scrape, .. }): State<Exposed>, headers: HeaderMap) -> Response {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let format = Format::accepted(accepted);
    let turn = scrape.lock_owned().await;
    // Of many benchmarks it takes a while, and no other task may wait for it.
    let encode = move || {
        let _turn = turn;
        metrics.scrape(format)
    };
    match tokio::task::spawn_blocking(encode).await {
        Ok(body) => ([(header::CONTENT_TYPE, format.content_type())], body).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "failed to encode the metrics\n").into_response(),
    }
}

async fn readiness(State(exposed): State<Exposed>) -> Response {
    if exposed.ready.load(Ordering::Relaxed) {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not connected to the Kubernetes API server yet\n").into_response()
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use tower::ServiceExt as _;

    use super::*;
    use crate::metrics::OperatorMetrics;
    use crate::tasks::TaskRegistry;

    #[tokio::test]
    async fn metrics_are_served_in_the_preferred_form() {
        let metrics = Metrics::new(OperatorMetrics::default(), Vec::new(), TaskRegistry::default(), 0);
        let router = Exposed::new(metrics).router();
        for (accept, wanted) in [
            ("*/*", "text/plain"),
            ("application/openmetrics-text;version=1.0.0", "application/openmetrics-text"),
            ("application/vnd.google.protobuf;encoding=delimited", "application/vnd.google.protobuf"),
        ] {
            let request = Request::get("/metrics").header(header::ACCEPT, accept).body(Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            let form = response.headers()[header::CONTENT_TYPE].to_str().unwrap();
            assert!(response.status().is_success() && form.starts_with(wanted), "{accept}: {form}");
        }
    }
}
