//! Additions to the requests of a workload: transactions, WAIT, fills, scripts, rates, mixes. All off by default.

use serde::{Deserialize, Serialize};

use super::argument::Part;
use super::caching::Caching;

/// Additions to the requests of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadOptions {
    /// Allows commands that destroy other users' data on the server or disturb them.
    pub allow_destructive: bool,
    /// Wraps every request in a transaction.
    pub transaction: Option<Transaction>,
    /// Waits for replicas after requests that write.
    pub wait: Option<Wait>,
    /// Commands to send after a request that was answered with null.
    pub fills: Vec<Fill>,
    /// Scripts to load before the trial, by SCRIPT LOAD.
    pub scripts: Vec<Script>,
    /// Libraries to load before the trial, by FUNCTION LOAD REPLACE.
    pub functions: Vec<Script>,
    /// Makes the mix an exact sequence: k modulo the sum of all weights selects the operation of request k. Each operation walks sequential
    /// keys on its own.
    pub in_turns: bool,
    /// Client-side caches of the reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caching: Option<Caching>,
    /// Operations of an open loop with rates of their own, which are not in the mix. Each at most once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<OperationRate>,
    /// The mix of each stage of an open loop: the weight of every operation, by its index. The warm-up has the first one. Empty if all
    /// stages have the mix of the operations' own weights.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mixes: Vec<Vec<u32>>,
}

/// The rate of an operation that is not in the mix. Its requests have due times and numbers of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationRate {
    /// The operation, by its index.
    pub operation: u32,
    /// Requests per second of the whole benchmark, at least 1.
    pub per_second: u64,
}

/// A script, or a library of functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Script {
    /// The name in the benchmark's spec.
    pub name: String,
    /// The source text.
    pub source: String,
}

/// MULTI, `size` commands of the request's operation, and EXEC, as one request. Command i of request k is generated as request k * size + i
/// would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transaction {
    /// Commands between MULTI and EXEC, at least 1.
    pub size: u32,
    /// If true, all commands use the keys of request k; otherwise each has its own.
    pub shared_keys: bool,
}

/// The command that writes a key after a read of one operation has missed it. Not a request of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fill {
    /// The operation, by its index.
    pub operation: u32,
    /// The command's arguments, with the key where the operation's own command has it.
    pub arguments: Vec<Vec<Part>>,
}

/// WAIT after a request, and part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// The number of replicas that must acknowledge, at least 1.
    pub replicas: u32,
    /// The server's timeout for it, at least 1.
    pub timeout_milliseconds: u64,
    /// The operations that write, by their indices.
    pub operations: Vec<u32>,
}
