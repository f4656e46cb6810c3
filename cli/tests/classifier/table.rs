//! All situations and their expected verdicts.

use redisbench_testkit::network::Shaped;

use crate::situation::{Expected, Given, Situation};
use crate::{bad, clean, cluster, disk, limits, memory, network, persistence, processors, search, start};

/// With priority over other work on the machine, and without a slow link.
const fn situation(key: &'static str, expected: Expected, make: fn() -> Given) -> Situation {
    Situation { key, expected, first: true, link: None, server: None, make }
}

pub const SITUATIONS: &[Situation] = &[
    situation("easy-rate", Expected::clean("an easy rate"), clean::an_easy_rate),
    situation("poisson", Expected::clean("Poisson arrivals, two shards"), clean::poisson_arrivals_over_two_shards),
    situation("stages", Expected::clean("a rate that rises and falls"), clean::a_rate_in_stages),
    situation(
        "zipf-pipelines",
        Expected::clean("popular keys, in pipelines of two shards"),
        clean::popular_keys_in_pipelines,
    ),
    situation("tls", Expected::clean("a server within TLS"), clean::a_server_with_tls),
    situation(
        "tls-unverified",
        Expected { reasons: &["NotVerified"], ..Expected::clean("a server within TLS, its certificate unverified") },
        clean::a_server_with_tls_that_nobody_verifies,
    ),
    situation("cluster", Expected::clean("a cluster of three"), clean::a_cluster_of_three),
    situation("transactions", Expected::clean("transactions of four"), clean::transactions),
    situation("fills", Expected::clean("misses that are filled, at a rate"), clean::misses_that_are_filled),
    situation("scripts", Expected::clean("scripts that execute other commands"), clean::scripts),
    situation(
        "used-before",
        Expected::clean("a server that was used before, and is cleaned up after"),
        clean::a_server_that_was_used_before,
    ),
    situation("skewed-clocks", Expected::clean("shards whose clocks are days apart"), start::skewed_clocks),
    Situation {
        link: Some(Shaped::Downlink),
        ..situation(
            "link-not-full",
            Expected::clean("a link of 20 Mbit/s that is not full"),
            network::a_link_that_is_not_full,
        )
    },
    situation(
        "counts-reset",
        Expected { reasons: &["NotReconciled"], ..Expected::clean("somebody resets the server's counts") },
        bad::somebody_resets_the_counts,
    ),
    situation(
        "info-forbidden",
        Expected { reasons: &["NotReconciled"], ..Expected::clean("a server that forbids INFO") },
        bad::a_server_that_forbids_info,
    ),
    situation(
        "fork",
        Expected { reasons: &["Forked"], ..Expected::clean("a server that saves 400 MB meanwhile") },
        persistence::a_server_that_forks,
    ),
    situation(
        "other-client",
        Expected { value: "Degraded", reasons: &["Unreconciled"], ..Expected::clean("somebody else uses the server") },
        bad::somebody_else_uses_the_server,
    ),
    situation(
        "evictions",
        Expected { value: "Degraded", reasons: &["Evictions"], ..Expected::clean("a server that evicts") },
        bad::a_server_that_evicts,
    ),
    situation(
        "errors-400",
        Expected { value: "Degraded", reasons: &["Errors"], ..Expected::clean("one request in 400 fails") },
        bad::one_request_in_400_fails,
    ),
    situation(
        "errors-10",
        Expected {
            value: "Invalid",
            limited_by: "Unknown",
            reasons: &["RateMissed", "Errors"],
            ..Expected::clean("one request in ten fails")
        },
        bad::one_request_in_ten_fails,
    ),
    situation(
        "server-stops",
        Expected {
            value: "Degraded",
            reasons: &["Unavailable", "Errors"],
            besides: &["RateMissed"],
            ..Expected::clean("a server that stops for 600 ms")
        },
        bad::a_server_that_stops,
    ),
    situation(
        "server-loads",
        Expected {
            value: "Degraded",
            reasons: &["Unavailable", "NotReconciled"],
            besides: &["Errors", "RateMissed"],
            ..Expected::clean("a server that is restarted, and reads its keys for a second")
        },
        persistence::a_server_that_loads,
    ),
    situation(
        "failover",
        Expected {
            value: "Degraded",
            reasons: &["Unavailable", "TopologyChanged", "NotReconciled"],
            besides: &["Errors", "RateMissed"],
            ..Expected::clean("a primary is killed and its replica takes over")
        },
        cluster::a_failover,
    ),
    situation(
        "late-shard",
        Expected { value: "Degraded", reasons: &["StartSkew"], ..Expected::clean("a late shard") },
        start::a_late_shard,
    ),
    situation(
        "lost-shard",
        Expected {
            value: "Invalid",
            limited_by: "Unknown",
            reasons: &["ShardLost", "RateMissed"],
            ..Expected::clean("a lost shard")
        },
        bad::a_lost_shard,
    ),
    situation(
        "shard-memory",
        Expected {
            value: "Invalid",
            limited_by: "Unknown",
            reasons: &["ShardLost", "RateMissed"],
            ..Expected::clean("a shard of two whose memory something else takes")
        },
        memory::a_shard_without_memory,
    ),
    situation(
        "cache-fills",
        Expected {
            value: "Degraded",
            limited_by: "Unknown",
            reasons: &["Unsteady"],
            ..Expected::clean("a cache that fills while it is measured")
        },
        bad::a_cache_that_fills,
    ),
    situation(
        "connections",
        Expected { limited_by: "Connections", ..Expected::clean("too few connections to a server far away") },
        limits::too_few_connections,
    ),
    situation(
        "connections-no-probe",
        Expected { limited_by: "Unknown", ..Expected::clean("the same without a probe") },
        limits::too_few_connections_without_a_probe,
    ),
    situation(
        "connections-rate",
        Expected {
            value: "Invalid",
            limited_by: "Connections",
            reasons: &["RateMissed", "Errors"],
            ..Expected::clean("too few connections for the rate")
        },
        limits::too_few_connections_for_a_rate,
    ),
    Situation {
        first: false,
        ..situation(
            "server-full",
            Expected {
                limited_by: "Target",
                component: "/MainThread",
                ..Expected::clean("a server at 100 % of a processor")
            },
            limits::a_server_without_time,
        )
    },
    Situation {
        first: false,
        ..situation(
            "server-full-rate",
            Expected {
                value: "Invalid",
                limited_by: "Target",
                component: "/MainThread",
                reasons: &["RateMissed", "Errors"],
                ..Expected::clean("a rate beyond what the server can do")
            },
            limits::a_rate_beyond_reach,
        )
    },
    Situation {
        first: false,
        ..situation(
            "hot-node",
            Expected {
                limited_by: "Target",
                component: "/MainThread",
                ..Expected::clean("one hot node of a cluster, at 100 % of a processor")
            },
            cluster::one_hot_node,
        )
    },
    situation(
        "server-sleeps",
        Expected {
            limited_by: "Target",
            reasons: &["NotReconciled"],
            ..Expected::clean("a server that is slow without working")
        },
        limits::a_server_that_sleeps_in_its_commands,
    ),
    situation(
        "proxy-full",
        Expected { limited_by: "Target", component: "Path", ..Expected::clean("a full proxy before an idle server") },
        limits::a_saturated_proxy,
    ),
    Situation {
        first: false,
        ..situation(
            "server-quota",
            Expected { limited_by: "Target", ..Expected::clean("a server whose CPU limit is a fifth of a processor") },
            limits::a_server_with_a_quota,
        )
    },
    Situation {
        first: false,
        server: Some("redis"),
        ..situation(
            "server-quota-told",
            Expected {
                limited_by: "Target",
                component: "ID",
                ..Expected::clean("the same limit of a Redis 8, which tells how long its event loop was awake")
            },
            limits::a_server_with_a_quota,
        )
    },
    situation(
        "disk-bytes",
        Expected {
            limited_by: "Target",
            component: "Path",
            ..Expected::clean("a server whose disk takes 8 MiB/s, and that waits for it")
        },
        disk::a_disk_that_takes_few_bytes,
    ),
    Situation {
        server: Some("redis"),
        ..situation(
            "disk-bytes-told",
            Expected {
                limited_by: "Target",
                component: "ID",
                ..Expected::clean("the same disk below a Redis 8, which tells how long its event loop was awake")
            },
            disk::a_disk_that_takes_few_bytes,
        )
    },
    situation(
        "disk-writes",
        Expected {
            limited_by: "Connections",
            ..Expected::clean("a server whose disk takes 5 ms for a write, however much it is")
        },
        disk::a_disk_that_takes_few_writes,
    ),
    Situation {
        link: Some(Shaped::Uplink),
        ..situation(
            "uplink",
            Expected {
                limited_by: "GeneratorNetwork",
                component: "Uplink",
                ..Expected::clean("an uplink of 20 Mbit/s")
            },
            network::a_full_uplink,
        )
    },
    Situation {
        link: Some(Shaped::Downlink),
        ..situation(
            "downlink",
            Expected {
                limited_by: "GeneratorNetwork",
                component: "Downlink",
                ..Expected::clean("a downlink of 20 Mbit/s")
            },
            network::a_full_downlink,
        )
    },
    Situation {
        link: Some(Shaped::Downlink),
        ..situation(
            "downlink-unstated",
            Expected {
                limited_by: "Unknown",
                component: "Path",
                ..Expected::clean("the same without a stated capacity")
            },
            network::a_full_downlink_without_a_stated_capacity,
        )
    },
    Situation {
        first: false,
        link: Some(Shaped::Downlink),
        ..situation(
            "downlink-starved",
            Expected {
                value: "Degraded",
                limited_by: "GeneratorNetwork",
                component: "Downlink",
                reasons: &["GeneratorCPU"],
                besides: &["StartSkew", "GeneratorDelay"],
                ..Expected::clean("a downlink of 20 Mbit/s, and shards without a processor for 40 ms in every 100")
            },
            network::a_full_downlink_of_shards_that_wait_for_a_processor,
        )
    },
    Situation {
        first: false,
        ..situation(
            "shard-quota",
            Expected {
                value: "Degraded",
                limited_by: "GeneratorCPU",
                reasons: &["GeneratorCPU"],
                besides: &["Unsteady", "GeneratorDelay"],
                ..Expected::clean("a shard whose CPU limit is a tenth of a processor")
            },
            processors::a_shard_with_a_tenth_of_a_processor,
        )
    },
    Situation {
        first: false,
        ..situation(
            "shard-shares",
            Expected {
                value: "Degraded",
                limited_by: "GeneratorCPU",
                reasons: &["GeneratorCPU"],
                besides: &["Unsteady", "GeneratorDelay"],
                ..Expected::clean("a shard beside seven busy processes on its processor")
            },
            processors::a_shard_beside_others_on_its_processor,
        )
    },
    situation(
        "shard-stands",
        Expected {
            value: "Degraded",
            limited_by: "Unknown",
            reasons: &["ReceiveLate", "GeneratorDelay"],
            ..Expected::clean("a shard that stands still for 50 ms in every 100")
        },
        processors::a_shard_that_stands_still,
    ),
    situation(
        "shard-stands-rate",
        Expected {
            value: "Degraded",
            reasons: &["SendLate", "GeneratorDelay"],
            ..Expected::clean("a shard that stands still as long, at a rate that it can make")
        },
        processors::a_shard_that_stands_still_at_a_rate,
    ),
    Situation {
        first: false,
        ..situation(
            "search",
            Expected {
                value: "Found",
                limited_by: "Target",
                component: "/MainThread",
                ..Expected::clean("a search that ends at a full server")
            },
            search::a_search_that_ends_at_a_full_server,
        )
    },
];
