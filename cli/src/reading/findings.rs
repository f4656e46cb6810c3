//! The verdict on a run, and its findings with their trials.

use std::cmp::Reverse;

use redisbench_benchmark::api::status::{ReasonKind, TrialLine, Verdict, VerdictReason, VerdictValue};
use redisbench_benchmark::human;
use redisbench_benchmark::report::{Measurement, doubtful};

use super::Reading;

/// A finding of one or several trials.
#[derive(Debug)]
pub struct Finding<'a> {
    /// The trials that have it, such as `trial 2 of 3, load.pipeline=8`. None for the whole run, and for a run of one trial.
    pub trials: Option<String>,
    pub reason: &'a VerdictReason,
}

impl Reading {
    /// The verdict of the benchmark; of results alone, the worst one.
    pub fn verdict(&self) -> Option<&Verdict> {
        let status = self.object.as_ref().and_then(|object| object.status.as_ref());
        let counted = || self.measurements.iter().filter(|trial| self.counts(trial));
        let worst = || counted().map(|trial| &trial.verdict).max_by_key(|verdict| verdict.value);
        status.and_then(|status| status.verdict.as_ref()).or_else(worst)
    }

    /// The findings, the worst first: all of each trial with a full result, and the worst one of every other, from the status.
    pub fn findings(&self) -> Vec<Finding<'_>> {
        let verdict = self.verdict().into_iter().flat_map(|verdict| &verdict.reasons);
        let of_run = |reason| Finding { trials: None, reason };
        if self.measurements.iter().all(|trial| trial.trial.of < 2) {
            return verdict.map(of_run).collect();
        }
        let has_result = |reason: &VerdictReason| {
            let rest = |trial: &Measurement| reason.message.strip_prefix(&self.place(trial));
            self.measurements.iter().filter_map(rest).any(|rest| rest.starts_with([',', ':']))
        };
        let is_of_run = |reason: &&VerdictReason| match reason.reason {
            ReasonKind::Trial => !has_result(reason),
            _ => true,
        };
        let mut findings: Vec<Finding<'_>> = match &self.object {
            Some(_) => verdict.filter(is_of_run).map(of_run).collect(),
            None => Vec::new(),
        };
        let mut known: Vec<(&VerdictReason, Vec<&Measurement>)> = Vec::new();
        for trial in self.measurements.iter().filter(|trial| self.counts(trial)) {
            for reason in &trial.verdict.reasons {
                match known.iter_mut().find(|(same, _)| *same == reason) {
                    Some((_, trials)) => trials.push(trial),
                    None => known.push((reason, vec![trial])),
                }
            }
        }
        let named = |(reason, trials): (_, Vec<&Measurement>)| Finding { trials: Some(self.name_all(&trials)), reason };
        findings.extend(known.into_iter().map(named));
        findings.sort_by_key(|finding| Reverse(finding.reason.severity));
        findings
    }

    /// Returns whether the verdict depends on `trial`: a step of a search that failed is part of any search.
    fn counts(&self, trial: &Measurement) -> bool {
        let lines = self.lines();
        let is_doubtful = |line: &TrialLine| line.verdict.is_some_and(|verdict| verdict > VerdictValue::Valid);
        let line = lines.iter().find(|line| line.index == trial.trial.index);
        line.is_none_or(|line| !is_doubtful(line) || doubtful(lines).iter().any(|other| other.index == line.index))
    }

    /// The lines of the trials, where they are known.
    fn lines(&self) -> &[TrialLine] {
        let status = self.object.as_ref().and_then(|object| object.status.as_ref());
        let recorded = self.experiment.as_ref().map_or(&[][..], |all| &all.trials);
        status.map(|status| status.trials.as_slice()).filter(|lines| !lines.is_empty()).unwrap_or(recorded)
    }

    fn place(&self, trial: &Measurement) -> String {
        let is_step = self.lines().iter().any(|line| line.index == trial.trial.index && line.search.is_some());
        human::place(trial.trial.index, (!is_step).then_some(trial.trial.of))
    }

    fn name_all(&self, trials: &[&Measurement]) -> String {
        match trials {
            [only] => [Some(self.place(only)), only.trial.setting.clone()]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(", "),
            several => several.iter().map(|trial| self.place(trial)).collect::<Vec<_>>().join(", "),
        }
    }
}
