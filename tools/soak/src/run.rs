//! One run: starts the program, applies the faults at their times, and collects the evidence.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use redisbench_testkit::processes::{die_with_parent, signal};

use crate::evidence::{Calls, Ended, Evidence, Injection};
use crate::inject::{Scene, Undo};
use crate::network::{Network, SmallDisk};
use crate::processes::{below, look_again, peak_kib};
use crate::scenario::Scenario;
use crate::servers::{self, Server};

/// Timeout for killed processes to end.
const GONE: Duration = Duration::from_secs(5);

/// Performs `scenario` with the programs in `programs`, in the new directory `directory`.
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
    let (process, password) = (i32::try_from(program.id())?, scenario.password);
    let mut scene = Scene { work: work.clone(), program: process, servers, network, password };
    let course = follow(scenario, &mut program, &mut scene)?;
    let calls = scenario.redis.is_own().then(|| count(scenario, &mut scene.servers));
    let left_processes = left(|| below(&work));
    // Kill them, so that they do not affect the next run.
    for process in &left_processes {
        signal(process.id, libc::SIGKILL);
    }
    let listening =
        || scene.network.listening().into_iter().filter(|port| !own_ports.contains(port)).collect::<Vec<_>>();
    let stdout = read(&directory.join("stdout"));
    let evidence = Evidence {
        object: serde_json::from_str(&stdout).ok(),
        stdout,
        stderr: read(&directory.join("stderr")),
        logs: names(directory)
            .iter()
            .filter(|name| name.starts_with("shard-"))
            .map(|name| read(&directory.join(name)))
            .collect(),
        calls,
        left_processes: left_processes
            .iter()
            .map(|process| format!("{} {}", process.id, process.words.join(" ")))
            .collect(),
        left_files: names(&temporary),
        left_ports: left(listening),
        ..course
    };
    let short =
        Evidence { stdout: String::new(), stderr: String::new(), logs: Vec::new(), object: None, ..evidence.clone() };
    fs::write(directory.join("evidence"), format!("{scenario:#?}\n{short:#?}\n"))?;
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
    let stdout = directory.join("stdout");
    let stdout = if scenario.full_disk { Path::new("/dev/full") } else { &stdout };
    command
        .current_dir(work)
        .env("TMPDIR", work.join("tmp"))
        .env("REDISBENCH_LOG", "info")
        .stdin(Stdio::null())
        .stdout(File::create(stdout)?)
        .stderr(File::create(directory.join("stderr"))?);
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

/// Follows the program to its end, and applies the faults at their times. Returns what was observed until then.
fn follow(scenario: &Scenario, program: &mut Child, scene: &mut Scene<'_>) -> anyhow::Result<Evidence> {
    let began = Instant::now();
    let mut course = Evidence::default();
    let mut status = None;
    let mut to_come = scenario.faults.iter().copied().peekable();
    let mut undos: Vec<(Instant, usize, Undo)> = Vec::new();
    while status.is_none() && course.took <= scenario.patience() {
        let now = Instant::now();
        while let Some((_, fault)) = to_come.next_if(|(at, _)| began + *at <= now) {
            let injection = course.injections.len();
            let (after, time, undo) = (began.elapsed(), unix_nanoseconds(), scene.inject(fault, injection));
            course.injections.push(Injection { fault, after, at: time, undone: None, hit: undo.is_some() });
            if let Some(undo) = undo.filter(|_| !fault.time.is_zero()) {
                undos.push((Instant::now() + fault.time, injection, undo));
            }
        }
        while let Some(over) = undos.iter().position(|(until, ..)| *until <= now) {
            let (_, injection, undo) = undos.swap_remove(over);
            scene.undo(injection, undo);
            course.injections[injection].undone = Some(unix_nanoseconds());
        }
        course.peak_kib = course.peak_kib.max(peak_kib(scene.program));
        look_again();
        status = program.try_wait()?;
        course.took = began.elapsed();
    }
    if let Some(status) = status {
        course.ended = status.code().map_or_else(|| Ended::Signal(status.signal().unwrap_or_default()), Ended::Code);
    } else {
        program.kill()?;
        program.wait()?;
    }
    for (_, injection, undo) in undos {
        // The program has ended, so servers need not be restarted nor processes continued.
        if !matches!(undo, Undo::Gone(_) | Undo::Stopped(_)) {
            scene.undo(injection, undo);
        }
        course.injections[injection].undone = Some(unix_nanoseconds());
    }
    Ok(course)
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

/// Returns what `look` still finds after the timeout for killed processes. The kernel closes a process' sockets last.
fn left<T>(look: impl Fn() -> Vec<T>) -> Vec<T> {
    let until = Instant::now() + GONE;
    loop {
        let left = look();
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

/// The text of a file; empty if it is missing.
fn read(file: &Path) -> String {
    fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn unix_nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
