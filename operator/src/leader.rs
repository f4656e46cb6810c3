//! Leader election by a Lease: one operator conducts, the others stand by.
//!
//! The rules are those of client-go. A holder's claim is judged by the local monotonic clock, from the last observed change of the Lease,
//! so clock differences between machines do no harm. Every write has the resourceVersion that was read, so two candidates cannot both win.

use std::io;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::ObjectMeta;
use kube::{Api, Client};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::client::{self, CallError};
use crate::metrics::OperatorMetrics;

/// The time for which a claim is valid without renewal.
const CLAIM: Duration = Duration::from_secs(15);
const RENEWAL: Duration = Duration::from_secs(4);
/// A holder that could not renew for this long stops, well before another may take the Lease.
const GIVE_UP: Duration = Duration::from_secs(10);
/// The interval at which a candidate checks the Lease.
const LOOK: Duration = Duration::from_secs(2);
/// Timeout of one call to the API server.
const CALL: Duration = Duration::from_secs(5);

/// A candidate for, or holder of, the Lease.
pub struct Candidate {
    api: Api<Lease>,
    name: String,
    identity: String,
    seen: Option<Seen>,
    metrics: OperatorMetrics,
}

/// News of an [`Election`], in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The Lease can be read.
    Reached,
    Leading,
    /// Nothing follows.
    Lost(&'static str),
}

/// A candidate's campaign, apart from the other work of the process.
pub struct Election {
    news: mpsc::UnboundedReceiver<News>,
    release: Option<oneshot::Sender<()>>,
}

impl Election {
    /// Runs on a thread and runtime of its own: parsing, merging, and the tasks of thousands of shards cannot delay a renewal. `candidate`
    /// is called there, because a client's connections belong to the runtime that it was made in.
    ///
    /// # Errors
    /// If the thread or its runtime cannot be started.
    pub fn on_own_thread(
        candidate: impl FnOnce() -> Result<Candidate, kube::Error> + Send + 'static,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (election, campaign) = Self::of(candidate);
        std::thread::Builder::new().name("lease".to_owned()).spawn(move || runtime.block_on(campaign))?;
        Ok(election)
    }

    /// The election, and the future that runs it.
    pub(crate) fn of(
        candidate: impl FnOnce() -> Result<Candidate, kube::Error> + Send + 'static,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (tell, news) = mpsc::unbounded_channel();
        let (release, released) = oneshot::channel();
        let campaign = async move {
            let mut candidate = match candidate() {
                Ok(candidate) => candidate,
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, "failed to configure the Lease's client");
                    return;
                }
            };
            let why = tokio::select! {
                why = candidate.campaign(&tell) => why,
                // Without its owner, nothing is done under the Lease any more, so it is not renewed.
                asked = released => {
                    if asked.is_ok() {
                        candidate.release().await;
                    }
                    return;
                }
            };
            let _ = tell.send(News::Lost(why));
        };
        (Self { news, release: Some(release) }, campaign)
    }

    /// Waits for the next news.
    pub async fn next(&mut self) -> News {
        self.news.recv().await.unwrap_or(News::Lost("its thread ended"))
    }

    /// Ends the campaign and releases the Lease, so that a standby need not wait.
    pub async fn release(mut self) {
        if self.release.take().is_some_and(|release| release.send(()).is_ok()) {
            // Until the campaign has ended.
            while self.news.recv().await.is_some() {}
        }
    }
}

/// A Lease of another holder, and when this state was first observed.
struct Seen {
    resource_version: String,
    since: Instant,
}

enum Round {
    Ours,
    Others,
    /// Another candidate wrote between our read and our write; the next round shows the result.
    Raced,
}

impl Candidate {
    /// A candidate called `identity`. It reclaims its own Lease at once, so a restarted container does not wait for its predecessor's claim
    /// to expire.
    pub fn new(client: Client, namespace: &str, name: &str, identity: &str, metrics: OperatorMetrics) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
            identity: identity.to_owned(),
            seen: None,
            metrics,
        }
    }

    /// Until the Lease is lost. Returns the reason.
    async fn campaign(&mut self, tell: &mpsc::UnboundedSender<News>) -> &'static str {
        self.reach().await;
        let _ = tell.send(News::Reached);
        self.acquire().await;
        let _ = tell.send(News::Leading);
        self.keep().await
    }

    async fn reach(&self) {
        while let Err(error) = timed(self.api.get_opt(&self.name)).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "failed to read the Lease");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until we hold the Lease, without a limit.
    async fn acquire(&mut self) {
        loop {
            match self.round().await {
                Ok(Round::Ours) => {
                    tracing::info!(lease = self.name, identity = self.identity, "leading");
                    return;
                }
                Ok(Round::Others | Round::Raced) => {}
                Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "election round failed"),
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Renews until renewals have failed for [`GIVE_UP`], or another candidate holds the Lease. Returns the reason.
    async fn keep(&mut self) -> &'static str {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(RENEWAL).await;
            let deadline = renewed + GIVE_UP;
            loop {
                let tried = Instant::now();
                match timeout_at(deadline, self.round()).await {
                    Ok(Ok(Round::Ours)) => {
                        renewed = tried;
                        break;
                    }
                    Ok(Ok(Round::Others)) => return "another operator holds the Lease",
                    Ok(Ok(Round::Raced)) => {}
                    Ok(Err(error)) => {
                        tracing::warn!(error = &error as &dyn std::error::Error, "failed to renew the Lease");
                    }
                    Err(_) => return "failed to renew the Lease in time",
                }
                if timeout_at(deadline, tokio::time::sleep(LOOK)).await.is_err() {
                    return "failed to renew the Lease in time";
                }
            }
        }
    }

    /// Releases the Lease, so that a standby need not wait.
    async fn release(&self) {
        let released = timed(async {
            let Some(mut lease) = self.api.get_opt(&self.name).await? else { return Ok(()) };
            if holder(&lease) == Some(&self.identity) {
                let spec = lease.spec.get_or_insert_default();
                spec.holder_identity = None;
                spec.lease_duration_seconds = Some(1);
                self.api.replace(&self.name, &client::post(), &lease).await?;
            }
            Ok(())
        });
        if let Err(error) = released.await {
            tracing::warn!(error = &error as &dyn std::error::Error, "failed to release the Lease");
        }
    }

    /// One round of the election, which is counted.
    async fn round(&mut self) -> Result<Round, CallError> {
        let result = self.try_round().await;
        self.metrics.lease_round(match result {
            Ok(Round::Ours) => "held",
            Ok(Round::Others) => "other",
            Ok(Round::Raced) => "raced",
            Err(_) => "failed",
        });
        result
    }

    async fn try_round(&mut self) -> Result<Round, CallError> {
        let Some(lease) = timed(self.api.get_opt(&self.name)).await? else {
            let lease = Lease {
                metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
                spec: Some(self.claim(None)),
            };
            return won(timed(self.api.create(&client::post(), &lease)).await);
        };
        if !self.may_take(&lease, Instant::now()) {
            return Ok(Round::Others);
        }
        let claimed = Lease { spec: Some(self.claim(lease.spec.as_ref())), ..lease };
        won(timed(self.api.replace(&self.name, &client::post(), &claimed)).await)
    }

    /// Returns whether the Lease is free, ours, or expired.
    fn may_take(&mut self, lease: &Lease, now: Instant) -> bool {
        if holder(lease).is_none_or(|holder| *holder == self.identity) {
            return true;
        }
        let resource_version = lease.metadata.resource_version.clone().unwrap_or_default();
        match &self.seen {
            Some(seen) if seen.resource_version == resource_version => {
                let promised = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
                now.duration_since(seen.since) >= Duration::from_secs(u64::try_from(promised).unwrap_or(0))
            }
            _ => {
                self.seen = Some(Seen { resource_version, since: now });
                false
            }
        }
    }

    fn claim(&self, former: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        let same = former.filter(|spec| spec.holder_identity.as_deref() == Some(self.identity.as_str()));
        let transitions = former.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(CLAIM.as_secs()).ok(),
            acquire_time: same.and_then(|spec| spec.acquire_time.clone()).or_else(|| Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(if same.is_some() { transitions } else { transitions.saturating_add(1) }),
            ..LeaseSpec::default()
        }
    }
}

fn holder(lease: &Lease) -> Option<&String> {
    lease.spec.as_ref()?.holder_identity.as_ref().filter(|holder| !holder.is_empty())
}

fn won(written: Result<Lease, CallError>) -> Result<Round, CallError> {
    match written {
        Ok(_) => Ok(Round::Ours),
        Err(error) if error.code() == Some(409) => Ok(Round::Raced),
        Err(error) => Err(error),
    }
}

async fn timed<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, CallError> {
    client::call("call the API server about the Lease", CALL, call).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FakeServer, Trouble};

    const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/system/leases/operator";

    fn candidate(server: &FakeServer, identity: &str) -> Candidate {
        Candidate::new(server.client(), "system", "operator", identity, OperatorMetrics::default())
    }

    fn held_by(server: &FakeServer) -> Option<String> {
        server.get(PATH)?["spec"]["holderIdentity"].as_str().map(str::to_owned)
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_wins_and_the_second_waits_for_the_claim_to_lapse() {
        let server = FakeServer::default();
        candidate(&server, "a").acquire().await;
        assert_eq!(held_by(&server).as_deref(), Some("a"));
        let before = Instant::now();
        candidate(&server, "b").acquire().await;
        assert!(before.elapsed() >= CLAIM, "{:?}", before.elapsed());
        let lease = server.get(PATH).unwrap();
        assert_eq!(
            (lease["spec"]["holderIdentity"].as_str(), &lease["spec"]["leaseTransitions"]),
            (Some("b"), &2.into())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewed_claim_stands() {
        let server = FakeServer::default();
        let mut holder = candidate(&server, "a");
        holder.acquire().await;
        let mut other = candidate(&server, "b");
        let acquired = tokio::time::timeout(CLAIM * 4, async { tokio::join!(holder.keep(), other.acquire()) });
        assert!(acquired.await.is_err());
        assert_eq!(held_by(&server).as_deref(), Some("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_restarted_holder_and_a_released_lease_need_no_wait() {
        let server = FakeServer::default();
        candidate(&server, "a").acquire().await;
        let before = Instant::now();
        candidate(&server, "a").acquire().await;
        candidate(&server, "a").release().await;
        assert_eq!(held_by(&server), None);
        candidate(&server, "b").acquire().await;
        assert_eq!(before.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_cannot_renew_stops_before_its_claim_lapses() {
        for trouble in Trouble::ALL {
            let server = FakeServer::default();
            let mut holder = candidate(&server, "a");
            holder.acquire().await;
            server.set_trouble(Some(trouble));
            let before = Instant::now();
            assert_eq!(holder.keep().await, "failed to renew the Lease in time", "{trouble:?}");
            assert!(before.elapsed() < CLAIM, "{trouble:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_whose_lease_was_taken_stops() {
        let server = FakeServer::default();
        let mut holder = candidate(&server, "a");
        holder.acquire().await;
        let mut lease = server.get(PATH).unwrap();
        lease["spec"]["holderIdentity"] = "b".into();
        server.put(PATH, lease);
        assert_eq!(holder.keep().await, "another operator holds the Lease");
    }

    /// The runtime of the test is blocked, as by a long merge, until the Lease is renewed.
    #[tokio::test]
    async fn renewals_do_not_wait_for_the_rest_of_the_process() {
        let server = FakeServer::default();
        let own = server.clone();
        let mut election = Election::on_own_thread(move || Ok(candidate(&own, "a"))).unwrap();
        assert_eq!((election.next().await, election.next().await), (News::Reached, News::Leading));
        let renewed = || server.get(PATH).unwrap()["spec"]["renewTime"].clone();
        let before = renewed();
        // Without an await: nothing else on this thread runs.
        let blocked = std::time::Instant::now();
        while renewed() == before {
            assert!(blocked.elapsed() < CLAIM, "not renewed");
            std::thread::park_timeout(Duration::from_millis(10));
        }
        election.release().await;
        assert_eq!(held_by(&server), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_election_renews_no_more() {
        let server = FakeServer::default();
        let own = server.clone();
        let (mut election, campaign) = Election::of(move || Ok(candidate(&own, "a")));
        let campaign = tokio::spawn(campaign);
        assert_eq!((election.next().await, election.next().await), (News::Reached, News::Leading));
        drop(election);
        tokio::time::timeout(RENEWAL, campaign).await.unwrap().unwrap();
        assert_eq!(held_by(&server).as_deref(), Some("a"), "its claim lapses");
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_holder_gives_the_lease_back() {
        let server = FakeServer::default();
        candidate(&server, "a").acquire().await;
        candidate(&server, "b").release().await;
        assert_eq!(held_by(&server).as_deref(), Some("a"));
    }
}
