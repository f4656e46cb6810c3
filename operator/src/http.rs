//! `/metrics`, `/healthz` and `/readyz`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// State of the HTTP server.
#[derive(Clone)]
pub struct Exposed {
    registry: Arc<Registry>,
    ready: Arc<AtomicBool>,
}

impl Exposed {
    /// Serves `registry`; not ready yet.
    pub fn new(registry: Registry) -> Self {
        Self { registry: Arc::new(registry), ready: Arc::default() }
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

async fn metrics(State(exposed): State<Exposed>) -> Response {
    let mut body = String::new();
    match text::encode(&mut body, &exposed.registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPENMETRICS)], body).into_response(),
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
