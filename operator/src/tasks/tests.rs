use super::*;
use crate::testing::run;

#[tokio::test(start_paused = true)]
async fn the_load_of_a_deleted_benchmark_is_stopped_before_its_task() {
    let tasks = TaskRegistry::default();
    let _progress = tasks.put_running(run(), 1, ConductProgress::default());
    let entry = tasks.get("u-1").unwrap();
    tasks.forget("u-1");
    assert!(tasks.get("u-1").is_none() && entry.is_aborted());
    // Dropping the entry stops its task.
    let left = Arc::downgrade(&entry);
    drop(entry);
    tokio::time::sleep(STOP_LIMIT.saturating_sub(Duration::from_secs(1))).await;
    assert!(left.upgrade().is_some());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(left.upgrade().is_none());
}

#[tokio::test]
async fn a_trial_that_ends_after_its_benchmark_was_deleted_leaves_no_record() {
    let tasks = TaskRegistry::default();
    let record = || TrialSample::live(Setting::default(), &ConductProgress::default(), &[], |_, _| Vec::new());
    let _progress = tasks.put_running(run(), 1, ConductProgress::default());
    let entry = tasks.get("u-1").unwrap();
    tasks.keep(&entry, record());
    assert_eq!(tasks.records("u-1").len(), 1);
    tasks.forget("u-1");
    tasks.keep(&entry, record());
    assert_eq!(tasks.records("u-1").len(), 0);
}
