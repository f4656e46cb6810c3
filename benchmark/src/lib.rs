//! Defines, plans, conducts, judges and reports a benchmark, wherever its shards run. Depends neither on a Kubernetes client nor on a
//! command line.
//!
//! Its modules are layers, and each imports only from those before it: `quantile`, `human` and `credential`; `api` with its validation;
//! `plan`; `measurement`, the merge of what shards counted; `verdict`; `evidence`; `conductor`; `report`, with the measurement that is written and read back.

pub mod api;
pub mod conductor;
pub mod credential;
pub mod evidence;
pub mod human;
pub mod measurement;
pub mod plan;
pub mod quantile;
pub mod report;
#[cfg(test)]
mod sample;
pub mod verdict;
