//! Links of 20 Mbit/s. Each situation has a network of its own.

use std::time::Duration;

use redisbench_testkit::network::SERVER;

use crate::processors::{Hog, pin};
use crate::situation::{Given, Manifest, run};

const GET: &str = "[{name: get, command: GET __key__}]";
const SET: &str = "[{name: set, command: SET __key__ __data__}]";

fn link(operations: &str, connections: u32) -> Manifest {
    Manifest {
        operations: operations.into(),
        keys: "{count: 16}".into(),
        workload: "values: {size: {type: Fixed, fixed: {bytes: 16384}}}".into(),
        load: format!("type: ClosedLoop, connections: {connections}, duration: 4s, warmup: 1s"),
        measurement: "linkCapacity: 20Mbit".into(),
        ..Manifest::new(SERVER)
    }
}

pub fn a_full_uplink() -> Given {
    run(&link(SET, 8), |_| {})
}

pub fn a_full_downlink() -> Given {
    run(&link(GET, 8), |_| {})
}

/// The manifest does not state the link's capacity.
pub fn a_full_downlink_without_a_stated_capacity() -> Given {
    run(&Manifest { measurement: String::new(), ..link(GET, 8) }, |_| {})
}

/// Replies are read late, but the link is fully used all the time.
pub fn a_full_downlink_of_shards_that_wait_for_a_processor() -> Given {
    let mut hog = None;
    run(&Manifest { shards: 2, ..link(GET, 8) }, |run| {
        run.children().into_iter().for_each(|child| pin(child, "0"));
        hog.get_or_insert_with(|| Hog::start(1, Duration::from_millis(40)));
    })
}

/// A reply of 64 KiB takes a while on this link.
pub fn a_link_that_is_not_full() -> Given {
    let load = "type: OpenLoop, openLoop: {rate: 15}, connections: 4, duration: 3s, warmup: 500ms";
    let workload = "values: {size: {type: Fixed, fixed: {bytes: 65536}}}".into();
    run(&Manifest { load: load.into(), workload, ..link(GET, 4) }, |_| {})
}
