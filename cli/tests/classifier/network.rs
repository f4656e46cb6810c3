//! Links of 20 Mbit/s in a network of the test's own.

use crate::processors::{Hog, pin};
use crate::servers::network::{self, Link, SERVER, Shaped};
use crate::situation::{Expected, Manifest, alone, as_others, judge};

/// Whether this is within a network whose link carries 20 Mbit/s one way; outside, has the test `name` run in it.
fn inside(name: &str, shaped: Shaped) -> bool {
    network::inside(name, Link { shaped, megabits: 20, burst_kib: 32 })
}

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

#[test]
#[ignore = "makes a network of its own, which needs root: make test-selfcheck"]
fn a_full_uplink() {
    let _machine = alone();
    if inside("network::a_full_uplink", Shaped::Uplink) {
        let expected = Expected {
            limited_by: "GeneratorNetwork",
            component: "Uplink",
            ..Expected::clean("an uplink of 20 Mbit/s")
        };
        judge(&expected, &link("[{name: set, command: SET __key__ __data__}]", 8), |_| {});
    }
}

#[test]
#[ignore = "makes a network of its own, which needs root: make test-selfcheck"]
fn a_full_downlink() {
    let _machine = alone();
    if inside("network::a_full_downlink", Shaped::Downlink) {
        let expected = Expected {
            limited_by: "GeneratorNetwork",
            component: "Downlink",
            ..Expected::clean("a downlink of 20 Mbit/s")
        };
        judge(&expected, &link("[{name: get, command: GET __key__}]", 8), |_| {});
        // Nobody said what it carries.
        let expected = Expected {
            limited_by: "Unknown",
            component: "Path",
            ..Expected::clean("the same without a stated capacity")
        };
        let manifest = Manifest { measurement: String::new(), ..link("[{name: get, command: GET __key__}]", 8) };
        judge(&expected, &manifest, |_| {});
    }
}

/// Replies are read late, but the link carries what it can all the time.
#[test]
#[ignore = "makes a network of its own, which needs root: make test-selfcheck"]
fn a_full_downlink_of_shards_that_wait_for_a_processor() {
    let _machine = as_others();
    if inside("network::a_full_downlink_of_shards_that_wait_for_a_processor", Shaped::Downlink) {
        let expected = Expected {
            value: "Degraded",
            limited_by: "GeneratorNetwork",
            component: "Downlink",
            reasons: &["GeneratorCPU"],
            besides: &["StartSkew"],
            ..Expected::clean("a downlink of 20 Mbit/s, and shards without a processor for 40 ms in every 100")
        };
        let manifest = Manifest { shards: 2, ..link("[{name: get, command: GET __key__}]", 8) };
        let mut hog = None;
        judge(&expected, &manifest, |run| {
            run.children().into_iter().for_each(|child| pin(child, "0"));
            hog.get_or_insert_with(Hog::start);
        });
    }
}

#[test]
#[ignore = "makes a network of its own, which needs root: make test-selfcheck"]
fn a_link_that_is_not_full() {
    let _machine = alone();
    if inside("network::a_link_that_is_not_full", Shaped::Downlink) {
        let load = "type: OpenLoop, openLoop: {rate: 100}, connections: 4, duration: 3s, warmup: 500ms";
        let manifest = Manifest { load: load.into(), ..link("[{name: get, command: GET __key__}]", 4) };
        judge(&Expected::clean("a link of 20 Mbit/s that is not full"), &manifest, |_| {});
    }
}
