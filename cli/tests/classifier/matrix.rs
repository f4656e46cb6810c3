//! Counts of the verdicts on all situations.

use std::collections::BTreeMap;
use std::fmt;

use redisbench_testkit::evidence;

use crate::situation::{Situation, Told};

/// Quantile of the normal distribution for a 95 % interval.
const Z: f64 = 1.959_963_985;

const VALUES: [&str; 3] = ["Valid", "Degraded", "Invalid"];

/// The outcome of one run.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Kind {
    Right,
    /// Right, except that no limiting factor was named.
    Undecided,
    Wrong,
    /// The kernel's counters or the canary thread show that the machine prevented the situation.
    Unmade,
}

pub struct Run {
    kind: Kind,
    /// As in the columns of the table. Empty without a verdict.
    value: String,
    text: String,
}

impl Run {
    pub fn of(situation: &Situation, told: Told) -> Self {
        let expected = &situation.expected;
        let known =
            |reason: &String| [expected.reasons, expected.besides].iter().any(|some| some.contains(&reason.as_str()));
        let has = |reason: &&str| told.reasons.iter().any(|one| one == reason);
        let right = told.value == expected.value
            && told.complaint.is_none()
            && told.reasons.iter().all(known)
            && expected.reasons.iter().all(has);
        let component = match expected.component {
            "" => told.component.is_empty(),
            "ID" => !told.component.is_empty() && !told.component.contains('/') && told.component != "Path",
            end => told.component.ends_with(end),
        };
        let kind = if told.unmade.is_some() {
            Kind::Unmade
        } else if right && component && told.limited_by == expected.limited_by {
            Kind::Right
        } else if right && told.component.is_empty() && told.limited_by == "Unknown" {
            Kind::Undecided
        } else {
            Kind::Wrong
        };
        // A server's id differs between runs.
        let component = told.component.rsplit('/').next().unwrap_or_default();
        let mut text = format!("{} {} {component}", told.value, told.limited_by).trim().to_owned();
        let beside = [told.reasons.join(", "), told.complaint.unwrap_or_default(), told.unmade.unwrap_or_default()];
        for part in beside.iter().filter(|part| !part.is_empty()) {
            text = format!("{text}; {part}");
        }
        Self { kind, value: told.value, text }
    }

    pub fn is_made(&self) -> bool {
        self.kind != Kind::Unmade
    }

    /// A run without a verdict; its last output gives the reason.
    pub fn broken(log: &str) -> Self {
        let panic = log.split("panicked at ").nth(1).unwrap_or(log);
        let words: Vec<&str> = panic.split_whitespace().take(40).collect();
        Self { kind: Kind::Wrong, value: String::new(), text: format!("no verdict: {}", words.join(" ")) }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} | {}", self.kind, self.text)
    }
}

/// All runs.
pub struct Matrix {
    /// The date and the machine, when the first run began.
    measured: String,
    rows: BTreeMap<usize, (&'static str, &'static str, String, Vec<Run>)>,
}

impl Matrix {
    pub fn begin() -> Self {
        let measured = format!(
            "Measured by `make verdict` on {}, with programs built without optimisation.\n\n{}- commit: {}\n- redis-server: {}\n",
            evidence::today(),
            evidence::machine(),
            evidence::first_line("git", &["describe", "--always", "--abbrev=12", "--dirty"]),
            evidence::first_line("redis-server", &["--version"]),
        );
        Self { measured, rows: BTreeMap::new() }
    }

    pub fn add(&mut self, situation: &Situation, run: Run) {
        let row = self.rows.values().position(|row| row.0 == situation.expected.name).unwrap_or(self.rows.len());
        let expected = &situation.expected;
        let component = expected.component.trim_start_matches('/');
        let called = format!("{} {} {component}", expected.value, expected.limited_by).trim().to_owned();
        let row = self.rows.entry(row).or_insert_with(|| (expected.name, expected.value, called, Vec::new()));
        row.3.push(run);
    }

    fn runs(&self) -> impl Iterator<Item = (&'static str, &Run)> {
        self.rows.values().flat_map(|row| row.3.iter().map(|run| (row.1, run)))
    }

    fn count(&self, wanted: impl Fn(&'static str, &Run) -> bool) -> usize {
        self.runs().filter(|(expected, run)| wanted(expected, run)).count()
    }

    /// Runs that were Valid and should not be.
    fn valid_wrongly(&self) -> usize {
        self.count(|expected, run| is_of(expected) && expected != "Valid" && run.value == "Valid" && run.is_made())
    }

    /// # Panics
    /// If more than 2 % of all runs have an unexpected verdict, or if one of them is Valid and should not be.
    pub fn assert_good(&self) {
        let made = self.count(|_, run| run.is_made());
        let wrong = made - self.count(|_, run| run.kind == Kind::Right);
        assert!(wrong * 50 <= made, "{wrong} of {made} runs were not called what they must be");
        assert_eq!(self.valid_wrongly(), 0, "runs were called Valid that must not be");
    }
}

/// True for the value of a verdict; a search has none.
fn is_of(value: &str) -> bool {
    VALUES.contains(&value)
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.count(|_, run| run.is_made());
        let of = |kind| self.count(|_, run| run.kind == kind);
        let share = |part: usize, whole: usize| {
            let (low, high) = wilson(part, whole);
            format!("{part} of {whole} ({:.1} to {:.1} %)", 100.0 * low, 100.0 * high)
        };
        writeln!(f, "# Verdicts of provoked situations\n\n{}", self.measured)?;
        writeln!(
            f,
            "Each situation of `cli/tests/classifier/table.rs` is made with the built programs and real servers."
        )?;
        writeln!(
            f,
            "[results.md](../results.md#bounds) says how the verdict decides. No run is made again. Intervals are Wilson's, 95 %.\n"
        )?;
        writeln!(f, "| of all runs | |\n| --- | --- |")?;
        writeln!(f, "| not made | {} |", share(of(Kind::Unmade), self.runs().count()))?;
        writeln!(f, "| right | {} |", share(of(Kind::Right), made))?;
        writeln!(f, "| undecided: all is right, but no limit is named | {} |", share(of(Kind::Undecided), made))?;
        writeln!(f, "| wrong | {} |", share(of(Kind::Wrong), made))?;
        let bad = self.count(|expected, run| is_of(expected) && expected != "Valid" && run.is_made());
        writeln!(f, "| Valid where it must not be | {} |\n", share(self.valid_wrongly(), bad))?;
        writeln!(
            f,
            "A run is *not made* if a hypervisor took more than 2 % of the machine, a thread that only sleeps and wakes was late for more than 2 %"
        )?;
        writeln!(
            f,
            "of the time, or a server that must be saturated waited for a processor for more than 4 % of its time. Nothing that the run itself reports makes it *not made*.\n"
        )?;
        writeln!(
            f,
            "| value | given Valid | given Degraded | given Invalid | no verdict |\n| --- | --- | --- | --- | --- |"
        )?;
        for expected in VALUES {
            let given = VALUES.into_iter().chain([""]);
            let counts = given
                .map(|value| self.count(|one, run| one == expected && run.value == value && run.is_made()).to_string());
            writeln!(f, "| expected {expected} | {} |", counts.collect::<Vec<_>>().join(" | "))?;
        }
        writeln!(
            f,
            "\n| situation | must be called | right | undecided | wrong | not made | other verdicts |\n| --- | --- | --- | --- | --- | --- | --- |"
        )?;
        for (name, _, called, runs) in self.rows.values() {
            let of = |kind| runs.iter().filter(|run| run.kind == kind).count();
            let made = runs.len() - of(Kind::Unmade);
            let mut otherwise: BTreeMap<&str, usize> = BTreeMap::new();
            runs.iter()
                .filter(|run| run.kind != Kind::Right)
                .for_each(|run| *otherwise.entry(&run.text).or_default() += 1);
            let otherwise: Vec<_> = otherwise.iter().map(|(text, times)| format!("{times} x {text}")).collect();
            let otherwise = otherwise.join("<br>").replace('|', "/");
            let right = share(of(Kind::Right), made);
            let [undecided, wrong, unmade] = [Kind::Undecided, Kind::Wrong, Kind::Unmade].map(of);
            writeln!(f, "| {name} | {called} | {right} | {undecided} | {wrong} | {unmade} | {otherwise} |")?;
        }
        Ok(())
    }
}

/// The Wilson interval of a share.
fn wilson(part: usize, whole: usize) -> (f64, f64) {
    if whole == 0 {
        return (0.0, 1.0);
    }
    let (n, share) = (whole as f64, part as f64 / whole as f64);
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

#[test]
fn intervals_are_those_of_the_textbook() {
    // statsmodels: proportion_confint(count, nobs, method="wilson").
    for (part, whole, low, high) in [(0, 10, 0.0, 0.277_533), (10, 10, 0.722_467, 1.0), (8, 10, 0.490_162, 0.943_318)] {
        let (found_low, found_high) = wilson(part, whole);
        assert!((found_low - low).abs() < 1e-5 && (found_high - high).abs() < 1e-5, "{found_low} {found_high}");
    }
}

#[test]
fn a_run_is_right_undecided_wrong_or_not_made() {
    let situation = crate::table::SITUATIONS.iter().find(|situation| situation.key == "connections").unwrap();
    let told =
        |value: &str, limited_by: &str| Told { value: value.into(), limited_by: limited_by.into(), ..Told::default() };
    let kind = |told: Told| Run::of(situation, told).kind;
    assert_eq!(kind(told("Valid", "Connections")), Kind::Right);
    assert_eq!(kind(told("Valid", "Unknown")), Kind::Undecided);
    assert_eq!(kind(told("Valid", "Target")), Kind::Wrong);
    assert_eq!(kind(told("Degraded", "Connections")), Kind::Wrong);
    let noted = |told: Told| Told { reasons: vec!["SendLate".into()], ..told };
    assert_eq!(kind(noted(told("Valid", "Connections"))), Kind::Wrong, "a reason that must not be there");
    assert_eq!(kind(Told { complaint: Some("words".into()), ..told("Valid", "Connections") }), Kind::Wrong);
    assert_eq!(kind(Told { unmade: Some("steal".into()), ..told("Degraded", "Target") }), Kind::Unmade);
}

#[test]
fn keys_name_one_situation_each() {
    let mut keys: Vec<_> = crate::table::SITUATIONS.iter().map(|situation| situation.key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), crate::table::SITUATIONS.len());
}
