//! Limits how often a storm of events reconciles a benchmark.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use kube::runtime::controller::ReconcileRequest;
use kube::runtime::reflector::ObjectRef;
use tokio::time::{Instant, sleep_until};

use super::context::Guarded;

/// Passes on the first request for a benchmark at once, and later ones at most once per `interval`. Requests within an interval become one
/// at its end, so the last event of a storm is never lost.
pub(super) fn throttled<E>(
    requests: impl Stream<Item = Result<ReconcileRequest<Guarded>, E>> + Unpin,
    interval: Duration,
) -> impl Stream<Item = Result<ReconcileRequest<Guarded>, E>> {
    let throttle = Throttle { requests, interval, ends: VecDeque::new(), again: HashMap::new() };
    stream::unfold(throttle, async |mut throttle| Some((throttle.next_item().await?, throttle)))
}

struct Throttle<S> {
    requests: S,
    interval: Duration,
    /// The ends of the benchmarks' intervals, in this order: all intervals have the same length.
    ends: VecDeque<(Instant, ObjectRef<Guarded>)>,
    /// True if a benchmark was requested again within its interval.
    again: HashMap<ObjectRef<Guarded>, bool>,
}

impl<S, E> Throttle<S>
where
    S: Stream<Item = Result<ReconcileRequest<Guarded>, E>> + Unpin,
{
    async fn next_item(&mut self) -> Option<Result<ReconcileRequest<Guarded>, E>> {
        loop {
            let end = self.ends.front().map(|(end, _)| *end);
            let request = tokio::select! {
                // Requests that arrive without a pause must not delay those that wait.
                biased;
                () = until(end) => self.end_interval(),
                item = self.requests.next() => match item? {
                    Ok(request) => self.admit(request),
                    Err(error) => return Some(Err(error)),
                },
            };
            if let Some(request) = request {
                return Some(Ok(request));
            }
        }
    }

    /// Returns `request`, or keeps it until the end of its benchmark's interval.
    fn admit(&mut self, request: ReconcileRequest<Guarded>) -> Option<ReconcileRequest<Guarded>> {
        if let Some(again) = self.again.get_mut(&request.obj_ref) {
            *again = true;
            return None;
        }
        self.begin_interval(request.obj_ref.clone());
        Some(request)
    }

    fn begin_interval(&mut self, benchmark: ObjectRef<Guarded>) {
        self.ends.push_back((Instant::now() + self.interval, benchmark.clone()));
        self.again.insert(benchmark, false);
    }

    /// Ends the oldest interval. Returns the request that waited for it.
    fn end_interval(&mut self) -> Option<ReconcileRequest<Guarded>> {
        let (_, benchmark) = self.ends.pop_front()?;
        if self.again.remove(&benchmark) != Some(true) {
            return None;
        }
        self.begin_interval(benchmark.clone());
        Some(benchmark.into())
    }
}

/// Waits forever if there is no time.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::channel::mpsc;
    use tokio::time::{sleep, timeout};

    use super::*;

    const INTERVAL: Duration = Duration::from_millis(200);

    #[expect(clippy::unnecessary_wraps, reason = "an item of the stream")]
    fn request(name: &str) -> Result<ReconcileRequest<Guarded>, &'static str> {
        Ok(ReconcileRequest::from(ObjectRef::<Guarded>::new(name).within("perf")))
    }

    #[tokio::test(start_paused = true)]
    async fn a_storm_is_served_at_once_then_once_per_interval_and_after_its_end() {
        let (send, requests) = mpsc::unbounded();
        let began = Instant::now();
        let storm = tokio::spawn(async move {
            while began.elapsed() < Duration::from_millis(450) {
                send.unbounded_send(request("cart")).unwrap();
                sleep(Duration::from_millis(1)).await;
            }
            // Keeps the stream open.
            (send, Instant::now())
        });
        let mut requests = pin!(throttled(requests, INTERVAL));
        let mut served = Vec::new();
        while let Ok(item) = timeout(2 * INTERVAL, requests.next()).await {
            assert_eq!(item, Some(request("cart")));
            served.push(Instant::now());
        }
        let (_send, ended) = storm.await.unwrap();
        assert_eq!(served.len(), 4);
        assert_eq!(served[0], began);
        assert!(served.windows(2).all(|pair| pair[1] - pair[0] >= INTERVAL), "{served:?}");
        assert!(served[3] >= ended, "{served:?}, {ended:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn benchmarks_do_not_delay_each_other() {
        let (send, requests) = mpsc::unbounded();
        let mut requests = pin!(throttled(requests, INTERVAL));
        let began = Instant::now();
        for item in [request("a"), request("a"), request("b"), Err("broken")] {
            send.unbounded_send(item).unwrap();
        }
        for item in [request("a"), request("b"), Err("broken")] {
            assert_eq!(requests.next().await, Some(item));
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(requests.next().await, Some(request("a")));
        assert!(began.elapsed() >= INTERVAL);
        // After an interval without a request, the next one is served at once.
        sleep(2 * INTERVAL).await;
        let began = Instant::now();
        send.unbounded_send(request("a")).unwrap();
        assert_eq!(requests.next().await, Some(request("a")));
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
