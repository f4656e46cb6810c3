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
    let watched = watch(api, name, |seen| {
        let found = holds(seen.as_ref());
        last = seen;
        found
    });
    if tokio::time::timeout(limit, watched).await.is_ok() {
        return Ok(last);
    }
    let last = match last {
        Some(object) => serde_json::to_string(&object)?,
        None => "absent".to_owned(),
    };
    bail!("{name} was not {what} within {limit:?}; last seen: {last}")
}

/// Watches one object until `seen` returns true for one of its states.
pub(crate) async fn watch<K>(api: Api<K>, name: &str, mut seen: impl FnMut(Option<K>) -> bool)
where
    K: Resource + Clone + Debug + Send + DeserializeOwned + 'static,
{
    let mut changes = std::pin::pin!(watch_object(api, name));
    loop {
        if let Ok(Some(object)) = changes.try_next().await {
            if seen(object) {
                return;
            }
        } else {
            // Start a new watch after an error. While the API server is unavailable, every watch fails at once. Without a pause, retries
            // would take CPU time from its start.
            tokio::time::sleep(Duration::from_millis(200)).await; // the pause between two watches that fail at once
        }
    }
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
