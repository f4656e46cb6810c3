//! The tables of docs/evidence/scale.md.

use serde_json::Value;

use crate::plot::Point;

/// A table of the page.
struct Table {
    header: &'static str,
    row: fn(&Value) -> Vec<String>,
    /// Numbers and fault that identify a row, from its cells. Rows are in this order, and one replaces another of the same key.
    key: fn(&[&str]) -> ([u64; 3], String),
}

/// Without faults.
const MEASURED: Table = Table {
    header: "| shards | benchmarks | seconds | cores | peak memory | calls/s | written | to armed | to start | start skew | oldest snapshot | to the result | exact |",
    row: |line| {
        vec![
            line["shards"].to_string(),
            line["benchmarks"].to_string(),
            line["duration"].to_string(),
            format!("{:.3}", number(line, "operatorCpuCores")),
            mebibytes(line, "operatorPeakMemoryBytes"),
            format!("{:.1}", number(line, "apiCallsPerSecond")),
            mebibytes(line, "bytesWritten"),
            seconds(line, "secondsToArmed"),
            seconds(line, "secondsToStart"),
            format!("{:.1} ms", number(line, "startSkewMicroseconds") / 1e3),
            seconds(line, "oldestSnapshotSeconds"),
            seconds(line, "secondsToResult"),
            if line["countsExact"] == true { "yes".into() } else { "**no**".into() },
        ]
    },
    key: |cells| ([1, 0, 2].map(|at| whole(cells, at)), String::new()),
};

const FAULTS: Table = Table {
    header: "| shards | fault | seconds | cores | peak memory | calls/s | oldest snapshot | without an operator | to stop | to the result | differences |",
    row: |line| {
        vec![
            line["shards"].to_string(),
            line["fault"].as_str().unwrap_or_default().to_owned(),
            line["duration"].to_string(),
            format!("{:.3}", number(line, "operatorCpuCores")),
            mebibytes(line, "operatorPeakMemoryBytes"),
            format!("{:.1}", number(line, "apiCallsPerSecond")),
            seconds(line, "oldestSnapshotSeconds"),
            seconds(line, "secondsWithoutOperator"),
            seconds(line, "secondsToStop"),
            seconds(line, "secondsToResult"),
            if line["differences"] == 0 { "none".into() } else { format!("**{}**", line["differences"]) },
        ]
    },
    key: |cells| ([whole(cells, 0), 0, 0], cells.get(1).copied().unwrap_or_default().to_owned()),
};

fn number(line: &Value, name: &str) -> f64 {
    line[name].as_f64().unwrap_or_default()
}

fn mebibytes(line: &Value, name: &str) -> String {
    format!("{:.1} MiB", number(line, name) / f64::from(1 << 20))
}

/// A dash if there is no such time.
fn seconds(line: &Value, name: &str) -> String {
    line[name].as_f64().map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.1} s"))
}

fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

fn whole(cells: &[&str], at: usize) -> u64 {
    cells.get(at).and_then(|cell| cell.parse().ok()).unwrap_or(0)
}

/// The lines of the page after a header: the table's, and the rest.
fn split(after: &str) -> (Vec<&str>, Vec<&str>) {
    let mut table: Vec<&str> = after.lines().skip(1).collect();
    let rows = table.iter().take_while(|line| line.starts_with('|')).count();
    let rest = table.split_off(rows);
    (table, rest)
}

/// The page with the measurement's row, which replaces one of the same shape or fault. None if the page has no such table.
pub fn with_row(page: &str, line: &Value) -> Option<String> {
    let Table { header, row, key } = if line["fault"].is_null() { MEASURED } else { FAULTS };
    let (before, after) = page.split_once(header)?;
    let (table, rest) = split(after);
    let (separator, rows) = table.split_first()?;
    let new = format!("| {} |", row(line).join(" | "));
    let key = |row: &str| key(&cells(row));
    let mut rows: Vec<&str> = rows.iter().copied().filter(|row| key(row) != key(&new)).collect();
    rows.push(&new);
    rows.sort_by_key(|row| key(row));
    let lines = [separator].into_iter().copied().chain(rows).chain(rest);
    Some(format!("{before}{header}\n{}\n", lines.collect::<Vec<_>>().join("\n")))
}

/// The measurements of one benchmark without faults, in the order of the page.
pub fn points(page: &str) -> Vec<Point> {
    let table = page.split_once(MEASURED.header).map_or_else(Vec::new, |(_, after)| split(after).0);
    let point = |row: &str| {
        let cells = cells(row);
        // Without the unit.
        let number = |at: usize| cells.get(at)?.split(' ').next()?.parse::<f64>().ok();
        (whole(&cells, 1) == 1).then_some(())?;
        Some(Point { shards: number(0)?, cores: number(3)?, mebibytes: number(4)? })
    };
    table.into_iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn measured(shards: u64, cores: f64) -> Value {
        let bytes = shards << 17;
        json!({"shards": shards, "benchmarks": 1, "duration": 20, "operatorCpuCores": cores, "operatorPeakMemoryBytes": bytes,
            "secondsToArmed": 0.5, "secondsToStart": 2.5, "oldestSnapshotSeconds": 1.04, "secondsToResult": 4.5, "fault": null, "differences": 0,
            "countsExact": true})
    }

    /// A page with both tables.
    fn page() -> String {
        format!("Before.\n\n{}\n| --- |\n\nAfter.\n\n{}\n| --- |\n\nEnd.\n", MEASURED.header, FAULTS.header)
    }

    #[test]
    fn a_row_replaces_one_of_its_shape() {
        let page = with_row(&page(), &measured(2_000, 0.3)).unwrap();
        let page = with_row(&page, &measured(200, 0.1)).unwrap();
        let page = with_row(&page, &measured(2_000, 0.2)).unwrap();
        let rest = "| 0.0 | 0.0 MiB | 0.5 s | 2.5 s | 0.0 ms | 1.0 s | 4.5 s | yes |";
        let rows = format!("| 200 | 1 | 20 | 0.100 | 25.0 MiB {rest}\n| 2000 | 1 | 20 | 0.200 | 250.0 MiB {rest}");
        let (header, faults) = (MEASURED.header, FAULTS.header);
        let expected = format!("Before.\n\n{header}\n| --- |\n{rows}\n\nAfter.\n\n{faults}\n| --- |\n\nEnd.\n");
        assert_eq!(page, expected);
        assert_eq!(with_row("no table", &measured(1, 1.0)), None);
    }

    #[test]
    fn a_fault_has_a_row_for_each_number_of_shards() {
        let faulty = |shards: u64, fault: &str, field: &str, value: f64, differences: u64| {
            let mut line = measured(shards, 0.1);
            (line["fault"], line[field], line["differences"]) = (json!(fault), json!(value), json!(differences));
            line
        };
        let (killed, deleted) = ("operator killed while running", "deleted (orphan)");
        let mut text = page();
        for line in [
            faulty(200, killed, "secondsWithoutOperator", 0.2, 3),
            faulty(200, deleted, "secondsToStop", 0.7, 0),
            faulty(16, killed, "secondsWithoutOperator", 0.1, 0),
            faulty(200, killed, "secondsWithoutOperator", 0.3, 1),
        ] {
            text = with_row(&text, &line).unwrap();
        }
        let rows = [
            "| 16 | operator killed while running | 20 | 0.100 | 2.0 MiB | 0.0 | 1.0 s | 0.1 s | - | 4.5 s | none |",
            "| 200 | deleted (orphan) | 20 | 0.100 | 25.0 MiB | 0.0 | 1.0 s | - | 0.7 s | 4.5 s | none |",
            "| 200 | operator killed while running | 20 | 0.100 | 25.0 MiB | 0.0 | 1.0 s | 0.3 s | - | 4.5 s | **1** |",
        ];
        let separator = "| --- |\n";
        let after = |rows: &str| page().replace(&format!("{}\n{separator}", FAULTS.header), rows);
        assert_eq!(text, after(&format!("{}\n{separator}{}\n", FAULTS.header, rows.join("\n"))));
        assert_eq!(points(&text), []);
    }

    #[test]
    fn the_plot_beside_the_page_is_that_of_its_rows() {
        let points = points(include_str!("../../../docs/evidence/scale.md"));
        assert!(!points.is_empty());
        assert_eq!(crate::plot::svg(&points), include_str!("../../../docs/evidence/scale.svg"));
    }

    #[test]
    fn points_are_the_rows_of_one_benchmark() {
        let mut several = measured(40, 0.5);
        several["benchmarks"] = json!(50);
        let mut text = page();
        for line in [measured(2_000, 0.25), several, measured(200, 0.125)] {
            text = with_row(&text, &line).unwrap();
        }
        let point = |shards, cores, mebibytes| Point { shards, cores, mebibytes };
        assert_eq!(points(&text), [point(200.0, 0.125, 25.0), point(2_000.0, 0.25, 250.0)]);
        assert_eq!(points("no table"), []);
    }
}
