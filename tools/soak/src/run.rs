//! One run: starts the program, applies the faults at their times, and collects the evidence.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use redisbench_testkit::processes::{die_with_parent, signal};

use crate::evidence::{Calls, Ended, Evidence, Injection};
use crate::inject::{Scene, Undo};
use crate::network::{Network, SmallDisk};
use crate::processes::{below, look_again, peak_kib};
use crate::scenario::Scenario;
use crate::servers::{self, Server};

/// The interval between samples of the program's memory.
const TICK: Duration = Duration::from_millis(100);
/// Timeout for killed processes to end.
const GONE: Duration = Duration::from_secs(5);

/// Performs `scenario` with the programs in `programs`, in the new directory `directory`.
///
/// # Errors
/// If the soak itself fails. Failures of the product are evidence.
pub fn perform(
    scenario: &Scenario,
    programs: &Path,
    directory: &Path,
    network: &mut Network,
) -> anyhow::Result<Evidence> {
    let work = directory.join("work");
    let temporary = work.join("tmp");
    fs::create_dir_all(&temporary)?;
    let _disk = scenario.small_disk.map(|kib| SmallDisk::mount(&temporary, kib)).transpose()?;
    let servers = if scenario.redis.is_own() {
        servers::start(directory, scenario.redis.is_cluster(), scenario.password)
    } else {
        Vec::new()
    };
    let endpoints: Vec<_> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
    fs::write(directory.join("manifest.yaml"), scenario.manifest(&endpoints))?;
    let own_ports: Vec<u16> = network.listening();
    let mut program = start(scenario, programs, directory, &work)?;
    let began = Instant::now();
    let heard = listen(&mut program)?;
    let mut scene = Scene::new(scenario, work.clone(), i32::try_from(program.id())?, servers, network);
    let course = follow(scenario, &heard, began, &mut scene);
    let hung = course.is_err();
    if hung {
        let _ = program.kill();
    }
    let status = program.wait()?;
    let took = began.elapsed();
    let mut course = course.unwrap_or_else(|course| course);
    scene.undo_all(&mut course.injections, unix_nanoseconds());
    let stdout = course.stdout.join("\n");
    let calls = scenario.redis.is_own().then(|| count(scenario, &mut scene.servers));
    let left_processes = left(&work);
    let left_ports = left_ports(scene.network, &own_ports);
    let evidence = Evidence {
        ended: match (hung, status.code(), status.signal()) {
            (true, ..) => Ended::Hung,
            (_, Some(code), _) => Ended::Code(code),
            (_, None, signal) => Ended::Signal(signal.unwrap_or_default()),
        },
        took,
        object: serde_json::from_str(&stdout).ok(),
        stdout,
        stderr: course.stderr.join("\n"),
        logs: logs(directory),
        calls,
        peak_kib: course.peak_kib,
        left_processes,
        left_files: names(&temporary),
        left_ports,
        injections: course.injections,
    };
    write_down(directory, scenario, &evidence)?;
    Ok(evidence)
}

fn start(scenario: &Scenario, programs: &Path, directory: &Path, work: &Path) -> anyhow::Result<Child> {
    let loadgen = wrap_load_generator(scenario, programs, directory)?;
    let program = programs.join("kubectl-redisbench");
    let mut command = Command::new(&program);
    command.args(["local", "-o", "json", "-f"]).arg(directory.join("manifest.yaml")).arg("--loadgen").arg(loadgen);
    if !scenario.redis.is_own() {
        command.arg("--with-redis");
    }
    let stdout =
        if scenario.full_disk { File::options().write(true).open("/dev/full")?.into() } else { Stdio::piped() };
    command
        .current_dir(work)
        .env("TMPDIR", work.join("tmp"))
        .env("REDISBENCH_LOG", "info")
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped());
    die_with_parent(&mut command);
    command.spawn().with_context(|| format!("failed to start {}; build it first with make soak", program.display()))
}

/// A wrapper script for the load generator, which writes its log to a file and sets the drawn clock.
fn wrap_load_generator(scenario: &Scenario, programs: &Path, directory: &Path) -> anyhow::Result<PathBuf> {
    let loadgen = programs.join("redisbench-loadgen");
    anyhow::ensure!(loadgen.is_file(), "{} is not built; run make soak", loadgen.display());
    let clocks: Vec<_> =
        (0..).zip(&scenario.clocks).map(|(shard, ahead)| format!("{shard}) ahead={ahead};;")).collect();
    let (place, loadgen, clocks) = (directory.display(), loadgen.display(), clocks.join(" "));
    let text = format!(
        "#!/bin/sh\n# shard --run ID --index N ..\nexec 2>>'{place}'/shard-$5.log\nahead=\n\
         case $5 in {clocks} *) ;; esac\n\
         [ -z \"$ahead\" ] || exec unshare --time --monotonic $ahead '{loadgen}' \"$@\"\nexec '{loadgen}' \"$@\"\n"
    );
    let path = directory.join("loadgen.sh");
    fs::write(&path, text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// A line of the program's output.
enum Heard {
    Stdout(String),
    Stderr(String),
}

/// Reads both streams to their ends. The channel closes when both have ended.
fn listen(program: &mut Child) -> anyhow::Result<Receiver<Heard>> {
    let (sender, heard) = mpsc::channel();
    let stderr = BufReader::new(program.stderr.take().context("the child has no standard error")?);
    if let Some(mut stdout) = program.stdout.take() {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stdout.read_to_end(&mut bytes);
            let _ = sender.send(Heard::Stdout(String::from_utf8_lossy(&bytes).into_owned()));
        });
    }
    std::thread::spawn(move || {
        for line in stderr.split(b'\n').map_while(Result::ok) {
            let _ = sender.send(Heard::Stderr(String::from_utf8_lossy(&line).into_owned()));
        }
    });
    Ok(heard)
}

/// Observations until the program ended.
#[derive(Default)]
struct Course {
    stdout: Vec<String>,
    stderr: Vec<String>,
    peak_kib: u64,
    injections: Vec<Injection>,
}

/// Follows the program until it closes its streams. The error is the course of a program that hung.
fn follow(
    scenario: &Scenario,
    heard: &Receiver<Heard>,
    began: Instant,
    scene: &mut Scene<'_>,
) -> Result<Course, Course> {
    let mut course = Course::default();
    let mut to_come = scenario.faults.iter().copied().peekable();
    let mut undos: Vec<(Instant, usize, Undo)> = Vec::new();
    loop {
        match heard.recv_timeout(TICK / 5) {
            Ok(Heard::Stdout(text)) => course.stdout.push(text),
            Ok(Heard::Stderr(line)) => course.stderr.push(line),
            Err(RecvTimeoutError::Disconnected) => {
                scene.keep(undos.into_iter().map(|(_, injection, undo)| (injection, undo)).collect());
                return Ok(course);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        while let Some((_, fault)) = to_come.next_if(|(at, _)| began + *at <= now) {
            let injection = course.injections.len();
            let (after, time, undo) = (began.elapsed(), unix_nanoseconds(), scene.inject(fault, injection));
            course.injections.push(Injection { fault, after, at: time, undone: None, hit: undo.is_some() });
            if let Some(undo) = undo.filter(|_| !fault.lasts().is_zero()) {
                undos.push((Instant::now() + fault.lasts(), injection, undo));
            }
        }
        while let Some(over) = undos.iter().position(|(until, ..)| *until <= now) {
            let (_, injection, undo) = undos.swap_remove(over);
            scene.undo(injection, undo);
            course.injections[injection].undone = Some(unix_nanoseconds());
        }
        course.peak_kib = course.peak_kib.max(peak_kib(scene.program));
        if began.elapsed() > scenario.patience() {
            scene.keep(undos.into_iter().map(|(_, injection, undo)| (injection, undo)).collect());
            return Err(course);
        }
    }
}

/// The servers' counts of the load's commands.
fn count(scenario: &Scenario, servers: &mut [Server]) -> Calls {
    let names = scenario.command_names();
    let mut known = true;
    for server in servers.iter_mut() {
        // A server that slept still has commands to execute, and replies only after them.
        let until = Instant::now() + GONE;
        let mut told = server.sample();
        while !told && !server.died && Instant::now() < until {
            look_again();
            told = server.sample();
        }
        known &= told && !server.died;
    }
    let at_least = servers.iter().flat_map(|server| names.iter().map(|name| server.calls(name))).sum();
    Calls { at_least, at_most: known.then_some(at_least) }
}

/// Remaining processes of the run, after the timeout for killed ones.
fn left(work: &Path) -> Vec<String> {
    let until = Instant::now() + GONE;
    loop {
        let left = below(work);
        if left.is_empty() || Instant::now() >= until {
            // Kill them, so that they do not affect the next run.
            for process in &left {
                signal(process.id, libc::SIGKILL);
            }
            return left.iter().map(|process| format!("{} {}", process.id, process.words.join(" "))).collect();
        }
        look_again();
    }
}

/// Ports that still have a listener. The kernel closes a process' sockets last.
fn left_ports(network: &Network, own: &[u16]) -> Vec<u16> {
    let until = Instant::now() + GONE;
    loop {
        let left: Vec<_> = network.listening().into_iter().filter(|port| !own.contains(port)).collect();
        if left.is_empty() || Instant::now() >= until {
            return left;
        }
        look_again();
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn logs(directory: &Path) -> Vec<String> {
    let logs = names(directory).into_iter().filter(|name| name.starts_with("shard-"));
    logs.filter_map(|name| fs::read(directory.join(name)).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect()
}

/// Writes files for debugging.
fn write_down(directory: &Path, scenario: &Scenario, evidence: &Evidence) -> anyhow::Result<()> {
    fs::write(directory.join("stdout"), &evidence.stdout)?;
    fs::write(directory.join("stderr"), &evidence.stderr)?;
    let short =
        Evidence { stdout: String::new(), stderr: String::new(), logs: Vec::new(), object: None, ..evidence.clone() };
    fs::write(directory.join("evidence"), format!("{scenario:#?}\n{short:#?}\n"))?;
    Ok(())
}

fn unix_nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
