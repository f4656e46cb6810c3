//! Shards as child processes of this program.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use redisbench_benchmark::conductor::{Endpoint, ShardPresence};
use redisbench_benchmark::credential::RunCredential;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::child::{Child, describe};
use crate::credentials::Access;
use crate::files::write_private;

/// The polling interval for the file with the port.
const LOOK: Duration = Duration::from_millis(10);
/// Timeout for stopping; the load generator stops at once on SIGTERM.
const STOP: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub enum ShardsError {
    #[error("{0} was not found beside this program or on PATH; build it or use --loadgen")]
    NoLoadGenerator(&'static str),
    #[error("failed to write the files of shard {shard}")]
    Files { shard: u32, source: io::Error },
    #[error("failed to start shard {shard}: {}", program.display())]
    Start { shard: u32, program: PathBuf, source: io::Error },
}

/// Settings common to all shards of a run.
#[derive(Debug)]
pub struct Setting<'a> {
    /// The load generator.
    pub program: &'a Path,
    pub run: &'a str,
    pub count: u32,
    /// Threads per shard.
    pub workers: u32,
    /// Authenticates conductor and shards to each other.
    pub credential: &'a RunCredential,
    /// The folders of the targets' secrets, parents first.
    pub folders: Vec<(String, &'a Access)>,
    /// The names and contents of the files of values, keys and the recording.
    pub files: &'a [(&'static str, String)],
    /// The drivers that shards start: name and command.
    pub drivers: &'a [(String, String)],
}

/// A process that ended without being stopped.
#[derive(Debug)]
pub struct Ended {
    pub shard: u32,
    pub status: String,
    pub last_words: String,
}

/// Running shards. End on drop.
#[derive(Debug)]
pub struct Shards {
    presence: watch::Receiver<Vec<ShardPresence>>,
    watchers: JoinSet<Option<Ended>>,
    stop: Vec<CancellationToken>,
}

/// A shard's process and its files, which are dropped after the process because it reads them until it exits.
#[derive(Debug)]
struct Process {
    child: Child,
    _directory: Arc<TempDir>,
}

impl Shards {
    /// Starts the shards without waiting; [`Shards::presence`] shows when they are ready.
    ///
    /// # Errors
    /// If their files cannot be written, or a process cannot be started.
    pub async fn start(setting: &Setting<'_>) -> Result<Self, ShardsError> {
        let directory = tempfile::Builder::new()
            .prefix("redisbench-local-")
            .tempdir()
            .map_err(|source| ShardsError::Files { shard: 0, source })?;
        let directory = Arc::new(directory);
        let absent = ShardPresence::Absent { why: None };
        let (sender, presence) = watch::channel(vec![absent; setting.count as usize]);
        let mut watchers = JoinSet::new();
        let mut stop = Vec::new();
        let host = host_name();
        for shard in 0..setting.count {
            let place = directory.path().join(shard.to_string());
            let arguments = prepare(setting, shard, &host, &place)?;
            let child = Child::start(setting.program, &arguments.words, b"")
                .await
                .map_err(|source| ShardsError::Start { shard, program: setting.program.to_owned(), source })?;
            let endpoint = Endpoint {
                shard,
                incarnation: arguments.incarnation,
                address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
                host: host.clone(),
            };
            let token = CancellationToken::new();
            let process = Process { child, _directory: Arc::clone(&directory) };
            watchers.spawn(watch_shard(process, endpoint, arguments.address_file, sender.clone(), token.clone()));
            stop.push(token);
        }
        Ok(Self { presence, watchers, stop })
    }

    pub fn presence(&self) -> watch::Receiver<Vec<ShardPresence>> {
        self.presence.clone()
    }

    /// Stops the process of one shard, if it is running.
    pub fn stop_one(&self, shard: u32) {
        if let Some(token) = self.stop.get(shard as usize) {
            token.cancel();
        }
    }

    /// Stops all running processes, waits for them, and returns those that had ended unexpectedly.
    pub async fn stop(mut self) -> Vec<Ended> {
        self.stop.iter().for_each(CancellationToken::cancel);
        let mut ended = Vec::new();
        while let Some(watched) = self.watchers.join_next().await {
            ended.extend(watched.ok().flatten());
        }
        ended.sort_by_key(|ended| ended.shard);
        ended
    }
}

struct Prepared {
    words: Vec<String>,
    incarnation: String,
    address_file: PathBuf,
}

fn prepare(setting: &Setting<'_>, shard: u32, host: &str, place: &Path) -> Result<Prepared, ShardsError> {
    let failed = |source| ShardsError::Files { shard, source };
    let credential = setting.credential;
    let identity = place.join("identity");
    let targets = place.join("targets");
    let address_file = place.join("port");
    write_private(place, &[]).map_err(failed)?;
    write_private(
        &identity,
        &[
            ("token", credential.token_text()),
            ("tls.crt", credential.certificate_pem()),
            ("tls.key", credential.private_key_pem()),
        ],
    )
    .map_err(failed)?;
    write_private(&targets, &[]).map_err(failed)?;
    for (folder, access) in &setting.folders {
        write_private(&targets.join(folder), &access.files()).map_err(failed)?;
    }
    let incarnation = uuid::Uuid::new_v4().to_string();
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let mut words: Vec<String> = [
        ["--run", setting.run],
        ["--index", &shard.to_string()],
        ["--incarnation", &incarnation],
        ["--host", host],
        ["--listen", "127.0.0.1:0"],
        ["--identity", &path(&identity)],
        ["--targets", &path(&targets)],
        ["--workers", &setting.workers.to_string()],
        ["--port-file", &path(&address_file)],
    ]
    .concat()
    .into_iter()
    .map(str::to_owned)
    .collect();
    words.insert(0, "shard".to_owned());
    if !setting.files.is_empty() {
        let folder = place.join("data");
        let files: Vec<_> = setting.files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        write_private(&folder, &files).map_err(failed)?;
        words.extend(["--data".to_owned(), path(&folder)]);
    }
    if !setting.drivers.is_empty() {
        let sockets = place.join("drivers");
        write_private(&sockets, &[]).map_err(failed)?;
        words.extend(["--sockets".to_owned(), path(&sockets)]);
    }
    for (name, command) in setting.drivers {
        words.extend(["--driver".to_owned(), format!("{name}={command}")]);
    }
    Ok(Prepared { words, incarnation, address_file })
}

async fn watch_shard(
    mut process: Process,
    mut endpoint: Endpoint,
    address_file: PathBuf,
    presence: watch::Sender<Vec<ShardPresence>>,
    stop: CancellationToken,
) -> Option<Ended> {
    let shard = endpoint.shard;
    let publish = |state: ShardPresence| presence.send_modify(|all| all[shard as usize] = state);
    let serving = async {
        endpoint.address = listening_address(&address_file).await;
        publish(ShardPresence::Present(endpoint));
        std::future::pending().await
    };
    let ended = tokio::select! {
        ended = process.child.wait() => ended,
        () = stop.cancelled() => {
            process.child.stop(STOP).await;
            publish(ShardPresence::Gone { why: "stopped".to_owned(), replaced: false });
            return None;
        }
        never = serving => never,
    };
    let status = match ended {
        Ok(status) if status.success() => {
            publish(ShardPresence::Done);
            return None;
        }
        Ok(status) => describe(status),
        Err(error) => error.to_string(),
    };
    let last_words = process.child.last_words().await;
    let why = match last_words.lines().last() {
        Some(line) => format!("{status}; last output: {line}"),
        None => status.clone(),
    };
    publish(ShardPresence::Gone { why, replaced: false });
    Some(Ended { shard, status, last_words })
}

/// Waits for the file with the load generator's address, which is written atomically.
async fn listening_address(file: &Path) -> SocketAddr {
    loop {
        if let Ok(text) = tokio::fs::read_to_string(file).await
            && let Ok(address) = text.trim().parse()
        {
            return address;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The path of the load generator: `asked`, or the one beside this program, or the one on `PATH`. With `clients`, the one that has client
/// libraries.
pub fn find_load_generator(asked: Option<&Path>, clients: bool) -> Result<PathBuf, ShardsError> {
    let name = if clients { "redisbench-clients" } else { "redisbench-loadgen" };
    if let Some(asked) = asked {
        return Ok(asked.to_owned());
    }
    // A kubectl plugin is often a link to the directory of both programs.
    let own = std::env::current_exe().and_then(std::fs::canonicalize).ok();
    let beside = own.as_deref().and_then(Path::parent).map(|directory| directory.join(name));
    let path = std::env::var_os("PATH").unwrap_or_default();
    beside
        .into_iter()
        .chain(std::env::split_paths(&path).map(|directory| directory.join(name)))
        .find(|candidate| candidate.is_file())
        .ok_or(ShardsError::NoLoadGenerator(name))
}

/// The name of the machine. Empty if the kernel does not report it.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_of_a_shard_stay_as_long_as_its_process() {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let place = directory.path().to_owned();
        let child = Child::start(Path::new("/bin/sleep"), &["600".to_owned()], b"").await.unwrap();
        let process = Process { child, _directory: directory };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let endpoint = Endpoint { shard: 0, incarnation: String::new(), address, host: String::new() };
        let sender = watch::Sender::new(vec![ShardPresence::Absent { why: None }]);
        let mut watchers = JoinSet::new();
        watchers.spawn(watch_shard(process, endpoint, place.join("port"), sender, CancellationToken::new()));
        drop(watchers);
        // The task is cancelled, but its child runs until the task has ended.
        assert!(place.exists());
        while place.exists() {
            tokio::task::yield_now().await;
        }
    }
}
