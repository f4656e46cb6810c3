//! Compares two or more subjects that were measured in turns: faster, slower, no difference, or inconclusive with this number of trials.
//!
//! Each pass has one trial of every subject, next to each other, so shared influences (a machine that warms up, a noisy neighbour) cancel
//! in the ratio of two subjects. The verdict uses the logarithms of a metric's ratios, one per pass, with Student's t, and from
//! [`BOOTSTRAP_FROM`] passes on with the bootstrap-t.
//!
//! The first block is marked as cold but counts. Without it, two of five pairs would be missing, and with them most of the power. Keeping
//! it causes no false findings: an outlying pair, however far off, widens the interval by more than it moves it. The cost is power. The
//! ratio of the cold block is reported beside that of the others, so that users can see it and choose a longer warm-up. Excluding the block
//! only where it looks odd would select trials by their results.

mod holm;
mod interval;
mod order;

pub use interval::BOOTSTRAP_FROM;
use interval::Evidence;
pub use order::{Place, order};

use crate::student::Confidence;
use crate::summary::{Direction, Interval, mean};

#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The metrics, in the order of each trial's values.
    pub metrics: &'a [Direction],
    /// The main metric, as an index into `metrics`. It has the full confidence. The others share one by Holm's procedure, because chance
    /// findings increase with the number of metrics.
    pub primary: usize,
    pub confidence: Confidence,
    /// The ratio below which a difference does not matter. 0.02 means that 1/1.02 to 1.02 is no difference.
    pub minimum_effect: f64,
    /// The bootstrap's seed: equal seeds and trials give equal results.
    pub seed: u64,
}

/// The metrics of one valid trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    pub place: Place,
    /// A value for each metric. None if unknown, such as a quantile beyond the answered requests.
    pub values: Vec<Option<f64>>,
}

/// A candidate compared with the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The subject's number.
    pub subject: usize,
    /// Passes in which both have a trial.
    pub pairs: usize,
    /// One for each metric of the question.
    pub metrics: Vec<Estimate>,
}

/// The ratio of a metric between candidate and baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The geometric mean of candidate over baseline. None, like all that follows, if a pair has no ratio because a value is unknown or 0.
    pub ratio: Option<f64>,
    /// The confidence interval of the ratio. None for fewer than 2 pairs.
    pub interval: Option<Interval>,
    /// The confidence of this interval: that of the question, or more if other metrics share it.
    pub confidence: Confidence,
    /// The ratio in the first block, which may have been cold.
    pub cold: Option<f64>,
    /// The ratio in all other blocks.
    pub warm: Option<f64>,
    pub outcome: Outcome,
}

/// The conclusion. Faster is better in the metric's direction: more throughput, less latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The candidate is better: the interval excludes 1.
    Faster,
    /// The candidate is worse: the interval excludes 1.
    Slower,
    /// The whole interval is within the minimum effect.
    NoDifference,
    Inconclusive {
        /// The smallest difference, such as 0.03 for a ratio of 1.03, that four of five experiments with this number of trials and this
        /// spread would have detected. None if the spread is unknown.
        detectable: Option<f64>,
    },
}

/// Compares every other subject with the subject `baseline`, ordered by subject.
pub fn compare(question: &Question<'_>, baseline: usize, trials: &[Trial]) -> Vec<Comparison> {
    let mut subjects: Vec<_> = trials.iter().map(|trial| trial.place.subject).filter(|&one| one != baseline).collect();
    subjects.sort_unstable();
    subjects.dedup();
    subjects
        .into_iter()
        .map(|subject| {
            let pairs = pairs(trials, baseline, subject);
            let per_metric = |metric| Ratios::of_pairs(&pairs, metric, question.seed);
            let ratios = (0..question.metrics.len()).map(per_metric).collect();
            Comparison { subject, pairs: pairs.len(), metrics: estimates(question, ratios) }
        })
        .collect()
}

/// Compares trials that did not run in turns, for example with a benchmark of another day. Every change between them counts as a
/// difference. Each trial is one value per metric.
pub fn compare_apart(
    question: &Question<'_>,
    baseline: &[Vec<Option<f64>>],
    candidate: &[Vec<Option<f64>>],
) -> Vec<Estimate> {
    let per_metric = |metric| Ratios::of_samples(baseline, candidate, metric);
    estimates(question, (0..question.metrics.len()).map(per_metric).collect())
}

/// The trials of each pass that has both, ordered by pass.
fn pairs(trials: &[Trial], baseline: usize, candidate: usize) -> Vec<(&Trial, &Trial)> {
    let of = |subject: usize| trials.iter().filter(move |trial| trial.place.subject == subject);
    let mut pairs: Vec<_> = of(baseline)
        .filter_map(|one| of(candidate).find(|other| other.place.pass == one.place.pass).map(|other| (one, other)))
        .collect();
    pairs.sort_by_key(|(one, _)| one.place.pass);
    pairs
}

/// The logarithm of candidate over baseline. None if undefined. Two zeros are equal.
fn log_ratio(baseline: Option<f64>, candidate: Option<f64>) -> Option<f64> {
    let (baseline, candidate) = (baseline?, candidate?);
    if baseline == 0.0 && candidate == 0.0 {
        return Some(0.0);
    }
    let ratio = (candidate / baseline).ln();
    (baseline > 0.0 && ratio.is_finite()).then_some(ratio)
}

/// The logarithms of a metric's ratios.
#[derive(Default)]
struct Ratios {
    mean: Option<f64>,
    evidence: Option<Evidence>,
    cold: Option<f64>,
    warm: Option<f64>,
}

impl Ratios {
    fn of_pairs(pairs: &[(&Trial, &Trial)], metric: usize, seed: u64) -> Self {
        let value = |trial: &Trial| trial.values.get(metric).copied().flatten();
        let each: Option<Vec<_>> = pairs.iter().map(|(one, other)| log_ratio(value(one), value(other))).collect();
        // A missing value is usually one that was too bad to measure, so leaving out its pair would bias the result.
        let Some(each) = each.filter(|each| !each.is_empty()) else { return Self::default() };
        let part = |cold: bool| {
            let of = pairs.iter().zip(&each).filter(|((one, _), _)| one.place.is_cold() == cold);
            let part: Vec<_> = of.map(|(_, &ratio)| ratio).collect();
            (!part.is_empty()).then(|| mean(&part))
        };
        // A seed per metric, so that one unlucky draw does not affect all of them.
        let evidence = Evidence::of_pairs(&each, seed.wrapping_add(metric as u64));
        Self { mean: Some(mean(&each)), evidence, cold: part(true), warm: part(false) }
    }

    fn of_samples(baseline: &[Vec<Option<f64>>], candidate: &[Vec<Option<f64>>], metric: usize) -> Self {
        let logs = |trials: &[Vec<Option<f64>>]| -> Option<Vec<f64>> {
            trials.iter().map(|values| log_ratio(Some(1.0), values.get(metric).copied().flatten())).collect()
        };
        let (Some(baseline), Some(candidate)) = (logs(baseline), logs(candidate)) else { return Self::default() };
        if baseline.is_empty() || candidate.is_empty() {
            return Self::default();
        }
        let difference = mean(&candidate) - mean(&baseline);
        Self { mean: Some(difference), evidence: Evidence::of_samples(&baseline, &candidate), ..Self::default() }
    }

    fn p_value(&self) -> f64 {
        self.evidence.as_ref().map_or(1.0, Evidence::p_value)
    }
}

fn estimates(question: &Question<'_>, ratios: Vec<Ratios>) -> Vec<Estimate> {
    let others = ratios.iter().enumerate().filter(|(metric, _)| *metric != question.primary);
    let p_values: Vec<_> = others.map(|(_, ratios)| ratios.p_value()).collect();
    let mut shares = holm::shares(&p_values, question.confidence.error()).into_iter();
    let tests: Vec<_> = (0..ratios.len())
        .map(|metric| if metric == question.primary { 1 } else { shares.next().unwrap_or(1) })
        .collect();
    ratios
        .into_iter()
        .zip(question.metrics)
        .zip(tests)
        .map(|((ratios, &direction), tests)| ratios.judged(question, direction, tests))
        .collect()
}

impl Ratios {
    fn judged(self, question: &Question<'_>, direction: Direction, tests: usize) -> Estimate {
        let confidence = question.confidence.shared_by(tests);
        let logarithms = self.evidence.as_ref().map(|evidence| evidence.interval(confidence));
        let interval = logarithms.map(|log| Interval { lower: log.lower.exp(), upper: log.upper.exp() });
        let indifferent = (1.0 + question.minimum_effect.max(0.0)).ln();
        let indifferent = Interval { lower: -indifferent, upper: indifferent };
        let outcome = match logarithms {
            Some(log) if log.lower > 0.0 => better(direction == Direction::HigherIsBetter),
            Some(log) if log.upper < 0.0 => better(direction == Direction::LowerIsBetter),
            Some(log) if log.is_within(&indifferent) => Outcome::NoDifference,
            _ => {
                let detectable = self.evidence.as_ref().map(|evidence| evidence.detectable(confidence).exp_m1());
                Outcome::Inconclusive { detectable }
            }
        };
        let ratio = |log: Option<f64>| log.map(f64::exp);
        Estimate {
            ratio: ratio(self.mean),
            interval,
            confidence,
            cold: ratio(self.cold),
            warm: ratio(self.warm),
            outcome,
        }
    }
}

fn better(better: bool) -> Outcome {
    if better { Outcome::Faster } else { Outcome::Slower }
}

#[cfg(test)]
mod tests;
