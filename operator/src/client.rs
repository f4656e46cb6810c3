//! The client of the API server, a call with a timeout, and the operator's name in audit logs, API priority and managed fields.

use std::time::Duration;

use axum::http::HeaderValue;
use axum::http::header::USER_AGENT;
use kube::api::{PatchParams, PostParams};
use kube::core::Status;
use kube::{Client, Config, Error};

/// The field manager of all writes.
pub(crate) const FIELD_MANAGER: &str = "redisbench-operator";

const AGENT: &str = concat!("redisbench-operator/", env!("CARGO_PKG_VERSION"));

pub(crate) fn client(mut config: Config) -> Result<Client, Error> {
    config.headers.push((USER_AGENT, HeaderValue::from_static(AGENT)));
    Client::try_from(config)
}

/// Parameters of creates and replaces.
pub(crate) fn post() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

/// Parameters of patches.
pub(crate) fn patch() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// Why a call to the API server failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The API server refused, or could not be reached.
    #[error("failed to {what}")]
    Api {
        what: String,
        #[source]
        source: Box<Error>,
    },
    #[error("failed to {what}: the API server timed out after {} s", .limit.as_secs())]
    Timeout { what: String, limit: Duration },
}

impl CallError {
    /// The API server's refusal.
    pub fn refusal(&self) -> Option<&Status> {
        let Self::Api { source, .. } = self else { return None };
        let Error::Api(status) = source.as_ref() else { return None };
        Some(status)
    }

    /// The HTTP status of the API server's refusal.
    pub fn code(&self) -> Option<u16> {
        self.refusal().map(|status| status.code)
    }
}

/// The result of `call`, which may take `limit`. `what` completes "failed to" in the error's message.
pub(crate) async fn call<T>(
    what: &str,
    limit: Duration,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(limit, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(CallError::Api { what: what.to_owned(), source: Box::new(source) }),
        Err(_) => Err(CallError::Timeout { what: what.to_owned(), limit }),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::Api;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn requests_name_the_operator_and_its_version() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let client = client(Config::new(url.parse().unwrap())).unwrap();
        let heard = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            String::from_utf8(request).unwrap().to_ascii_lowercase()
        };
        let pods: Api<Pod> = Api::namespaced(client, "perf");
        let (request, _) = tokio::join!(heard, pods.get("a"));
        let agent = format!("\r\nuser-agent: {AGENT}\r\n");
        assert!(request.contains(&agent), "{request}");
    }
}
