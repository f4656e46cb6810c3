//! Applies faults to a run, and undoes them.

use std::path::PathBuf;

use redisbench_testkit::processes::signal;

use crate::fault::{Cut, Fault, Kind};
use crate::network::Network;
use crate::processes::{Process, below};
use crate::servers::{self, Server, move_slots};

#[derive(Clone, Copy, Debug)]
pub enum Undo {
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

pub struct Scene<'a> {
    pub work: PathBuf,
    pub program: i32,
    pub servers: Vec<Server>,
    pub network: &'a mut Network,
    pub password: bool,
}

impl Scene<'_> {
    /// Applies `fault` as number `injection`. None if its target does not exist any more.
    pub fn inject(&mut self, fault: Fault, injection: usize) -> Option<Undo> {
        let (target, server) = (fault.target, fault.target as usize);
        let done = |done: bool| done.then_some(Undo::Done);
        match fault.kind {
            Kind::KillShard => self.signal_shard(target, libc::SIGKILL).map(|_| Undo::Done),
            Kind::TerminateShard => self.signal_shard(target, libc::SIGTERM).map(|_| Undo::Done),
            Kind::StopShard => self.signal_shard(target, libc::SIGSTOP).map(Undo::Stopped),
            Kind::StopServer => self.stop_server(server),
            Kind::KillServer => done(self.kill_server(server)),
            Kind::RestartServer => self.kill_server(server).then_some(Undo::Gone(server)),
            Kind::KillClients => done(self.kill_clients(server)),
            Kind::RefuseClients => {
                let told = self.tell(server, &["CONFIG", "SET", "maxclients", "1"]) && self.kill_clients(server);
                told.then_some(Undo::Configured(server, "maxclients", "10000"))
            }
            Kind::CloseIdle => {
                let told = self.tell(server, &["CONFIG", "SET", "timeout", "1"]);
                told.then_some(Undo::Configured(server, "timeout", "0"))
            }
            Kind::SleepServer => {
                let seconds = fault.time.as_secs_f64().to_string();
                done(self.servers.get_mut(server)?.tell(&["DEBUG", "SLEEP", &seconds]).is_ok())
            }
            // An error, such as from a node that is down, may leave a slot half migrated.
            Kind::MoveSlots => done(move_slots(&mut self.servers, server).unwrap_or(true)),
            Kind::FailOver => done(self.fail_over()),
            Kind::InterruptConductor => done(signal(self.program, libc::SIGINT)),
            Kind::TerminateConductor => done(signal(self.program, libc::SIGTERM)),
            // Two pending signals of one kind would merge into one.
            Kind::InterruptConductorTwice => {
                done(signal(self.program, libc::SIGINT) && signal(self.program, libc::SIGTERM))
            }
            Kind::KillConductor => done(signal(self.program, libc::SIGKILL)),
            Kind::StopConductor => signal(self.program, libc::SIGSTOP).then_some(Undo::Stopped(self.program)),
            Kind::CutShard(cut) => self.cut(injection, self.shard_port(target)?, cut),
            Kind::CutServer(cut) => self.cut(injection, self.servers.get(server)?.port, cut),
            Kind::LosePackets(percent) => self.network.lose(injection, percent).is_ok().then_some(Undo::Cut),
        }
    }

    pub fn undo(&mut self, injection: usize, undo: Undo) {
        match undo {
            Undo::Done => {}
            Undo::Stopped(process) => {
                if process == self.program || below(&self.work).iter().any(|present| present.id == process) {
                    signal(process, libc::SIGCONT);
                }
            }
            Undo::StoppedServer(server) => self.servers[server].resume(),
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
        self.servers.get_mut(server).is_some_and(|server| server.ask::<()>(words).is_ok())
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
