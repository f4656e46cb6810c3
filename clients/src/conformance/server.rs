//! A redis-server with a password, and a connection to it besides the driver's.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use super::peer::{PATIENCE, pause};

pub const PASSWORD: &str = "correct-horse";
pub const USER: &str = "driver";

#[derive(Debug)]
pub struct Server {
    process: Child,
    pub address: SocketAddr,
    /// Its data, and the files with credentials.
    pub directory: TempDir,
}

impl Server {
    pub fn start() -> Result<Self> {
        let directory = tempfile::tempdir().context("failed to create a directory")?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let login = format!(">{PASSWORD}");
        let process = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--requirepass", PASSWORD])
            .args(["--user", USER, "on", &login, "~*", "&*", "+@all"])
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .spawn()
            .context("install it (on Debian: apt-get install redis-server)")?;
        for (file, content) in [("password", PASSWORD), ("username", USER), ("wrong", "wrong")] {
            std::fs::write(directory.path().join(file), content)?;
        }
        let mut server = Self { process, address: (Ipv4Addr::LOCALHOST, port).into(), directory };
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = server.ask::<String>(&["PING"]) {
            if let Some(status) = server.process.try_wait()? {
                bail!("it exited with {status}");
            }
            ensure!(Instant::now() < deadline, "no reply to PING: {error:#}");
            pause();
        }
        Ok(server)
    }

    pub fn file(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    pub fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> Result<T> {
        let client = redis::Client::open(format!("redis://:{PASSWORD}@{}", self.address))?;
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(5))?;
        let (name, arguments) = words.split_first().context("no command")?;
        Ok(redis::cmd(name).arg(arguments).query(&mut connection)?)
    }

    /// The connections of others.
    pub fn clients(&self) -> Result<usize> {
        let list: String = self.ask(&["CLIENT", "LIST", "TYPE", "normal"])?;
        Ok(list.lines().count() - 1)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails only if it has exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
