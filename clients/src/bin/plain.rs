//! `redisbench-plain`: a client library called the simplest way, without a load generator. A second source for the throughput that a
//! closed loop through the same library has.

use std::num::NonZero;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use fred::bytes::Bytes;
use fred::interfaces::{ClientLike as _, KeysInterface as _};
use fred::types::Builder;
use fred::types::config::{Config, ServerConfig};
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands as _, AsyncConnectionConfig};

const KEYS: usize = 1_000;
/// Bytes of a value.
const VALUE: usize = 100;
/// redis-rs would wait half a second, which a busy machine may take.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(30));

/// GETs over one connection of a library, from tasks that each wait for a reply before their next request.
#[derive(Debug, Parser)]
struct Options {
    /// The library
    #[arg(long, value_enum)]
    library: Library,
    /// Port of a redis-server on 127.0.0.1
    #[arg(long)]
    port: u16,
    /// Number of tasks
    #[arg(long, default_value = "64")]
    tasks: NonZero<usize>,
    /// Number of measured requests. A tenth as many run before
    #[arg(long, default_value_t = 500_000)]
    requests: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Library {
    RedisRs,
    Fred,
}

#[derive(Clone)]
enum Client {
    RedisRs(MultiplexedConnection),
    Fred(fred::clients::Client),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let client = Client::connect(&options).await.context("failed to prepare")?;
    let tasks = options.tasks.get();
    load(&client, tasks, options.requests / 10).await?;
    let took = load(&client, tasks, options.requests).await?;
    println!("requests per second: {:.0}", options.requests as f64 / took.as_secs_f64());
    Ok(())
}

impl Client {
    /// Writes all keys, and connects.
    async fn connect(options: &Options) -> anyhow::Result<Self> {
        let port = options.port;
        let client = redis::Client::open(format!("redis://127.0.0.1:{port}"))?;
        let config = AsyncConnectionConfig::new().set_connection_timeout(PATIENCE).set_response_timeout(PATIENCE);
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        let value = "x".repeat(VALUE);
        for number in 0..KEYS {
            let () = connection.set(key(number), value.as_str()).await?;
        }
        Ok(match options.library {
            Library::RedisRs => Self::RedisRs(connection),
            Library::Fred => {
                let server = ServerConfig::new_centralized("127.0.0.1", port);
                let client = Builder::from_config(Config { server, ..Config::default() }).build()?;
                client.init().await?;
                Self::Fred(client)
            }
        })
    }

    async fn get(&mut self, key: String) -> anyhow::Result<()> {
        let length = match self {
            Self::RedisRs(connection) => {
                let value: Option<Vec<u8>> = connection.get(key).await?;
                value.map(|value| value.len())
            }
            Self::Fred(client) => {
                let value: Option<Bytes> = client.get(key).await?;
                value.map(|value| value.len())
            }
        };
        anyhow::ensure!(length == Some(VALUE), "a GET returned {length:?} bytes instead of {VALUE}");
        Ok(())
    }
}

fn key(number: usize) -> String {
    format!("plain:{}", number % KEYS)
}

/// Sends `requests` from `tasks` tasks. Returns the time until the last reply.
async fn load(client: &Client, tasks: usize, requests: usize) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    let task = |first: usize| {
        let mut client = client.clone();
        tokio::spawn(async move {
            for number in (first..requests).step_by(tasks) {
                client.get(key(number)).await?;
            }
            anyhow::Ok(())
        })
    };
    let all: Vec<_> = (0..tasks).map(task).collect();
    for one in all {
        one.await.context("a task panicked")??;
    }
    Ok(begin.elapsed())
}
