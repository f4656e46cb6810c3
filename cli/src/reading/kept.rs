//! The kept results of a finished benchmark, and the documents that hold them.

use redisbench_benchmark::api::RedisBenchmark;
use redisbench_benchmark::report::measurement::{self, HistogramSet, Histograms, Measurement};
use redisbench_benchmark::report::repeats::{self, ExperimentDocument};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::manifest::{self, Problem, documents};

/// The way out for documents of other versions.
const OTHER_VERSION: &str = "use the version that wrote the file, or a newer one";

/// A finished benchmark, as far as it was kept.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The object with its final status.
    pub object: Option<RedisBenchmark>,
    /// The full results, in the order of the trials. If there is only an object with a single trial: what its status has of the result.
    pub measurements: Vec<Measurement>,
    /// The aggregate of several trials.
    pub experiment: Option<ExperimentDocument>,
}

/// Why a result cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadingError {
    /// The input must be changed.
    #[error("{place}: {problem}")]
    Refused {
        /// The file or object.
        place: String,
        problem: Problem,
    },
    /// The cluster could not be asked.
    #[error("{0:#}")]
    Cluster(anyhow::Error),
}

/// The fields that identify a document.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    format: Option<String>,
}

impl Reading {
    /// Name of the benchmark.
    pub fn name(&self) -> &str {
        let object = self.object.as_ref().and_then(|object| object.metadata.name.as_deref());
        let first = self.measurements.first().map(|first| first.benchmark.as_str());
        object.or(first).or(self.experiment.as_ref().map(|all| all.benchmark.as_str())).unwrap_or_default()
    }

    /// Adds a document: an object, or a result of one or several trials.
    pub fn add(&mut self, text: &str) -> Result<(), Problem> {
        if !text.trim_start().starts_with('{') {
            return documents::split(text)?.into_iter().try_for_each(|document| self.add_object(document));
        }
        match parse::<Head>(text)?.format.as_deref() {
            Some(measurement::FORMAT) => self.measurements.push(parse(text)?),
            Some(repeats::FORMAT) => self.experiment = Some(parse(text)?),
            Some(other) => return Err(unknown(other)),
            None => self.add_object(parse(text)?)?,
        }
        Ok(())
    }

    fn add_object(&mut self, document: Value) -> Result<(), Problem> {
        let [version, kind] = ["apiVersion", "kind"].map(|field| document[field].as_str().unwrap_or_default());
        if kind != manifest::KIND {
            let message = format!(
                "is {kind:?}, and must be {}; save one object with `local -o json`, or with kubectl get redisbenchmark \
                 NAME -o yaml",
                manifest::KIND
            );
            return Err(Problem::field("kind", message));
        }
        if version != manifest::API_VERSION {
            let message = format!("is {version:?}; this program reads {}; {OTHER_VERSION}", manifest::API_VERSION);
            return Err(Problem::field("apiVersion", message));
        }
        let read = serde_json::from_value(document);
        self.object = Some(read.map_err(|error| {
            Problem::file(format!("is not a {} of a supported version: {error}; {OTHER_VERSION}", manifest::KIND))
        })?);
        Ok(())
    }

    /// The same, if it is one finished run.
    pub fn checked(mut self) -> Result<Self, Problem> {
        self.measurements.sort_by_key(|one| one.trial.index);
        if let Some(twice) = self.measurements.windows(2).find(|pair| pair[0].trial.index == pair[1].trial.index) {
            let message = format!("is {} in two files; give each trial of one run once", twice[0].trial.index);
            return Err(Problem::field("trial.index", message));
        }
        let status = self.object.as_ref().and_then(|object| object.status.as_ref());
        let runs = self.measurements.iter().map(|one| one.run_id.as_str());
        let runs = runs.chain(self.experiment.iter().map(|all| all.run_id.as_str()));
        let mut runs = runs.chain(status.and_then(|status| status.run_id.as_deref()));
        if let Some(first) = runs.next()
            && let Some(other) = runs.find(|other| *other != first)
        {
            return Err(Problem::field("runId", format!("is {first} and {other}; give the results of one run")));
        }
        if let Some(object) = &self.object {
            finished(object)?;
            if self.measurements.is_empty() {
                self.measurements.extend(of_status(object));
            }
        } else if self.measurements.is_empty() {
            let message = match self.experiment {
                Some(_) => "is the summary of several trials; give their results, NAME-trial-0.json and so on, too",
                None => "is empty; copy or download it again",
            };
            return Err(Problem::file(message.to_owned()));
        }
        Ok(self)
    }
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    serde_json::from_str(text).map_err(|error| {
        Problem::file(if error.is_data() {
            format!("is not a result of a supported version: {error}; {OTHER_VERSION}")
        } else {
            format!("is not a complete result: {error}; copy or download it again")
        })
    })
}

fn unknown(format: &str) -> Problem {
    let message = if format.starts_with("redisbench.dev/") {
        format!(
            "is {format:?}, which this program does not know; it reads {} and {}; {OTHER_VERSION}",
            measurement::FORMAT,
            repeats::FORMAT
        )
    } else {
        format!("is {format:?}, which is not a result of redisbench")
    };
    Problem::field("format", message)
}

/// A problem if `object` has no result yet.
pub fn finished(object: &RedisBenchmark) -> Result<(), Problem> {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let Some(status) = &object.status else {
        let message =
            "is missing: this is a manifest, not a finished benchmark; run it, and save the object".to_owned();
        return Err(Problem::field("status", message));
    };
    if status.phase.is_terminal() {
        return Ok(());
    }
    let message = format!(
        "is {:?}, so there is no result yet; wait with kubectl wait --for=condition=Finished --timeout=1h \
         redisbenchmark/{name}",
        status.phase
    );
    Err(Problem::field("status.phase", message))
}

/// The part of a single trial's result that the status has; none if nothing was measured.
fn of_status(object: &RedisBenchmark) -> Option<Measurement> {
    let status = object.status.clone()?;
    let (trial, result, verdict) = (status.trial?, status.result?, status.verdict?);
    let data = result.histogram.as_ref().map(|histogram| Value::from(histogram.data.as_str()));
    let response = data.and_then(|data| serde_json::from_value(data).ok());
    Some(Measurement {
        benchmark: object.metadata.name.clone().unwrap_or_default(),
        run_id: status.run_id.unwrap_or_default(),
        spec: Some(Box::new(object.spec.clone())),
        synchronization: status.synchronization.unwrap_or_default(),
        topology: status.topology.unwrap_or_default(),
        thresholds: status.thresholds,
        histograms: response.map(|response| Histograms {
            total: HistogramSet { response, service: None, error_replies: None },
            operations: Vec::new(),
            operations_left_out: true,
            nodes: Vec::new(),
            nodes_left_out: true,
        }),
        seconds_left_out: true,
        shards_left_out: true,
        ..Measurement::new(trial, result, verdict)
    })
}
