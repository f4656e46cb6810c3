//! The table of docs/evidence/scale.md.

use serde_json::Value;

const HEADER: &str = "| shards | benchmarks | seconds | cores | peak memory | calls/s | written | to armed | start skew | oldest snapshot | to the result | exact |";

/// A measurement as a row of the table.
fn row(line: &Value) -> String {
    let number = |name: &str| line[name].as_f64().unwrap_or_default();
    let seconds = |name: &str| format!("{:.1} s", number(name));
    let mebibytes = |name: &str| format!("{:.1} MiB", number(name) / f64::from(1 << 20));
    let cells = [
        line["shards"].to_string(),
        line["benchmarks"].to_string(),
        line["duration"].to_string(),
        format!("{:.3}", number("operatorCpuCores")),
        mebibytes("operatorPeakMemoryBytes"),
        format!("{:.1}", number("apiCallsPerSecond")),
        mebibytes("bytesWritten"),
        seconds("secondsToArmed"),
        format!("{:.1} ms", number("startSkewMicroseconds") / 1e3),
        seconds("oldestSnapshotSeconds"),
        seconds("secondsToResult"),
        if line["countsExact"] == true { "yes".into() } else { "**no**".into() },
    ];
    format!("| {} |", cells.join(" | "))
}

/// Benchmarks, shards and seconds of a row: what was run.
fn shape(row: &str) -> [u64; 3] {
    let mut cells = row.split('|').skip(1).map(|cell| cell.trim().parse().unwrap_or(0));
    let mut next = || cells.next().unwrap_or(0);
    let (shards, benchmarks, seconds) = (next(), next(), next());
    [benchmarks, shards, seconds]
}

/// The page with the measurement's row, which replaces one of the same shape. None if the page has no such table.
pub fn with_row(page: &str, line: &Value) -> Option<String> {
    let (before, after) = page.split_once(HEADER)?;
    let (table, rest): (Vec<&str>, Vec<&str>) = {
        let lines: Vec<&str> = after.lines().skip(1).collect();
        let rows = lines.iter().take_while(|line| line.starts_with('|')).count();
        (lines[..rows].to_vec(), lines[rows..].to_vec())
    };
    let (separator, rows) = table.split_first()?;
    let new = row(line);
    let mut rows: Vec<&str> = rows.iter().copied().filter(|row| shape(row) != shape(&new)).collect();
    rows.push(&new);
    rows.sort_by_key(|row| shape(row));
    let lines = [separator].into_iter().copied().chain(rows).chain(rest);
    Some(format!("{before}{HEADER}\n{}\n", lines.collect::<Vec<_>>().join("\n")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_replaces_one_of_its_shape() {
        let measured = |shards: u64, cores: f64| json!({"shards": shards, "benchmarks": 1, "duration": 20, "operatorCpuCores": cores, "countsExact": true});
        let page = format!("Before.\n\n{HEADER}\n| --- |\n\nAfter.\n");
        let page = with_row(&page, &measured(2_000, 0.3)).unwrap();
        let page = with_row(&page, &measured(200, 0.1)).unwrap();
        let page = with_row(&page, &measured(2_000, 0.2)).unwrap();
        let rows = "| 0.0 MiB | 0.0 | 0.0 MiB | 0.0 s | 0.0 ms | 0.0 s | 0.0 s | yes |";
        let expected = format!(
            "Before.\n\n{HEADER}\n| --- |\n| 200 | 1 | 20 | 0.100 {rows}\n| 2000 | 1 | 20 | 0.200 {rows}\n\nAfter.\n"
        );
        assert_eq!(page, expected);
        assert_eq!(with_row("no table", &measured(1, 1.0)), None);
    }
}
