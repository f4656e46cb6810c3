//! Formats numbers for people: three significant digits and a unit. Shared, so that a status and a table show the same.

use std::borrow::Cow;
use std::time::Duration;

/// `1234567` as `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `number` of a thing that `noun` names in the singular, such as `1 shard` and `2,000 shards`.
pub fn counted(number: u64, noun: &str) -> String {
    let (stem, ending) = match noun.strip_suffix('y') {
        _ if number == 1 => (noun, ""),
        Some(stem) if !stem.ends_with('e') => (stem, "ies"),
        _ if noun.ends_with("ch") => (noun, "es"),
        _ => (noun, "s"),
    };
    format!("{} {stem}{ending}", count(number))
}

/// The verb after a number.
pub fn are(number: u64) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

/// [`are`] in the past tense.
pub fn were(number: u64) -> &'static str {
    if number == 1 { "was" } else { "were" }
}

/// Requests per second, such as `2.00M/s`.
pub fn rate(per_second: u64) -> String {
    scaled(per_second, &[(1, "/s"), (1_000, "k/s"), (1_000_000, "M/s"), (1_000_000_000, "G/s")])
}

/// Requests per second with all digits, such as `12,345/s`: neighbouring steps of a search differ by little.
pub fn exact_rate(per_second: u64) -> String {
    format!("{}/s", count(per_second))
}

/// A ratio, in millionths, as its difference from one, such as `-8.77 %`; from ten times on as `x 12.0`.
pub fn change(millionths: u64) -> String {
    if millionths >= 10_000_000 {
        return format!("x {:.1}", millionths as f64 / 1e6);
    }
    format!("{:+.2} %", (millionths as f64 - 1e6) / 1e4)
}

/// A latency, such as `1.45 ms`. None at all is `0 s`, because long times use it too.
pub fn latency(nanoseconds: u64) -> String {
    if nanoseconds == 0 {
        return "0 s".to_owned();
    }
    scaled(nanoseconds, &[(1, " ns"), (1_000, " µs"), (1_000_000, " ms"), (1_000_000_000, " s")])
}

/// Bytes, such as `1.05 MB`.
pub fn bytes(bytes: u64) -> String {
    scaled(bytes, &[(1, " B"), (1_000, " kB"), (1_000_000, " MB"), (1_000_000_000, " GB"), (1_000_000_000_000, " TB")])
}

/// Bytes per second, such as `310 MB/s`.
pub fn bandwidth(bytes_per_second: u64) -> String {
    scaled(bytes_per_second, &[(1, " B/s"), (1_000, " kB/s"), (1_000_000, " MB/s"), (1_000_000_000, " GB/s")])
}

/// A number with its share of `all`, such as `320 (0.0003 %)`. A share above zero is never shown as zero.
pub fn share(part: u64, all: u64) -> String {
    let percent = if all == 0 { 0.0 } else { part as f64 * 100.0 / all as f64 };
    let decimals = match percent {
        _ if part == 0 => 0,
        p if p >= 99.95 => 0,
        p if p >= 9.995 => 1,
        p if p >= 0.9995 => 2,
        p if p >= 0.0095 => 3,
        p if p >= 0.0001 => 4,
        _ => return format!("{} (< 0.0001 %)", count(part)),
    };
    format!("{} ({percent:.decimals$} %)", count(part))
}

/// A trial's place from its index, such as `trial 2 of 10`; for a search `step 2`, because the number of steps is unknown.
pub fn place(index: u32, of: Option<u32>) -> String {
    let nth = index.saturating_add(1);
    of.map_or_else(|| format!("step {nth}"), |of| format!("trial {nth} of {of}"))
}

/// A length of time in whole seconds, such as `1m05s`.
pub fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

/// `units` are ascending and begin with 1.
fn scaled(value: u64, units: &[(u64, &str)]) -> String {
    for (index, &(unit, name)) in units.iter().enumerate() {
        let scaled = value as f64 / unit as f64;
        // A value that rounds to 1000 uses the next unit.
        if scaled >= 999.5 && index + 1 < units.len() {
            continue;
        }
        return match scaled {
            _ if unit == 1 => format!("{value}{name}"),
            _ if scaled < 9.995 => format!("{scaled:.2}{name}"),
            _ if scaled < 99.95 => format!("{scaled:.1}{name}"),
            _ => format!("{scaled:.0}{name}"),
        };
    }
    value.to_string()
}

/// The longest prefix of `text` that takes at most `most` bytes as JSON, where quotes and control characters are escaped.
pub fn cut(text: &str, most: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find(|(_, character)| {
        taken += match character {
            '"' | '\\' => 2,
            '\0'..='\u{1f}' => 6,
            other => other.len_utf8(),
        };
        taken > most
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// `text`, or a prefix and an ellipsis that take at most `most` bytes as JSON.
pub fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    if cut(text, most).len() == text.len() {
        return Cow::Borrowed(text);
    }
    let room = most.saturating_sub(GOES_ON.len_utf8());
    Cow::Owned(format!("{}{GOES_ON}", cut(text, room).trim_end()))
}

const GOES_ON: char = '…';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_fits_as_json() {
        for text in ["plain text", "\"\"\"\"\"\"", "\u{1}\u{2}\n\t", "éé€€𝄞𝄞", ""] {
            for most in 0..30 {
                let cut = cut(text, most);
                assert!(serde_json::to_string(cut).unwrap().len() <= most + 2);
                assert!(text.starts_with(cut));
            }
        }
        assert_eq!(cut("short", 5), "short");
        assert_eq!((shorten("short", 5), shorten("too long", 7)), ("short".into(), "too…".into()));
    }

    #[test]
    fn counts_have_groups() {
        assert_eq!([0, 12, 999, 1000, 1_234_567].map(count), ["0", "12", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 1, 2000].map(|number| counted(number, "shard")), ["0 shards", "1 shard", "2,000 shards"]);
        for (noun, plural) in [("search", "2 searches"), ("reply", "2 replies"), ("key", "2 keys")] {
            assert_eq!([counted(1, noun), counted(2, noun)], [format!("1 {noun}"), plural.to_owned()]);
        }
        assert_eq!([0, 1, 2].map(are), ["are", "is", "are"]);
    }

    #[test]
    fn three_digits_and_no_thousand() {
        assert_eq!([0, 7, 999, 1_450_000, 999_499].map(latency), ["0 s", "7 ns", "999 ns", "1.45 ms", "999 µs"]);
        assert_eq!([999_500, 9_995, 99_950, 99_949].map(latency), ["1.00 ms", "10.0 µs", "100 µs", "99.9 µs"]);
        assert_eq!(latency(600_000_000_000), "600 s");
        assert_eq!(latency(6_000_000_000_000), "6000 s");
        assert_eq!(rate(2_000_000), "2.00M/s");
        assert_eq!(bandwidth(310_000_000), "310 MB/s");
    }

    #[test]
    fn shares_tell_nothing_from_little() {
        assert_eq!(share(0, 100), "0 (0 %)");
        assert_eq!(share(0, 0), "0 (0 %)");
        assert_eq!(share(320, 120_000_000), "320 (0.0003 %)");
        assert_eq!(share(1, 120_000_000), "1 (< 0.0001 %)");
        assert_eq!(share(5_000, 10_000), "5,000 (50.0 %)");
        assert_eq!(share(9_999, 9_999), "9,999 (100 %)");
    }

    #[test]
    fn lengths_of_time() {
        let texts = [0, 59, 65, 3725].map(|number| seconds(Duration::from_secs(number)));
        assert_eq!(texts, ["0s", "59s", "1m05s", "1h02m"]);
    }
}
