//! Types the commands of the pages that need a cluster, page by page and in order, in a directory with shortened manifests.
//! `cli/tests/suite/documents.rs` runs those that need none.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use redisbench_e2e::benchmark::manifest;
use redisbench_e2e::cluster::{Cluster, repository};
use redisbench_e2e::tools::path_with_plugin;
use redisbench_e2e::{Benchmark, TestNamespace, redis, run_within};
use redisbench_testkit::examples::shortened;
use redisbench_testkit::markdown::{Runner, Typed, commands, parts, runner};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// A dozen short benchmarks and a search of four steps, one after the other.
const LIMIT: Duration = Duration::from_secs(430);

/// Pages in the order in which their benchmarks do not get in each other's way.
const PAGES: [&str; 9] = [
    "README.md",
    "docs/how-to/run-on-a-cluster.md",
    "docs/results.md",
    "docs/how-to/compare-versions.md",
    "docs/how-to/highest-rate.md",
    "docs/how-to/size-a-cluster.md",
    "docs/how-to/beyond-one-host.md",
    "docs/how-to/test-a-failover.md",
    "docs/operating.md",
];

#[test]
fn the_commands_of_the_pages_run() {
    run_within(LIMIT, |namespace| async move {
        let typed: Vec<Typed> =
            commands().into_iter().filter(|command| runner(&command.text) == Some(Runner::Cluster)).collect();
        for command in &typed {
            ensure!(PAGES.contains(&command.page.as_str()), "add {} to PAGES for {}", command.page, command.text);
        }
        let place = Place::new(&namespace)?;
        redis::cluster(&namespace, "redis-cluster").await?;
        for page in PAGES {
            if ["docs/how-to/run-on-a-cluster.md", "docs/operating.md"].contains(&page) {
                let quickstart = Benchmark::named(&namespace, "quickstart");
                quickstart.delete().await?;
                quickstart.gone(Duration::from_secs(30)).await?;
            }
            if page == "docs/operating.md" {
                // Long enough to watch and to stop.
                let spec = json!({"load": {"duration": "10m"}});
                Benchmark::create(&namespace, "quickstart", &spec).await?.measuring().await?;
            }
            if page == "docs/how-to/compare-versions.md" {
                for name in ["ci-41", "ci-42"] {
                    place
                        .run(&format!(
                            "sed 's/\"name\":\"ci\"/\"name\":\"{name}\"/' benchmark/load.yaml | kubectl apply -f -"
                        ))
                        .await?;
                }
            }
            let mut watches = Vec::new();
            for command in typed.iter().filter(|command| command.page == page) {
                place.follow(command, &mut watches).await.with_context(|| format!("{page}: {}", command.text))?;
            }
            for watch in watches {
                let output = watch.wait_with_output().await?;
                ensure!(!output.stdout.is_empty(), "{page}: a watch printed no result: {output:?}");
            }
        }
        Ok(())
    });
}

/// Where the commands are typed.
struct Place {
    directory: TempDir,
    path: String,
}

impl Place {
    fn new(namespace: &TestNamespace) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("examples"))?;
        fs::create_dir(at("benchmark"))?;
        std::os::unix::fs::symlink(repository().join("charts"), at("charts"))?;
        for entry in fs::read_dir(repository().join("examples"))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                let text = fs::read_to_string(&path)?;
                fs::write(at("examples").join(path.file_name().context("no name")?), shortened(&text).unwrap_or(text))?;
            }
        }
        let load = fs::read_to_string(repository().join("examples/ci/load.yaml"))?;
        // As many repeats as a comparison takes.
        let load =
            shortened(&load).context("no benchmark")?.replace(r#""repeats":{"count":2}"#, r#""repeats":{"count":5}"#);
        fs::write(at("benchmark/load.yaml"), load)?;
        let failover = manifest("failover", &shown("docs/how-to/test-a-failover.md")?);
        fs::write(at("failover.yaml"), shortened(&failover.to_string()).context("no benchmark")?)?;

        let cluster = Cluster::get();
        let mut config: Value = serde_yaml::from_str(&fs::read_to_string(&cluster.kubeconfig)?)?;
        for context in config["contexts"].as_array_mut().context("no contexts")? {
            context["context"]["namespace"] = namespace.name.as_str().into();
        }
        fs::write(at("kubeconfig"), config.to_string())?;
        let path = path_with_plugin()?.into_string().ok().context("PATH is not UTF-8")?;
        let path = match cluster.program("kubectl").parent().filter(|folder| folder.is_absolute()) {
            Some(folder) => format!("{}:{path}", folder.display()),
            None => path,
        };
        Ok(Self { directory, path })
    }

    fn bash(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        command
            .args(["-e", "-o", "pipefail", "-c", line])
            .current_dir(self.directory.path())
            .env("PATH", &self.path)
            .env("KUBECONFIG", self.directory.path().join("kubeconfig"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs a line to its end. Returns its exit code and all output.
    async fn run(&self, line: &str) -> Result<(i32, String)> {
        let output = self.bash(line).output().await?;
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        Ok((output.status.code().context("killed")?, said))
    }

    /// Types a command, with names for placeholders, and an end for those that have none.
    async fn follow(&self, command: &Typed, watches: &mut Vec<Child>) -> Result<()> {
        let text = command.text.replace(" NAME ", " quickstart ");
        let called = text.strip_prefix("kubectl redisbench ").unwrap_or_default().split(' ').next().unwrap_or_default();
        // The verdict, and with it some codes, depends on the machine.
        let (line, codes) = match called {
            // It ends with the benchmark, which a later command stops.
            "watch" => {
                watches.push(self.bash(&text).spawn()?);
                return Ok(());
            }
            "run" | "result" => (text.clone(), &[0, 1][..]),
            "compare" => (text.clone(), &[0, 4, 5][..]),
            // It may have finished before.
            "abort" => (format!("{text} --yes"), &[0, 1][..]),
            _ if text.starts_with("kubectl get ") && text.ends_with(" -w") => (format!("timeout 2 {text}"), &[124][..]),
            // Installed by the tests before.
            _ if text.starts_with("helm install ") => {
                (text.replacen("install", "upgrade --install --dry-run=server", 1), &[0][..])
            }
            _ if text.starts_with("kubectl delete crd ") => (format!("{text} --dry-run=server"), &[0][..]),
            _ => (text.clone(), &[0][..]),
        };
        let (code, said) = self.run(&line).await?;
        ensure!(codes.contains(&code), "exit {code}: {said}");
        if called == "run" {
            let file = text.split_whitespace().skip_while(|word| *word != "-f").nth(1).context("no file")?;
            let (_, phase) = self.run(&format!("kubectl get -f {file} -o jsonpath='{{.status.phase}}'")).await?;
            ensure!(phase == "Succeeded", "{phase}: {said}");
        }
        if let Some(file) = text.split(" -o ").nth(1).filter(|_| ["report", "export"].contains(&called)) {
            ensure!(fs::metadata(self.directory.path().join(file))?.len() > 0, "{file} is empty");
        }
        Ok(())
    }
}

/// The fields of a spec that a page shows.
fn shown(page: &str) -> Result<Value> {
    let text = fs::read_to_string(Path::new(&repository()).join(page))?;
    let (_, blocks) = parts(&text);
    let block = blocks.iter().find(|block| block.language == "yaml").context("no YAML")?;
    Ok(serde_yaml::from_str(&block.text)?)
}
