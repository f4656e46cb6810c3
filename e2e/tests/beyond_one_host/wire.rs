//! Captures packets that arrive at a server.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use redisbench_e2e::faults::Process;
use redisbench_testkit::processes::Running;

/// Packets whose payload begins with a command of two words, the first being GET: requests, but none of the commands that connecting and
/// preloading send.
const REQUESTS: &str = "tcp dst port 6379 and tcp[((tcp[12] & 0xf0) >> 2) + 8 : 4] = 0x4745540d";

/// Enough packets for the first of all shards; limits the size of the capture.
const PACKETS: &str = "4000";

/// tcpdump in a pod's network. Ended on drop.
pub struct Capture(Running);

impl Capture {
    pub fn begin(pod: &Pod) -> Result<Self> {
        let pid = Process::of(pod)?.pid.to_string();
        let program = Command::new("nsenter")
            .args([
                "--target", &pid, "--net", "--", "tcpdump", "-n", "-tt", "-q", "-i", "eth0", "-c", PACKETS, REQUESTS,
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("failed to start tcpdump")?;
        let mut program = Running(program);
        let mut said = String::new();
        let mut errors = BufReader::new(program.0.stderr.take().context("no standard error")?);
        while !said.contains("listening on") {
            said.clear();
            ensure!(errors.read_line(&mut said)? > 0, "tcpdump ended before it listened");
        }
        // Drain its later output.
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        Ok(Self(program))
    }

    /// The time of each client's first request on the kernel's clock, by the client's address.
    pub fn first_requests(mut self, clients: usize) -> Result<BTreeMap<String, Duration>> {
        let output = BufReader::new(self.0.0.stdout.take().context("no standard output")?);
        let mut first = BTreeMap::new();
        for line in output.lines() {
            let line = line?;
            // 1790000000.123456 IP 10.244.1.7.41234 > 10.244.2.3.6379: tcp 40
            let mut words = line.split_whitespace();
            let (Some(at), Some(_), Some(from)) = (words.next(), words.next(), words.next()) else { continue };
            let (Ok(at), Some((address, _))) = (at.parse::<f64>(), from.rsplit_once('.')) else { continue };
            first.entry(address.to_owned()).or_insert(Duration::from_secs_f64(at));
            if first.len() == clients {
                return Ok(first);
            }
        }
        anyhow::bail!("the first {PACKETS} requests came from {} clients: {first:?}", first.len())
    }
}
