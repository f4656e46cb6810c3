//! What is done around, beside and before the requests of a workload. Nothing of it by default.

use serde::{Deserialize, Serialize};

use super::workload::Part;

/// What is done around, beside and before the requests of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadOptions {
    /// Whether commands may be sent that destroy what others keep on the server, or get in their way.
    pub allow_destructive: bool,
    /// What makes a transaction of every request.
    pub transaction: Option<Transaction>,
    /// How replicas are waited for after requests that write.
    pub wait: Option<Wait>,
    /// What is sent after a request that was answered with null.
    pub fills: Vec<Fill>,
    /// Scripts to load before, by SCRIPT LOAD.
    pub scripts: Vec<Script>,
    /// Libraries to load before, by FUNCTION LOAD REPLACE.
    pub functions: Vec<Script>,
    /// Whether the mix is an exact sequence: request k is of the operation that k modulo the sum of all weights falls to, and
    /// keys in sequence are walked by each operation for itself.
    pub in_turns: bool,
}

/// A script, or a library of functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Script {
    /// The name in the benchmark's spec.
    pub name: String,
    /// Its text.
    pub source: String,
}

/// MULTI, so many commands of the request's operation, and EXEC: one request. Command i of request k is what request
/// k * size + i would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transaction {
    /// Commands between MULTI and EXEC, at least 1.
    pub size: u32,
    /// Whether all of them take the keys that request k alone would; else each takes its own.
    pub shared_keys: bool,
}

/// The command that writes the key which a read of one operation has missed. It is no request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fill {
    /// The operation, by its index.
    pub operation: u32,
    /// The command's arguments, with the key where the operation's own command has it.
    pub arguments: Vec<Vec<Part>>,
}

/// WAIT behind a request and as part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// How many replicas should have it, at least 1.
    pub replicas: u32,
    /// How long the server waits for that, at least 1.
    pub timeout_milliseconds: u64,
    /// The operations that write, by their indices.
    pub operations: Vec<u32>,
}
