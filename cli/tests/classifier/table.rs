//! All situations and their expected verdicts.

use redisbench_testkit::network::Shaped;

use crate::situation::{Situation, situation};
use crate::{bad, clean, cluster, disk, limits, memory, network, persistence, processors, search, start};

pub const SITUATIONS: &[Situation] = &[
    situation("easy-rate", "an easy rate", clean::an_easy_rate),
    situation("poisson", "Poisson arrivals, two shards", clean::poisson_arrivals_over_two_shards),
    situation("stages", "a rate that rises and falls", clean::a_rate_in_stages),
    situation("zipf-pipelines", "popular keys, in pipelines of two shards", clean::popular_keys_in_pipelines),
    situation("tls", "a server within TLS", clean::a_server_with_tls),
    situation(
        "tls-unverified",
        "a server within TLS, its certificate unverified",
        clean::a_server_with_tls_that_nobody_verifies,
    )
    .because(&["NotVerified"]),
    situation("cluster", "a cluster of three", clean::a_cluster_of_three),
    situation("transactions", "transactions of four", clean::transactions),
    situation("fills", "misses that are filled, at a rate", clean::misses_that_are_filled),
    situation("misses", "reads of keys that do not exist", clean::misses).because(&["Misses"]),
    situation(
        "under-replicated",
        "writes that wait for a replica that is not there",
        clean::writes_that_wait_for_a_missing_replica,
    )
    .because(&["UnderReplicated"]),
    situation("scripts", "scripts that execute other commands", clean::scripts),
    situation(
        "used-before",
        "a server that was used before, and is cleaned up after",
        clean::a_server_that_was_used_before,
    ),
    situation("skewed-clocks", "shards whose clocks are days apart", start::skewed_clocks),
    situation("link-not-full", "a link of 20 Mbit/s that is not full", network::a_link_that_is_not_full)
        .through(Shaped::Downlink),
    situation("counts-reset", "a client resets the server's counts", bad::somebody_resets_the_counts)
        .because(&["NotReconciled"]),
    situation("info-forbidden", "a server that forbids INFO", bad::a_server_that_forbids_info)
        .because(&["NotReconciled"]),
    situation("fork", "a server that saves 400 MB meanwhile", persistence::a_server_that_forks).because(&["Forked"]),
    situation("other-client", "another client uses the server", bad::somebody_else_uses_the_server)
        .called("Degraded")
        .because(&["Unreconciled"]),
    situation("evictions", "a server that evicts", bad::a_server_that_evicts)
        .called("Degraded")
        .because(&["Evictions"]),
    situation("errors-400", "one request in 400 fails", bad::one_request_in_400_fails)
        .called("Degraded")
        .because(&["Errors"]),
    situation("errors-10", "one request in ten fails", bad::one_request_in_ten_fails)
        .called("Invalid")
        .limited_by("Unknown", "")
        .because(&["RateMissed", "Errors"]),
    situation("server-stops", "a server that stops for 600 ms", bad::a_server_that_stops)
        .called("Degraded")
        .because(&["Unavailable", "Errors"])
        .perhaps(&["RateMissed"]),
    situation(
        "server-loads",
        "a server that is restarted, and reads its keys for a second",
        persistence::a_server_that_loads,
    )
    .called("Degraded")
    .because(&["Unavailable", "NotReconciled"])
    .perhaps(&["Errors", "RateMissed"]),
    situation("failover", "a primary is killed and its replica takes over", cluster::a_failover)
        .called("Degraded")
        .because(&["Unavailable", "TopologyChanged", "NotReconciled"])
        .perhaps(&["Errors", "RateMissed"]),
    situation("late-shard", "a late shard", start::a_late_shard).called("Degraded").because(&["StartSkew"]),
    situation("lost-shard", "a lost shard", bad::a_lost_shard)
        .called("Invalid")
        .limited_by("Unknown", "")
        .because(&["ShardLost", "RateMissed"]),
    situation("shard-memory", "a shard of two whose memory something else takes", memory::a_shard_without_memory)
        .called("Invalid")
        .limited_by("Unknown", "")
        .because(&["ShardLost", "RateMissed"]),
    situation("cache-fills", "a cache that fills while it is measured", bad::a_cache_that_fills)
        .called("Degraded")
        .limited_by("Unknown", "")
        .because(&["Unsteady"]),
    situation("connections", "too few connections to a server far away", limits::too_few_connections)
        .limited_by("Connections", ""),
    situation("connections-no-probe", "the same without a probe", limits::too_few_connections_without_a_probe)
        .limited_by("Unknown", ""),
    situation("connections-rate", "too few connections for the rate", limits::too_few_connections_for_a_rate)
        .called("Invalid")
        .limited_by("Connections", "")
        .because(&["RateMissed", "Errors"]),
    situation("server-full", "a server at 100 % of a processor", limits::a_server_without_time)
        .limited_by("Target", "/MainThread")
        .beside_others(),
    situation("server-full-rate", "a rate beyond what the server can do", limits::a_rate_beyond_reach)
        .called("Invalid")
        .limited_by("Target", "/MainThread")
        .because(&["RateMissed", "Errors"])
        .beside_others(),
    situation(
        "backlog",
        "a rate half a per cent beyond what a proxy forwards, for ten seconds",
        limits::a_rate_slightly_beyond_reach,
    )
    .called("Degraded")
    .limited_by("Unknown", "")
    .because(&["Backlog"]),
    situation("hot-node", "one hot node of a cluster, at 100 % of a processor", cluster::one_hot_node)
        .limited_by("Target", "/MainThread")
        .beside_others(),
    situation("server-sleeps", "a server that is slow without working", limits::a_server_that_sleeps_in_its_commands)
        .limited_by("Target", "")
        .because(&["NotReconciled"]),
    situation("proxy-full", "a full proxy before an idle server", limits::a_saturated_proxy)
        .limited_by("Target", "Path"),
    situation("server-quota", "a server whose CPU limit is a fifth of a processor", limits::a_server_with_a_quota)
        .limited_by("Target", "")
        .beside_others(),
    situation(
        "server-quota-told",
        "the same limit of a Redis 8, which tells how long its event loop was awake",
        limits::a_server_with_a_quota,
    )
    .limited_by("Target", "ID")
    .beside_others()
    .on("redis"),
    situation(
        "disk-bytes",
        "a server whose disk takes 8 MiB/s, and that waits for it",
        disk::a_disk_that_takes_few_bytes,
    )
    .limited_by("Target", "Path"),
    situation(
        "disk-bytes-told",
        "the same disk below a Redis 8, which tells how long its event loop was awake",
        disk::a_disk_that_takes_few_bytes,
    )
    .limited_by("Target", "ID")
    .on("redis"),
    situation(
        "disk-writes",
        "a server whose disk takes 5 ms for a write, however much it is",
        disk::a_disk_that_takes_few_writes,
    )
    .limited_by("Connections", ""),
    situation("uplink", "an uplink of 20 Mbit/s", network::a_full_uplink)
        .limited_by("GeneratorNetwork", "Uplink")
        .through(Shaped::Uplink),
    situation("downlink", "a downlink of 20 Mbit/s", network::a_full_downlink)
        .limited_by("GeneratorNetwork", "Downlink")
        .through(Shaped::Downlink),
    situation(
        "downlink-unstated",
        "the same without a stated capacity",
        network::a_full_downlink_without_a_stated_capacity,
    )
    .limited_by("Unknown", "Path")
    .through(Shaped::Downlink),
    situation(
        "downlink-starved",
        "a downlink of 20 Mbit/s, and shards without a processor for 40 ms in every 100",
        network::a_full_downlink_of_shards_that_wait_for_a_processor,
    )
    .called("Degraded")
    .limited_by("GeneratorNetwork", "Downlink")
    .because(&["GeneratorCPU"])
    .perhaps(&["StartSkew", "GeneratorDelay"])
    .beside_others()
    .through(Shaped::Downlink),
    situation(
        "shard-quota",
        "a shard whose CPU limit is a tenth of a processor",
        processors::a_shard_with_a_tenth_of_a_processor,
    )
    .called("Degraded")
    .limited_by("GeneratorCPU", "")
    .because(&["GeneratorCPU"])
    .perhaps(&["Unsteady", "GeneratorDelay"])
    .beside_others(),
    situation(
        "shard-shares",
        "a shard beside seven busy processes on its processor",
        processors::a_shard_beside_others_on_its_processor,
    )
    .called("Degraded")
    .limited_by("GeneratorCPU", "")
    .because(&["GeneratorCPU"])
    .perhaps(&["Unsteady", "GeneratorDelay"])
    .beside_others(),
    situation("client-busy", "a client library that keeps its only thread busy", processors::a_busy_client)
        .limited_by("Client", "fred")
        .beside_others(),
    situation(
        "many-shards",
        "a hundred shards on two processors, without these for 20 ms in every 100",
        processors::many_shards_on_two_processors,
    )
    .called("Degraded")
    .because(&["GeneratorCPU"])
    // Late reads lengthen p99 as late sends do, so lateness is about half of it, where SendLate begins.
    .perhaps(&["SendLate", "GeneratorDelay"])
    .beside_others(),
    situation(
        "shard-stands",
        "a shard that stands still for 50 ms in every 100",
        processors::a_shard_that_stands_still,
    )
    .called("Degraded")
    .limited_by("Unknown", "")
    .because(&["ReceiveLate", "GeneratorDelay"]),
    situation(
        "shard-stands-rate",
        "a shard that stands still as long, at a rate that it can make",
        processors::a_shard_that_stands_still_at_a_rate,
    )
    .called("Degraded")
    .because(&["SendLate", "GeneratorDelay"]),
    situation("search", "a search that ends at a full server", search::a_search_that_ends_at_a_full_server)
        .called("Found")
        .limited_by("Target", "/MainThread")
        .beside_others(),
];
