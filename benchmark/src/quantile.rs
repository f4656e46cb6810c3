//! Quantiles: their text form, and the number of requests that each needs.

/// In millionths.
const WHOLE: u32 = 1_000_000;
/// Minimum expected number of requests on either side of a quantile before it is reported. With fewer, a single request moves it.
const ON_EITHER_SIDE: u64 = 10;

/// A share of all requests, in millionths: 1 to 1,000,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantile(u32);

impl Quantile {
    pub const P50: Self = Self(500_000);
    pub const P90: Self = Self(900_000);
    pub const P95: Self = Self(950_000);
    pub const P99: Self = Self(990_000);
    pub const P999: Self = Self(999_000);
    pub const P9999: Self = Self(999_900);
    /// The default of `measurement.percentiles`.
    pub const USUAL: [Self; 6] = [Self::P50, Self::P90, Self::P95, Self::P99, Self::P999, Self::P9999];

    /// None for 0 and for more than 1,000,000.
    pub fn of_millionths(millionths: u32) -> Option<Self> {
        (1..=WHOLE).contains(&millionths).then_some(Self(millionths))
    }

    /// Parses a decimal from 0.000001 to 1; none for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let millionths = match text.split_once('.') {
            None if text == "1" => WHOLE,
            Some(("0", digits)) => decimals(digits, 6)?,
            _ => return None,
        };
        Self::of_millionths(millionths)
    }

    /// Parses a number above 0 and below 100 with at most four decimals; none for anything else.
    pub fn of_percent(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_short = (1..=2).contains(&whole.len()) && whole.bytes().all(|digit| digit.is_ascii_digit());
        let percent: u32 = whole.parse().ok().filter(|_| is_short)?;
        Self::of_millionths(percent * 10_000 + decimals(fraction, 4)?)
    }

    pub fn millionths(self) -> u32 {
        self.0
    }

    /// In per cent, such as `99.9`.
    pub fn percent(self) -> String {
        trimmed(&format!("{}.{:04}", self.0 / 10_000, self.0 % 10_000))
    }

    /// As a share, such as `0.999`.
    pub fn share(self) -> String {
        trimmed(&format!("{}.{:06}", self.0 / WHOLE, self.0 % WHOLE))
    }

    /// For people, such as `p99.9`; `max` for the whole.
    pub fn name(self) -> String {
        if self.0 == WHOLE { "max".to_owned() } else { format!("p{}", self.percent()) }
    }

    /// Minimum number of requests to report this quantile. The maximum is known from the first request on.
    pub fn needs(self) -> u64 {
        let nearer = self.0.min(WHOLE - self.0);
        (ON_EITHER_SIDE * u64::from(WHOLE)).checked_div(nearer.into()).map_or(1, |requests| requests.max(1))
    }
}

/// Parses up to `places` decimals as an integer in units of the last place.
fn decimals(digits: &str, places: usize) -> Option<u32> {
    let fits = (1..=places).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    fits.then(|| format!("{digits:0<places$}").parse().ok()).flatten()
}

fn trimmed(decimal: &str) -> String {
    decimal.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_read_as_written() {
        let names =
            ["0.5", "0.99", "0.999", "0.990", "0.000001", "1"].map(|text| Quantile::parse(text).unwrap().name());
        assert_eq!(names, ["p50", "p99", "p99.9", "p99", "p0.0001", "max"]);
        for wrong in ["", "0", "0.", "0.0", "1.0", "99", "0.9999999", "0.9e1", "-0.5", ".5", "0.5 "] {
            assert_eq!(Quantile::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn percentiles_are_read_as_written() {
        for (text, percent, share) in
            [("50", "50", "0.5"), ("99.9", "99.9", "0.999"), ("99.0", "99", "0.99"), ("0.0001", "0.0001", "0.000001")]
        {
            let quantile = Quantile::of_percent(text).unwrap();
            assert_eq!((quantile.percent().as_str(), quantile.share().as_str()), (percent, share));
            assert_eq!(Quantile::parse(share), Some(quantile));
            assert_eq!(Quantile::of_percent(percent), Some(quantile));
        }
        for wrong in ["", "0", "0.0", "100", "99.99999", "-1", "+1", "1e1", "99.", ".5", "50 ", "p99", "NaN"] {
            assert_eq!(Quantile::of_percent(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ten_requests_lie_on_either_side() {
        let needs = ["0.5", "0.9", "0.99", "0.9999", "0.01", "0.999999", "1"]
            .map(|text| Quantile::parse(text).unwrap().needs());
        assert_eq!(needs, [20, 100, 1_000, 100_000, 1_000, 10_000_000, 1]);
    }
}
