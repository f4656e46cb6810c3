//! The API server is unreachable, slow or failing in every phase. The same conducting task continues, the run does not restart, and the
//! status catches up.

use redisbench_benchmark::api::status::VerdictValue;
use redisbench_benchmark::conductor::{ConductProgress, ConductStage, ShardCounts};
use redisbench_benchmark::report::Finished;
use tokio::time::{Instant, advance};

use super::*;
use crate::tasks::ARTIFACTS_LIMIT;
use crate::testing::Trouble;

const CONFIG_MAP: &str = "/api/v1/namespaces/perf/configmaps/cart-result-0";

fn progress(stage: ConductStage) -> ConductProgress {
    let started = stage != ConductStage::Preparing;
    ConductProgress {
        stage,
        attempt: u32::from(started),
        start_at_unix_nanoseconds: started.then_some(1_767_229_200_000_000_000),
        shards: ShardCounts { desired: 2, armed: 2, ..ShardCounts::default() },
        ..ConductProgress::default()
    }
}

fn finished() -> Arc<Finished> {
    Arc::new(crate::testing::finished(0, 1, VerdictValue::Valid))
}

impl World {
    /// A world in which this process conducts the run of benchmark `cart`.
    fn conducting(
        stage: ConductStage,
        change: Value,
    ) -> (Self, Arc<ConductTask>, tokio::sync::watch::Sender<ConductProgress>) {
        let mut world = Self::new();
        world.jobs.apply_watcher_event(&Event::Apply(serde_json::from_value(job()).unwrap()));
        world.server.put(&format!("{JOB}/cart-89abcdef"), job());
        let phase = if stage == ConductStage::Preparing { "Preparing" } else { "Running" };
        world.put(benchmark(change), Some(json!({"phase": phase})));
        let tasks = &world.context.shared.tasks;
        let publish = tasks.put_running(run(), 1, progress(stage));
        let conduct = tasks.get("u-1").unwrap();
        (world, conduct, publish)
    }

    /// Reconciles repeatedly for `time`, as progress would trigger it. Returns the failures.
    async fn reconcile_for(&self, time: Duration) -> Vec<&'static str> {
        let until = Instant::now() + time;
        let mut failures = Vec::new();
        while Instant::now() < until {
            if let Err(error) = self.reconcile().await {
                failures.push(error.class().as_str());
                self.retry(&error);
            }
            advance(Duration::from_secs(1)).await;
        }
        failures
    }

    /// The paths of all objects except events.
    fn objects(&self) -> Vec<String> {
        self.server.paths().into_iter().filter(|path| !path.contains("/events/")).collect()
    }

    fn phase(&self) -> Value {
        self.status()["phase"].clone()
    }

    fn is_conducted_by(&self, conduct: &Arc<ConductTask>) -> bool {
        self.conduct().is_some_and(|present| Arc::ptr_eq(&present, conduct))
    }
}

const OUTAGE: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn a_run_begins_when_its_identity_can_be_written() {
    for trouble in Trouble::ALL {
        let world = World::new();
        world.put(benchmark(json!({})), None);
        world.server.set_trouble(Some(trouble));
        assert!(!world.reconcile_for(OUTAGE).await.is_empty(), "{trouble:?}");
        assert!(world.conduct().is_none(), "{trouble:?}: no task conducts a run that is not recorded");
        assert_eq!(world.objects(), [CART]);
        world.server.set_trouble(None);
        world.reconcile().await.unwrap();
        // Benchmark, Secret, Job and PodDisruptionBudget.
        assert_eq!((world.phase(), world.objects().len()), (json!("Preparing"), 4), "{trouble:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn children_are_made_when_they_can_be() {
    for trouble in Trouble::ALL {
        let world = World::new();
        world.put(benchmark(json!({})), None);
        world.reconcile().await.unwrap();
        let conduct = world.conduct().unwrap();
        // As if the server failed right after the status was written.
        let children: Vec<String> = world.objects().into_iter().filter(|path| path != CART).collect();
        for path in &children {
            world.server.remove(path);
        }
        world.server.set_trouble(Some(trouble));
        assert!(!world.reconcile_for(OUTAGE).await.is_empty(), "{trouble:?}");
        assert!(world.is_conducted_by(&conduct));
        world.server.set_trouble(None);
        world.reconcile().await.unwrap();
        assert_eq!(world.objects().len(), 4, "{trouble:?}");
        assert!(world.is_conducted_by(&conduct));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_and_its_status_catches_up() {
    for trouble in Trouble::ALL {
        let (world, conduct, publish) = World::conducting(ConductStage::Preparing, json!({}));
        world.reconcile().await.unwrap();
        world.server.take_writes();
        world.server.set_trouble(Some(trouble));
        publish.send_replace(progress(ConductStage::Running));
        assert!(!world.reconcile_for(OUTAGE).await.is_empty(), "{trouble:?}");
        publish.send_replace(progress(ConductStage::Collecting));
        world.reconcile_for(OUTAGE).await;
        assert!(world.is_conducted_by(&conduct), "{trouble:?}");
        world.server.set_trouble(None);
        world.server.take_writes();
        world.reconcile().await.unwrap();
        assert_eq!((world.phase(), world.writes()), (json!("Collecting"), vec![patch_status()]), "{trouble:?}");
        assert_eq!(world.status()["conductorEpoch"], 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_successor_takes_over_when_its_epoch_can_be_written() {
    for trouble in Trouble::ALL {
        let world = World::new();
        let trial = json!({"index": 0, "of": 1, "attempt": 1, "startAt": jiff::Timestamp::now().to_string()});
        world.put(benchmark(json!({})), Some(json!({"phase": "Running", "trial": trial})));
        world.server.set_trouble(Some(trouble));
        assert!(!world.reconcile_for(OUTAGE).await.is_empty(), "{trouble:?}");
        assert!(world.conduct().is_none(), "{trouble:?}");
        world.server.set_trouble(None);
        world.reconcile().await.unwrap();
        let conduct = world.conduct().unwrap();
        assert_eq!((&world.status()["conductorEpoch"], conduct.epoch), (&json!(2), 2), "{trouble:?}");
        // Reports the recorded start before any shard has been asked.
        world.reconcile().await.unwrap();
        let status = world.status();
        assert_eq!((&status["phase"], &status["trial"]["attempt"]), (&json!("Running"), &json!(1)), "{trouble:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_abort_stops_the_load_even_if_nothing_can_be_written() {
    for trouble in Trouble::ALL {
        let (world, conduct, _publish) = World::conducting(ConductStage::Running, json!({"spec": {"abort": true}}));
        world.server.set_trouble(Some(trouble));
        let _ = world.reconcile().await;
        assert!(conduct.is_aborted(), "{trouble:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn suspending_waits_until_it_is_written_down() {
    for trouble in Trouble::ALL {
        let (world, conduct, _publish) = World::conducting(ConductStage::Preparing, json!({"spec": {"suspend": true}}));
        world.server.set_trouble(Some(trouble));
        assert!(!world.reconcile_for(OUTAGE).await.is_empty(), "{trouble:?}");
        // A start that is recorded meanwhile must take precedence.
        assert!(world.is_conducted_by(&conduct), "{trouble:?}");
        world.server.set_trouble(None);
        world.reconcile().await.unwrap();
        assert_eq!(world.phase(), "Suspended");
        assert!(world.conduct().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_outlives_every_outage() {
    for trouble in Trouble::ALL {
        let (world, conduct, _publish) = World::conducting(ConductStage::Collecting, json!({}));
        conduct.end(finished());
        world.server.set_trouble(Some(trouble));
        assert!(!world.reconcile_for(ARTIFACTS_LIMIT / 2).await.is_empty(), "{trouble:?}");
        assert!(!conduct.may_go(), "{trouble:?}: shards keep what is not durable");
        world.server.set_trouble(None);
        world.reconcile().await.unwrap();
        assert_eq!(world.phase(), "Succeeded", "{trouble:?}");
        assert!(world.server.get(CONFIG_MAP).is_some(), "{trouble:?}");
        assert!(conduct.may_go());
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_is_given_up_for_a_refusal_and_not_for_an_outage() {
    for trouble in Trouble::ALL {
        let (world, conduct, _publish) = World::conducting(ConductStage::Collecting, json!({}));
        conduct.end(finished());
        world.server.set_trouble(Some(trouble));
        world.reconcile_for(ARTIFACTS_LIMIT * 5).await;
        world.server.set_trouble(None);
        world.reconcile_for(Duration::from_secs(2)).await;
        assert_eq!(world.phase(), "Succeeded", "{trouble:?}");
        assert!(world.server.get(CONFIG_MAP).is_some(), "{trouble:?}");
    }
    let (world, conduct, _publish) = World::conducting(ConductStage::Collecting, json!({}));
    conduct.end(finished());
    world.server.put(CONFIG_MAP, json!({"metadata": {"name": "cart-result-0", "uid": "foreign"}}));
    world.reconcile_for(ARTIFACTS_LIMIT * 2).await;
    let status = world.status();
    assert_eq!((&status["phase"], &status["artifacts"]), (&json!("Succeeded"), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn children_of_a_run_that_is_over_go_when_they_can() {
    for trouble in Trouble::ALL {
        let (world, conduct, _publish) = World::conducting(ConductStage::Collecting, json!({}));
        conduct.end(finished());
        world.reconcile().await.unwrap();
        world.server.put(&format!("{SECRET}/cart-89abcdef"), json!({"metadata": {"name": "cart-89abcdef"}}));
        world.server.set_trouble(Some(trouble));
        world.reconcile_for(Duration::from_secs(60)).await;
        world.server.set_trouble(None);
        world.reconcile().await.unwrap();
        assert_eq!(world.objects(), [CONFIG_MAP, CART], "{trouble:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn numbers_alone_do_not_hammer_at_a_server_in_trouble() {
    let (world, _conduct, publish) = World::conducting(ConductStage::Running, json!({}));
    world.reconcile().await.unwrap();
    world.server.take_writes();
    world.server.set_trouble(Some(Trouble::Throttles));
    for lost in 0..30 {
        publish.send_modify(|progress| progress.shards.running = lost);
        let _ = world.reconcile().await;
        advance(Duration::from_secs(1)).await;
    }
    assert!(world.writes().len() <= 7, "one try every 5 s");
}
