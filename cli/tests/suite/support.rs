//! Starts the program.

use std::fmt::Display;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use redisbench_testkit::servers::{RedisServer, free_port};
use redisbench_testkit::status::imbalances;
pub use redisbench_testkit::status::list;
use redisbench_wire::histogram::{EncodedHistogram, Kind};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than any run here; a run that takes this long hangs.
const PATIENCE: Duration = Duration::from_secs(90);

pub fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_kubectl-redisbench"))
}

/// The load generator is a program of another package, so cargo does not build it for these tests.
pub fn load_generator() -> PathBuf {
    let beside = program().with_file_name("redisbench-loadgen");
    assert!(beside.is_file(), "{} is not built; run `make test-unit`, which builds it first", beside.display());
    beside
}

/// A run of `local` with its own directory for temporary files.
pub struct Run {
    program: Program,
    temporary: TempDir,
}

impl Run {
    pub fn local(manifest: &str, arguments: &[&str]) -> Self {
        Self::start(&[&["-f", "-"], arguments].concat(), manifest, &[])
    }

    /// A run without a manifest.
    pub fn from_flags(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start(arguments, "", environment)
    }

    fn start(arguments: &[&str], input: &str, environment: &[(&str, &str)]) -> Self {
        load_generator();
        let temporary = tempfile::tempdir().unwrap();
        let arguments = [&["local", "-o", "json"], arguments].concat();
        let environment = [&[("TMPDIR", temporary.path().to_str().unwrap())], environment].concat();
        let program = run_with(&arguments, input, &environment);
        Self { program, temporary }
    }

    /// Reads standard error until a line contains `part`.
    pub fn wait_for_line(&mut self, part: &str) -> BufReader<ChildStderr> {
        self.program.wait_for_line(part)
    }

    pub fn signal(&self, name: &str) {
        self.program.signal(name);
    }

    /// Waits for the end. Returns exit code, the object if there is one, and standard error. Asserts that nothing is left behind.
    pub fn finish(self) -> Finished {
        let (code, stdout, stderr) = self.program.finish();
        wait_for_the_end(self.temporary.path());
        let left: Vec<_> = fs::read_dir(self.temporary.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
        let object = if stdout.is_empty() { Value::Null } else { serde_json::from_str(&stdout).unwrap() };
        Finished { code, object, stderr }
    }

    /// The processes of this run except the program itself.
    pub fn children(&self) -> Vec<u32> {
        processes_in(self.temporary.path())
    }

    /// Asserts that it has so many children, and that no argument and no environment variable of theirs has `secret`.
    pub fn assert_hidden(&self, secret: &str, children: usize) {
        let all = self.children();
        assert_eq!(all.len(), children);
        for (child, file) in all.iter().flat_map(|child| ["cmdline", "environ"].map(|file| (child, file))) {
            let bytes = fs::read(format!("/proc/{child}/{file}")).unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains(secret), "{file} of {child}");
        }
    }

    /// Kills the program, and waits until its children have ended too.
    pub fn kill(mut self) {
        self.program.0.kill().unwrap();
        self.program.0.wait().unwrap();
        wait_for_the_end(self.temporary.path());
    }
}

/// Waits, because killed processes end with a delay.
fn wait_for_the_end(directory: &Path) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = processes_in(directory);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "still running: {left:?}");
        std::thread::yield_now();
    }
}

pub struct Finished {
    pub code: Option<i32>,
    pub object: Value,
    pub stderr: String,
}

impl Finished {
    pub fn result(&self) -> &Value {
        let result = &self.object["status"]["result"];
        assert!(result.is_object(), "no result in {:#}\n{}", self.object, self.stderr);
        result
    }

    /// The status, which must be that of a success.
    pub fn succeeded(&self) -> &Value {
        let status = &self.object["status"];
        assert_eq!(status["phase"], "Succeeded", "{}\n{status:#}", self.stderr);
        status
    }

    /// The condition of this kind.
    pub fn condition(&self, kind: &str) -> &Value {
        let conditions = list(&self.object["status"]["conditions"]);
        conditions.iter().find(|condition| condition["type"] == kind).unwrap()
    }

    /// Asserts that it was refused before it began, because of `why`.
    pub fn assert_refused(&self, why: &str) {
        assert_eq!(self.code, Some(2), "{}", self.stderr);
        assert!(self.stderr.contains(why), "{}", self.stderr);
    }

    /// Asserts every sum that must hold in a result.
    pub fn assert_balanced(&self) {
        let result = self.result();
        assert_eq!(imbalances(result, &["operations", "shards"]), [""; 0]);
        let encoded: EncodedHistogram = serde_json::from_value(result["histogram"]["data"].clone()).unwrap();
        let histogram = encoded.decode(Kind::Request).unwrap();
        assert_eq!(histogram.len(), number(&result["requests"]["succeeded"]));
    }
}

/// A missing count is 0.
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| if value.is_null() { 0 } else { panic!("{value} is no count") })
}

/// Processes with an argument or working directory below `directory`: shards and throwaway servers.
fn processes_in(directory: &Path) -> Vec<u32> {
    let directory = directory.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|id: &u32| {
            let arguments = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            let place = fs::read_link(format!("/proc/{id}/cwd")).unwrap_or_default();
            String::from_utf8_lossy(&arguments).contains(directory) || place.starts_with(directory)
        })
        .collect()
}

/// A server as a target.
pub fn standalone(endpoint: impl Display) -> String {
    format!("type: Standalone, endpoints: ['{endpoint}']")
}

/// A redis-server with TLS that requires its own certificate from clients, unless `arguments` override that. Returns its port, certificate
/// and key too.
pub fn secure(directory: &Path, arguments: &[&str]) -> (RedisServer, u16, String, String) {
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
    let [crt, pem] = ["tls.crt", "tls.key"].map(|name| directory.join(name));
    fs::write(&crt, &certificate).unwrap();
    fs::write(&pem, &key).unwrap();
    let port = free_port();
    let (crt, pem) = (crt.to_str().unwrap(), pem.to_str().unwrap());
    let files = ["--tls-cert-file", crt, "--tls-key-file", pem, "--tls-ca-cert-file", crt];
    let redis = RedisServer::start(&[&["--tls-port", &port.to_string()][..], &files, arguments].concat());
    (redis, port, certificate, key)
}

/// A part of a spec: GETs of a hundred keys.
pub const GETS: &str = "  workload: {operations: [{name: get, command: GET __key__}], keys: {count: 100}}\n";

/// A manifest of a benchmark of `target`; `spec` is the part after the targets.
pub fn benchmark(target: &str, spec: &str) -> String {
    format!(
        "
apiVersion: redisbench.dev/v1alpha1
kind: RedisBenchmark
metadata: {{name: tiny}}
spec:
  targets: [{{name: redis, {target}}}]
{spec}
"
    )
}

/// The running program.
pub struct Program(Child);

impl Program {
    /// Reads standard error until a line contains `part`.
    pub fn wait_for_line(&mut self, part: &str) -> BufReader<ChildStderr> {
        let mut reader = BufReader::new(self.0.stderr.take().unwrap());
        let mut seen = String::new();
        loop {
            let mut line = String::new();
            assert!(reader.read_line(&mut line).unwrap() > 0, "no line has {part:?}:\n{seen}");
            if line.contains(part) {
                return reader;
            }
            seen.push_str(&line);
        }
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.0.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end, and returns exit code, standard output and standard error.
    pub fn finish(self) -> (Option<i32>, String, String) {
        let output = self.0.wait_with_output().unwrap();
        let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code(), stdout, stderr)
    }
}

/// Starts the program with `arguments`, `input` and additional environment variables.
pub fn run_with(arguments: &[&str], input: &str, environment: &[(&str, &str)]) -> Program {
    let mut child = Command::new(program())
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments reads no input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    Program(child)
}

/// Runs the program to its end.
pub fn run(arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    run_with(arguments, input, &[]).finish()
}

/// The rest of a stream.
pub fn rest(mut reader: BufReader<ChildStderr>) -> String {
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    text
}
