//! The operator dies, at every point where that might matter.

use redisbench_e2e::faults::operator::{self, Successor};
use redisbench_e2e::faults::{Account, Expected};
use redisbench_e2e::{Benchmark, redis, run_alone};
use serde_json::json;

/// What is promised whenever the operator dies after the start.
const CARRIED_ON: &str = "the shards go on by themselves; the next operator takes over, and nothing is lost";

#[test]
fn in_mid_run() {
    run_alone(|space| async move {
        operator::fresh(&space.client).await?;
        redis::standalone(&space, "redis").await?;
        let benchmark = Benchmark::create(&space, "run", &json!({"load": {"duration": "12s"}})).await?;
        benchmark.measuring().await?;
        let mut account =
            Account::open(&space, &benchmark, "operator killed in mid-run, its container restarted", CARRIED_ON)
                .await?;
        operator::kill(&space.client, Successor::SamePod).await?;
        account.fault_ended();
        account.taken_over().await?;
        account.close(&Expected::default()).await?;
        Ok(())
    });
}
