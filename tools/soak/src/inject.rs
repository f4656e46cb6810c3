//! Applies faults to a run, and undoes them.

use std::path::PathBuf;

use redisbench_testkit::processes::signal;

use crate::evidence::Injection;
use crate::fault::{Cut, Fault};
use crate::network::Network;
use crate::processes::{Process, below};
use crate::scenario::Scenario;
use crate::servers::{self, Server, move_slots};

/// How to undo a fault.
#[derive(Clone, Copy, Debug)]
pub enum Undo {
    /// Nothing to undo.
    Done,
    /// Continue this stopped process.
    Stopped(i32),
    /// Continue this stopped server.
    StoppedServer(usize),
    /// Restart this server.
    Gone(usize),
    /// Restore this server's configuration.
    Configured(usize, &'static str, &'static str),
    /// Remove the network cut of the injection's number.
    Cut,
}

/// The targets of faults.
pub struct Scene<'a> {
    work: PathBuf,
    pub program: i32,
    pub servers: Vec<Server>,
    pub network: &'a mut Network,
    password: bool,
    undos: Vec<(usize, Undo)>,
}

impl<'a> Scene<'a> {
    pub fn new(
        scenario: &Scenario,
        work: PathBuf,
        program: i32,
        servers: Vec<Server>,
        network: &'a mut Network,
    ) -> Self {
        Self { work, program, servers, network, password: scenario.password, undos: Vec::new() }
    }

    /// Applies `fault` as number `injection`. None if its target does not exist any more.
    pub fn inject(&mut self, fault: Fault, injection: usize) -> Option<Undo> {
        match fault {
            Fault::KillShard { shard } => self.signal_shard(shard, libc::SIGKILL).map(|_| Undo::Done),
            Fault::TerminateShard { shard } => self.signal_shard(shard, libc::SIGTERM).map(|_| Undo::Done),
            Fault::StopShard { shard, .. } => self.signal_shard(shard, libc::SIGSTOP).map(Undo::Stopped),
            Fault::StopServer { server, .. } => self.stop_server(server as usize),
            Fault::KillServer { server } => self.kill_server(server as usize).then_some(Undo::Done),
            Fault::RestartServer { server, .. } => {
                let server = server as usize;
                self.kill_server(server).then_some(Undo::Gone(server))
            }
            Fault::KillClients { server } => self.kill_clients(server as usize).then_some(Undo::Done),
            Fault::RefuseClients { server, .. } => {
                let server = server as usize;
                let told = self.tell(server, &["CONFIG", "SET", "maxclients", "1"]) && self.kill_clients(server);
                told.then_some(Undo::Configured(server, "maxclients", "10000"))
            }
            Fault::CloseIdle { server, .. } => {
                let server = server as usize;
                let told = self.tell(server, &["CONFIG", "SET", "timeout", "1"]);
                told.then_some(Undo::Configured(server, "timeout", "0"))
            }
            Fault::SleepServer { server, time } => {
                let seconds = time.as_secs_f64().to_string();
                let told = self.servers.get_mut(server as usize)?.tell(&["DEBUG", "SLEEP", &seconds]);
                told.is_ok().then_some(Undo::Done)
            }
            Fault::MoveSlots { from, to } => {
                // An error, such as from a node that is down, may leave a slot half migrated.
                move_slots(&mut self.servers, from as usize, to as usize).unwrap_or(true).then_some(Undo::Done)
            }
            Fault::FailOver => self.fail_over().then_some(Undo::Done),
            Fault::InterruptConductor => signal(self.program, libc::SIGINT).then_some(Undo::Done),
            Fault::TerminateConductor => signal(self.program, libc::SIGTERM).then_some(Undo::Done),
            Fault::InterruptConductorTwice => {
                // Two pending signals of one kind would merge into one.
                (signal(self.program, libc::SIGINT) && signal(self.program, libc::SIGTERM)).then_some(Undo::Done)
            }
            Fault::KillConductor => signal(self.program, libc::SIGKILL).then_some(Undo::Done),
            Fault::StopConductor { .. } => signal(self.program, libc::SIGSTOP).then_some(Undo::Stopped(self.program)),
            Fault::CutShard { shard, how, .. } => {
                let port = self.shard_port(shard)?;
                self.cut(injection, port, how)
            }
            Fault::CutServer { server, how, .. } => {
                let port = self.servers.get(server as usize)?.port;
                self.cut(injection, port, how)
            }
            Fault::LosePackets { percent, .. } => self.network.lose(injection, percent).is_ok().then_some(Undo::Cut),
        }
    }

    /// Undoes the fault of number `injection`.
    pub fn undo(&mut self, injection: usize, undo: Undo) {
        match undo {
            Undo::Done => {}
            Undo::Stopped(process) => {
                if process == self.program || below(&self.work).iter().any(|present| present.id == process) {
                    signal(process, libc::SIGCONT);
                }
            }
            Undo::StoppedServer(server) => {
                self.servers[server].resume();
            }
            Undo::Gone(server) => {
                if let Err(error) = self.servers[server].restart() {
                    eprintln!("warning: {error:#}");
                }
            }
            Undo::Configured(server, name, value) => {
                self.tell(server, &["CONFIG", "SET", name, value]);
            }
            Undo::Cut => {
                if let Err(error) = self.network.mend(injection) {
                    eprintln!("warning: {error:#}");
                }
            }
        }
    }

    /// Keeps the faults that must be undone after the program has ended.
    pub fn keep(&mut self, undos: Vec<(usize, Undo)>) {
        self.undos = undos;
    }

    /// Undoes all remaining faults.
    pub fn undo_all(&mut self, injections: &mut [Injection], now: u64) {
        for (injection, undo) in std::mem::take(&mut self.undos) {
            // The program has ended, so servers need not be restarted nor processes continued.
            if !matches!(undo, Undo::Gone(_) | Undo::Stopped(_)) {
                self.undo(injection, undo);
            }
            injections[injection].undone = Some(now);
        }
    }

    fn signal_shard(&self, shard: u32, number: libc::c_int) -> Option<i32> {
        let process = below(&self.work).into_iter().find(|process| process.shard() == Some(shard))?;
        signal(process.id, number).then_some(process.id)
    }

    /// The servers started by `--with-redis`, in the order of their start.
    fn throwaways(&self) -> Vec<Process> {
        below(&self.work).into_iter().filter(Process::is_server).collect()
    }

    fn stop_server(&mut self, server: usize) -> Option<Undo> {
        if let Some(own) = self.servers.get(server) {
            return own.pause().then_some(Undo::StoppedServer(server));
        }
        let process = self.throwaways().get(server)?.id;
        signal(process, libc::SIGSTOP).then_some(Undo::Stopped(process))
    }

    fn kill_server(&mut self, server: usize) -> bool {
        if let Some(own) = self.servers.get_mut(server) {
            own.sample();
            return own.kill();
        }
        self.throwaways().get(server).is_some_and(|process| signal(process.id, libc::SIGKILL))
    }

    /// Tries one throwaway server after the other, because only a replica can take over.
    fn fail_over(&self) -> bool {
        // The process title ends with its address: `redis-server 127.0.0.1:7000 [cluster]`.
        let addresses = self.throwaways().into_iter().filter_map(|process| {
            process.words.join(" ").split(' ').find_map(|word| word.strip_prefix("127.0.0.1:")?.parse().ok())
        });
        let mut addresses: Vec<u16> = addresses.collect();
        // Replicas were started last.
        addresses.reverse();
        addresses.into_iter().any(|port| servers::tell_once(port, self.password, &["CLUSTER", "FAILOVER"]).is_ok())
    }

    fn kill_clients(&mut self, server: usize) -> bool {
        self.tell(server, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
    }

    fn tell(&mut self, server: usize, words: &[&str]) -> bool {
        self.servers.get_mut(server).is_some_and(|server| server.ask(words).is_ok())
    }

    fn cut(&mut self, injection: usize, port: u16, how: Cut) -> Option<Undo> {
        self.network.cut(injection, port, how).is_ok().then_some(Undo::Cut)
    }

    /// The port of the shard's control API, from the file that the load generator wrote.
    fn shard_port(&self, shard: u32) -> Option<u16> {
        let directories = std::fs::read_dir(self.work.join("tmp")).ok()?.flatten();
        let file =
            directories.map(|entry| entry.path().join(shard.to_string()).join("port")).find(|file| file.is_file());
        std::fs::read_to_string(file?).ok()?.trim().rsplit_once(':')?.1.parse().ok()
    }
}
