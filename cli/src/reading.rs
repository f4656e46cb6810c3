//! Reads a finished benchmark back, from files or from a cluster. Every view of a result begins here.

#[cfg(feature = "cluster")]
pub mod cluster;
mod findings;
mod kept;

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::arguments::Source;
use crate::manifest::{Problem, documents};

pub use findings::Finding;
pub use kept::{Reading, ReadingError};

/// The largest document that is written, rounded up.
const LARGEST_FILE: u64 = 64 << 20;

/// Reads the result that `source` names.
///
/// # Errors
/// If it is not one, has not finished, lacks a part, or cannot be read.
#[cfg_attr(not(feature = "cluster"), expect(clippy::unused_async, reason = "reads no cluster"))]
pub async fn read(source: &Source) -> Result<Reading, ReadingError> {
    match &source.name {
        None => of_files(&source.file),
        #[cfg(feature = "cluster")]
        Some(name) => cluster::read(&source.cluster, name).await,
        #[cfg(not(feature = "cluster"))]
        Some(name) => Err(no_cluster(name)),
    }
}

/// Without the feature `cluster`, only files are read.
#[cfg(not(feature = "cluster"))]
pub fn no_cluster(name: &str) -> ReadingError {
    ReadingError::Cluster(anyhow::anyhow!(
        "{name}: cannot be read from a cluster: this program was built without its feature `cluster`; save it with \
         kubectl get redisbenchmark {name} -o json, and give that file"
    ))
}

/// Reads the result in `files`, all of one run.
///
/// # Errors
/// If it is not one, has not finished, lacks a part, or cannot be read.
pub fn of_files(files: &[PathBuf]) -> Result<Reading, ReadingError> {
    let mut reading = Reading::default();
    for file in files {
        let each = if file.is_dir() { of_directory(file)? } else { vec![file.clone()] };
        for file in each {
            let read = documents::read(&file, LARGEST_FILE).and_then(|text| reading.add(&text));
            read.map_err(|problem| refused(&file, problem))?;
        }
    }
    let place = || files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
    reading.checked().map_err(|problem| ReadingError::Refused { place: place(), problem })
}

/// The results in a directory of `local --output-dir`.
fn of_directory(directory: &Path) -> Result<Vec<PathBuf>, ReadingError> {
    let unreadable = |error: io::Error| refused(directory, Problem::file(format!("cannot be read: {error}")));
    let files = results_in(directory).map_err(unreadable)?;
    if files.is_empty() {
        let message = "has no NAME-trial-0.json; name a directory of `local --output-dir`, or a file";
        return Err(refused(directory, Problem::file(message.to_owned())));
    }
    Ok(files)
}

/// The files of results in `directory`, by name.
///
/// # Errors
/// If it cannot be read.
pub fn results_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".json"));
        let is_result = |name: &str| {
            let trial = name.rsplit_once("-trial-").is_some_and(|(_, index)| index.parse::<u32>().is_ok());
            !name.starts_with('.') && (trial || name.ends_with("-experiment"))
        };
        if name.is_some_and(is_result) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn refused(place: &Path, problem: Problem) -> ReadingError {
    ReadingError::Refused { place: place.display().to_string(), problem }
}

#[cfg(test)]
pub mod tests;
