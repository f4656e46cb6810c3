use std::fmt::{self, Write as _};
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::patterns::DURATION_PATTERN;
use super::problem::Problem;

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const MILLISECOND: Duration = Duration::from_millis(1);
pub(super) const MINUTE: Duration = Duration::from_secs(60);
pub(super) const HOUR: Duration = Duration::from_secs(3600);

/// Duration in Go's format: `500ms`, `60s`, `1m30s`, `1.5h`. Keeps the user's text, so that reading an object never fails because of a
/// duration; [`GoDuration::parse`] validates it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GoDuration(String);

/// Reason why a duration is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Empty, or not a series of numbers with units.
    #[error("is not a duration; write numbers with units, such as 500ms, 60s, 1m30s")]
    Malformed,
    /// More nanoseconds than 64 bits can hold.
    #[error("is too long to be counted in nanoseconds")]
    TooLong,
}

impl GoDuration {
    /// Takes `text` without checking it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The length. Fractions of a nanosecond are dropped.
    ///
    /// # Errors
    /// If the text is not a duration, or longer than 584 years.
    pub fn parse(&self) -> Result<Duration, DurationError> {
        if self.0 == "0" {
            return Ok(Duration::ZERO);
        }
        let mut rest = self.0.as_str();
        if rest.is_empty() {
            return Err(DurationError::Malformed);
        }
        let mut total = 0_u64;
        while !rest.is_empty() {
            let (nanoseconds, after) = component(rest)?;
            total = total.checked_add(nanoseconds).ok_or(DurationError::TooLong)?;
            rest = after;
        }
        Ok(Duration::from_nanos(total))
    }
}

/// The first number with its unit, in nanoseconds, and the remaining text.
fn component(text: &str) -> Result<(u64, &str), DurationError> {
    let (whole, rest) = digits(text);
    if whole.is_empty() {
        return Err(DurationError::Malformed);
    }
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("0", rest),
    };
    // Longer units first: "ms" begins like "m".
    let units = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000_u64),
    ];
    let (rest, unit) = units
        .into_iter()
        .find_map(|(name, unit)| Some((rest.strip_prefix(name)?, unit)))
        .filter(|_| !fraction.is_empty())
        .ok_or(DurationError::Malformed)?;
    let whole: u64 = whole.parse().map_err(|_| DurationError::TooLong)?;
    let mut nanoseconds = whole.checked_mul(unit).ok_or(DurationError::TooLong)?;
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10;
        nanoseconds = nanoseconds.checked_add(u64::from(digit - b'0') * place).ok_or(DurationError::TooLong)?;
    }
    Ok((nanoseconds, rest))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

impl From<Duration> for GoDuration {
    /// The shortest exact text: `1m30s`, `500ms`, `0s`.
    fn from(duration: Duration) -> Self {
        let mut rest = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let mut text = String::new();
        for (name, unit) in [
            ("h", 3_600_000_000_000),
            ("m", 60_000_000_000),
            ("s", 1_000_000_000),
            ("ms", 1_000_000),
            ("us", 1_000),
            ("ns", 1),
        ] {
            if rest >= unit {
                // Writing into a string cannot fail.
                let _ = write!(text, "{}{name}", rest / unit);
                rest %= unit;
            }
        }
        if text.is_empty() {
            text.push_str("0s");
        }
        Self(text)
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl JsonSchema for GoDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "GoDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "maxLength": 16, "pattern": DURATION_PATTERN})
    }
}

/// Validates the durations below one field.
pub(super) struct Durations<'a> {
    pub problems: &'a mut Vec<Problem>,
    pub within: &'a str,
}

impl Durations<'_> {
    pub(super) fn between(&mut self, name: &str, text: &GoDuration, least: Duration, most: Duration) -> Duration {
        match text.parse() {
            Ok(duration) if (least..=most).contains(&duration) => return duration,
            // The schema's pattern has said it already.
            Err(DurationError::Malformed) => {}
            Ok(_) | Err(DurationError::TooLong) => {
                let message = format!("must be from {} to {}", GoDuration::from(least), GoDuration::from(most));
                self.problems.push(Problem::new(format!("{}.{name}", self.within), text, message));
            }
        }
        least
    }
}

/// Cannot overflow: all durations of a spec are bounded far below 64 bits.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nanoseconds(text: &str) -> Result<u128, DurationError> {
        GoDuration::new(text).parse().map(|duration| duration.as_nanos())
    }

    #[test]
    fn what_go_reads() {
        assert_eq!(nanoseconds("0"), Ok(0));
        assert_eq!(nanoseconds("0s"), Ok(0));
        assert_eq!(nanoseconds("250us"), Ok(250_000));
        assert_eq!(nanoseconds("250µs"), Ok(250_000));
        assert_eq!(nanoseconds("500ms"), Ok(500_000_000));
        assert_eq!(nanoseconds("1m30s"), Ok(90_000_000_000));
        assert_eq!(nanoseconds("1.5h"), Ok(5_400_000_000_000));
        assert_eq!(nanoseconds("1.25us"), Ok(1_250));
        assert_eq!(nanoseconds("1.9ns"), Ok(1));
    }

    #[test]
    fn what_go_refuses() {
        for text in ["", "1", "s", "1 s", "-1s", "1d", ".5s", "1.s", "1s1", "1.2.3s"] {
            assert_eq!(nanoseconds(text), Err(DurationError::Malformed), "{text}");
        }
        for text in ["999999999999999h", "99999999999999999999s", "5124095h34m33.71s5124095h"] {
            assert_eq!(nanoseconds(text), Err(DurationError::TooLong), "{text}");
        }
    }

    proptest! {
        #[test]
        fn written_and_read_again(nanoseconds: u64) {
            let duration = Duration::from_nanos(nanoseconds);
            prop_assert_eq!(GoDuration::from(duration).parse(), Ok(duration));
        }

        #[test]
        fn what_is_read_is_what_stands_there(text in r"[0-9.nuµmsh]{0,24}") {
            if let Ok(duration) = GoDuration::new(text.clone()).parse() {
                prop_assert_eq!(GoDuration::from(duration).parse(), Ok(duration));
                // A part that is added adds what it says.
                match GoDuration::new(format!("{text}1ms")).parse() {
                    Ok(longer) => prop_assert_eq!(longer, duration + Duration::from_millis(1)),
                    Err(error) => prop_assert_eq!(error, DurationError::TooLong),
                }
            }
        }
    }
}
