//! Tables of clients, of client-side caches and of connections with a lifetime.

use redisbench_benchmark::api::status::{CacheResult, ClientResult, ConnectionsResult, Latencies};
use redisbench_benchmark::human::{bytes, count, latency, rate};

use super::grid::{Cell, Grid};
use super::latencies::latency_rows;
use super::paint::Style;

/// Costs of clients, each with its setting, if there are any.
pub fn clients<'a>(found: impl IntoIterator<Item = (String, &'a ClientResult)>) -> Option<Grid> {
    let found: Vec<_> = found.into_iter().collect();
    let has = |of: fn(&ClientResult) -> Option<u64>| found.iter().any(|(_, client)| of(client).is_some());
    let with_servers = has(|client| client.server_cpu_per_request_nanoseconds);
    let with_batches = has(|client| client.commands_per_thousand_reads);
    let mut heads = vec!["CPU/request", "user", "kernel"];
    heads.extend(with_servers.then_some("server CPU/request"));
    heads.extend(with_batches.then_some("commands/read"));
    heads.extend(["switches/1000", "connections", "callers", "peak memory", "version"]);
    let mut grid = Grid::new("Client", &heads).left(heads.len());
    for (setting, client) in &found {
        let mut row = vec![
            Cell::from(setting),
            Cell::from(latency(client.cpu_per_request_nanoseconds)),
            Cell::from(latency(client.user_per_request_nanoseconds)),
            Cell::from(latency(client.system_per_request_nanoseconds)),
        ];
        row.extend(with_servers.then(|| Cell::known(client.server_cpu_per_request_nanoseconds.map(latency))));
        let batch = |thousandths: u64| format!("{:.2}", thousandths as f64 / 1e3);
        row.extend(with_batches.then(|| Cell::known(client.commands_per_thousand_reads.map(batch))));
        row.extend([
            Cell::from(count(client.context_switches_per_thousand_requests)),
            Cell::from(count(client.connections.into())),
            Cell::from(count(client.callers.into())),
            Cell::from(bytes(client.peak_bytes)),
            Cell::from(client.version.clone()),
        ]);
        grid.row(row);
    }
    (!found.is_empty()).then_some(grid)
}

/// Counts of the caches, and how long invalidations took.
pub fn cache(found: &CacheResult) -> Vec<Grid> {
    let plain = |number: u64| Cell::from(count(number));
    let heads = ["hits", "misses", "hit rate", "hits/s", "invalidations", "unused", "not cached", "flushes", "saved"];
    let mut heads = heads.to_vec();
    let mut row = vec![
        Cell::from("all caches"),
        plain(found.hits),
        plain(found.misses),
        Cell::from(format!("{}.{:02} %", found.hit_basis_points / 100, found.hit_basis_points % 100)),
        Cell::from(rate(found.hits_per_second)),
        plain(found.invalidations),
        plain(found.invalidated_unused),
        plain(found.not_cached),
        plain(found.flushes),
        Cell::from(format!(
            "{}{}",
            if found.requests_saved < 0 { "-" } else { "" },
            count(found.requests_saved.unsigned_abs())
        )),
    ];
    for (head, value) in
        [("evicted", found.evicted), ("expired", found.expired), ("CACHING calls", found.caching_calls)]
    {
        if value > 0 {
            heads.push(head);
            row.push(plain(value));
        }
    }
    if let Some(stale) = found.stale_hits {
        heads.push("stale hits");
        row.push(Cell::unless_zero(stale, Style::Doubtful));
    }
    let mut grid = Grid::new("Client-side caching", &heads);
    grid.row(row);
    vec![grid, latency_rows("Invalidation latency", &[("write to push", &found.invalidation_time)])]
}

/// Connections made, and how long that took.
pub fn connections(found: &ConnectionsResult) -> Vec<Grid> {
    let mut grid = Grid::new("Connections", &["made", "closed", "made/s"]);
    grid.row([
        Cell::from("lifetime"),
        Cell::from(count(found.made)),
        Cell::from(count(found.closed)),
        Cell::from(rate(found.made_per_second)),
    ]);
    let mut times: Vec<(&str, &Latencies)> = vec![("connect", &found.connect_time)];
    times.extend(found.tls_handshake_time.iter().map(|times| ("TLS handshake", times)));
    vec![grid, latency_rows("Connect latency", &times)]
}

#[cfg(test)]
mod tests {
    use super::super::paint::Paint;
    use super::*;

    fn text(grids: &[Grid]) -> String {
        grids.iter().map(|grid| grid.text(Paint::none())).collect()
    }

    #[test]
    fn a_client_shows_what_it_cost() {
        assert!(clients([]).is_none());
        let cost = ClientResult {
            name: "fred".to_owned(),
            version: "fred 10.1.0".to_owned(),
            cpu_per_request_nanoseconds: 41_000,
            user_per_request_nanoseconds: 30_000,
            system_per_request_nanoseconds: 11_000,
            peak_bytes: 20 << 20,
            ..ClientResult::default()
        };
        let alone = text(&[clients([("fred, size=4".to_owned(), &cost)]).unwrap()]);
        for part in ["CPU/request", "fred, size=4", "41.0 µs", "30.0 µs", "11.0 µs", "21.0 MB", "fred 10.1.0"] {
            assert!(alone.contains(part), "{part} is not in\n{alone}");
        }
        assert!(!alone.contains("server CPU/request") && !alone.contains("commands/read"), "{alone}");
        let batching = ClientResult {
            server_cpu_per_request_nanoseconds: Some(2_500),
            commands_per_thousand_reads: Some(15_750),
            ..cost.clone()
        };
        let both = text(&[clients([("fred".to_owned(), &cost), ("batching".to_owned(), &batching)]).unwrap()]);
        let rows: Vec<_> = both.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let has = |part: &str| rows.iter().any(|row| row.contains(part));
        assert!(has("CPU/request user kernel server CPU/request commands/read switches/1000"), "{both}");
        assert!(has("fred 41.0 µs 30.0 µs 11.0 µs - - 0") && has("11.0 µs 2.50 µs 15.75 0"), "{both}");
    }

    #[test]
    fn a_cache_shows_what_it_saved_and_what_it_cost() {
        let found = CacheResult {
            hits: 9_000,
            misses: 1_000,
            hit_basis_points: 9_000,
            invalidations: 54_272,
            caching_calls: 10_000,
            requests_saved: -1_000,
            stale_hits: Some(3),
            ..CacheResult::default()
        };
        let text = text(&cache(&found));
        for part in ["90.00 %", "54,272", "-1,000", "CACHING calls", "stale hits", "write to push"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains("evicted"), "{text}");
    }

    #[test]
    fn connects_have_latencies_of_their_own() {
        let found = ConnectionsResult { made: 12, closed: 13, made_per_second: 4, ..ConnectionsResult::default() };
        let plain = text(&connections(&found));
        assert!(plain.contains("made/s") && !plain.contains("TLS"), "{plain}");
        let found = ConnectionsResult { tls_handshake_time: Some(Latencies::default()), ..found };
        assert!(text(&connections(&found)).contains("TLS handshake"));
    }
}
