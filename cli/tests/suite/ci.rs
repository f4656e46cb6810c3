//! The jobs of `examples/ci`: their steps as the services run them, with a redis-server in place of the service container.
//!
//! The outcome must not depend on the machine's speed. So the baselines are a result of this machine with edited rates, a hundred times
//! lower or higher, which no noise between two runs reaches.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use redisbench_testkit::servers::RedisServer;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{list, load_generator, number, program};

/// Far beyond noise, and beyond the tolerance of the jobs.
const FACTOR: u64 = 100;

/// A job as its service runs it.
struct Job {
    steps: Vec<Step>,
    /// Exit codes with which the job passes with a warning.
    warnings: Vec<i32>,
    /// Files that the job leaves.
    artifacts: Vec<String>,
}

struct Step {
    script: String,
    /// Runs after a failed step too.
    always: bool,
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/ci").join(name)
}

fn read(name: &str) -> Value {
    serde_yaml::from_str(&fs::read_to_string(example(name)).unwrap()).unwrap()
}

fn github_actions() -> Job {
    let file = read("github-actions.yml");
    let job = &file["jobs"]["redis"];
    assert!(job["services"]["redis"].is_object(), "the service has the name that the manifest loads");
    let steps = list(&job["steps"]);
    let always = |step: &Value| step["if"] == "${{ !cancelled() }}";
    let scripts = steps.iter().filter_map(|step| Some((step["run"].as_str()?, always(step))));
    let upload = steps.iter().find_map(|step| step["with"]["path"].as_str().filter(|_| always(step))).unwrap();
    Job {
        steps: scripts.map(|(script, always)| Step { script: script.to_owned(), always }).collect(),
        warnings: Vec::new(),
        artifacts: upload.lines().chain(["summary.md"]).map(str::to_owned).collect(),
    }
}

fn gitlab() -> Job {
    let file = read("gitlab-ci.yml");
    let job = &file["benchmark"];
    assert_eq!(job["services"][0]["alias"], "redis", "the service has the name that the manifest loads");
    assert_eq!(job["artifacts"]["when"], "always");
    let text = |line: &Value| line.as_str().unwrap().to_owned();
    let lines: Vec<String> = list(&job["script"]).iter().map(text).collect();
    let codes = list(&job["allow_failure"]["exit_codes"]).iter();
    let reports = job["artifacts"]["reports"].as_object().unwrap().values();
    Job {
        // All lines run in one shell.
        steps: vec![Step { script: lines.join("\n"), always: false }],
        warnings: codes.map(|code| i32::try_from(number(code)).unwrap()).collect(),
        artifacts: list(&job["artifacts"]["paths"]).iter().chain(reports).map(text).collect(),
    }
}

/// A repository with the example's manifest, whose service container is at `endpoint`. With fewer requests.
fn checkout(endpoint: &str) -> TempDir {
    load_generator();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for folder in ["benchmark", "bin"] {
        fs::create_dir(at(folder)).unwrap();
    }
    symlink(program(), at("bin/redisbench")).unwrap();
    let mut manifest = fs::read_to_string(example("load.yaml")).unwrap();
    // A number of requests leaves none unsent, even on a busy machine.
    for (written, shortened) in [
        ("redis:6379", endpoint),
        ("warmup: 2s", "warmup: 0s"),
        ("duration: 10s", "requests: 400\n    timeouts: {request: 30s}"),
    ] {
        assert_eq!(manifest.matches(written).count(), 1, "{written} in\n{manifest}");
        manifest = manifest.replace(written, shortened);
    }
    fs::write(at("benchmark/load.yaml"), manifest).unwrap();
    directory
}

/// Runs the job in `directory`. Returns the exit code of the first step that failed, or 0, and all output.
fn run(job: &Job, directory: &Path) -> (i32, String) {
    let path = format!("{}:{}", directory.join("bin").display(), std::env::var("PATH").unwrap());
    let (mut code, mut said) = (0, String::new());
    for step in &job.steps {
        if code != 0 && !step.always {
            continue;
        }
        let output = Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", &step.script])
            .current_dir(directory)
            .envs([("PATH", path.as_str()), ("GITHUB_STEP_SUMMARY", "summary.md")])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        for stream in [&output.stdout, &output.stderr] {
            said.push_str(&String::from_utf8_lossy(stream));
        }
        if code == 0 {
            code = output.status.code().unwrap();
        }
    }
    for file in &job.artifacts {
        assert!(directory.join(file).is_file(), "no {file} after\n{said}");
    }
    (code, said)
}

/// A baseline from `result`, with the rate of each trial changed.
fn edited(result: &Value, change: impl Fn(usize, u64) -> u64) -> String {
    let mut baseline = result.clone();
    let trials = baseline["status"]["trials"].as_array_mut().unwrap();
    assert_eq!(trials.len(), 5, "{result:#}");
    for (index, trial) in trials.iter_mut().enumerate() {
        let rate = number(&trial["achievedPerSecond"]);
        assert!(rate >= FACTOR, "{trial:#}");
        trial["achievedPerSecond"] = change(index, rate).into();
    }
    baseline.to_string()
}

fn passes_and_fails(job: &Job) {
    let redis = RedisServer::start(&[]);
    let endpoint = redis.endpoint();
    let first = checkout(&endpoint);
    let (code, said) = run(job, first.path());
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("benchmark/baseline.json: cannot be read: "), "{said}");
    let result: Value = serde_json::from_slice(&fs::read(first.path().join("result.json")).unwrap()).unwrap();

    let with_baseline = |baseline: &str| {
        let next = checkout(&endpoint);
        fs::write(next.path().join("benchmark/baseline.json"), baseline).unwrap();
        run(job, next.path())
    };
    let slower = edited(&result, |_, rate| rate / FACTOR);
    let faster = edited(&result, |_, rate| rate * FACTOR);
    let unsteady = edited(&result, |index, rate| if index.is_multiple_of(2) { rate / FACTOR } else { rate * FACTOR });
    // At once, because each mostly waits for the starts of its trials.
    let [passed, failed, undecided] = thread::scope(|scope| {
        let runs = [&slower, &faster, &unsteady].map(|baseline| scope.spawn(move || with_baseline(baseline)));
        runs.map(|run| run.join().unwrap())
    });

    let (code, said) = passed;
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("Faster"), "{said}");

    let (code, said) = failed;
    assert_eq!(code, 4, "{said}");
    assert!(!job.warnings.contains(&code), "it fails the job");
    assert!(said.contains("Slower") && said.contains("beyond --tolerance 25"), "{said}");

    let (code, said) = undecided;
    assert!(said.contains("which does not decide for --tolerance 25"), "{said}");
    let warned = job.warnings.contains(&code) || said.contains("::warning::");
    assert!(warned && [0, 5].contains(&code), "{code}: {said}");
}

#[test]
fn the_job_of_github_actions_fails_on_a_regression_only() {
    passes_and_fails(&github_actions());
}

#[test]
fn the_job_of_gitlab_fails_on_a_regression_only() {
    passes_and_fails(&gitlab());
}
