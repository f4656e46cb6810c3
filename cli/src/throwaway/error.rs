//! Why a throwaway server could not be started or used.

use std::io;

use super::limits::{PATIENCE, REPLICAS, SERVERS};

/// Why a throwaway server could not be started or used.
#[derive(Debug, thiserror::Error)]
pub enum ThrowawayError {
    /// The program is missing or cannot be started.
    #[error(
        "failed to start redis-server; install it (on Debian: apt-get install redis-server) or leave --with-redis out"
    )]
    Start(#[source] io::Error),
    #[error("failed to create a directory for redis-server")]
    Directory(#[source] io::Error),
    #[error("failed to create a certificate for redis-server")]
    Certificate(#[source] rcgen::Error),
    #[error("failed to find a free port on 127.0.0.1")]
    Port(#[source] io::Error),
    #[error("redis-server exited with {status}; its output:\n{output}")]
    Ended { status: String, output: String },
    #[error("failed to run {command} on the redis-server at {address}")]
    Command {
        /// The command without its arguments.
        command: &'static str,
        address: String,
        source: redis::RedisError,
    },
    #[error("timed out after {} s waiting until {condition}; last: {last}", PATIENCE.as_secs())]
    Patience {
        condition: &'static str,
        /// The last observed state.
        last: String,
    },
    /// The user name is not possible in an ACL.
    #[error("the user name {0:?} cannot be used with --with-redis: it is empty or contains white space")]
    UserName(String),
    /// More replicas than one machine should run.
    #[error(
        "spec.workload.wait.replicas: {0}: --with-redis starts at most {most} replicas per primary: use fewer, or your \
         own servers",
        most = REPLICAS
    )]
    Replicas(u32),
    /// More servers than one machine should run.
    #[error(
        "spec.targets, {target}: a pool of {servers} endpoints: --with-redis starts at most {most}: list fewer, or use \
         your own servers",
        most = SERVERS
    )]
    Servers {
        /// The name of the pool.
        target: String,
        servers: usize,
    },
    /// The task that called the server panicked.
    #[error("failed to communicate with redis-server")]
    Task(#[source] tokio::task::JoinError),
}
