//! Figures as text.

use crate::table::Row;

pub fn spread(samples: &[f64]) -> String {
    match (samples.iter().copied().reduce(f64::min), samples.iter().copied().reduce(f64::max)) {
        (Some(low), Some(high)) if samples.len() > 1 => format!("{} to {}", number(low), number(high)),
        _ => String::new(),
    }
}

pub fn value(row: &Row) -> String {
    row.value().map_or_else(|| "-".to_owned(), |value| with_unit(&number(value), row.unit))
}

pub fn with_unit(number: &str, unit: &str) -> String {
    if unit.is_empty() { number.to_owned() } else { format!("{number} {unit}") }
}

pub fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}
