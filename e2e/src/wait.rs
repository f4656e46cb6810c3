//! Waits for conditions. Each wait has a timeout, and an error with the last observed state.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, bail};
use futures::TryStreamExt;
use k8s_openapi::serde::{Serialize, de::DeserializeOwned};
use kube::runtime::watcher::watch_object;
use kube::{Api, Resource};

/// Watches one object until `holds`, and returns it; `None` means that it does not exist.
pub async fn object<K>(
    api: Api<K>,
    name: &str,
    what: &str,
    limit: Duration,
    mut holds: impl FnMut(Option<&K>) -> bool,
) -> Result<Option<K>>
where
    K: Resource + Clone + Debug + Send + Serialize + DeserializeOwned + 'static,
{
    let mut last = None;
    let watched = async {
        let mut changes = std::pin::pin!(watch_object(api, name));
        loop {
            // Start a new watch after an error.
            let Ok(Some(seen)) = changes.try_next().await else {
                before_another_watch().await;
                continue;
            };
            if holds(seen.as_ref()) {
                return seen;
            }
            last = seen;
        }
    };
    if let Ok(found) = tokio::time::timeout(limit, watched).await {
        return Ok(found);
    }
    let last = match last {
        Some(object) => serde_json::to_string(&object)?,
        None => "absent".to_owned(),
    };
    bail!("{name} was not {what} within {limit:?}; last seen: {last}")
}

/// While the API server is unavailable, every watch fails at once. Without a pause, retries would take CPU time from its start.
pub(crate) async fn before_another_watch() {
    tokio::time::sleep(Duration::from_millis(200)).await;
}

/// Calls `ask` every half second until it returns `Some`, for conditions that no watch reports.
pub async fn answer<T, F>(what: &str, limit: Duration, mut ask: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<Option<T>>>,
{
    let mut failure = None;
    let mut ticks = tokio::time::interval(Duration::from_millis(500));
    let asked = async {
        loop {
            ticks.tick().await;
            match ask().await {
                Ok(Some(value)) => return value,
                Ok(None) => {}
                Err(error) => failure = Some(error),
            }
        }
    };
    if let Ok(value) = tokio::time::timeout(limit, asked).await {
        return Ok(value);
    }
    match failure {
        Some(error) => bail!("not {what} within {limit:?}: {error:#}"),
        None => bail!("not {what} within {limit:?}"),
    }
}
