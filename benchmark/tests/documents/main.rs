//! Checks that the documents match the code and the repository.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod commands;
mod manifests;
mod messages;
mod reference;
mod seeds;
mod site;

use std::process::Command;

use redisbench_benchmark::api::{chart_crd_template, crd_yaml};
use redisbench_testkit::documents::{fresh, read, root};
use redisbench_testkit::servers::RedisServer;

#[test]
fn the_tutorial_shows_the_quickstart_as_it_is() {
    let example = read("examples/quickstart.yaml");
    let manifest: Vec<&str> = example.lines().skip_while(|line| line.starts_with('#')).collect();
    let shown = format!("```yaml\n{}\n```", manifest.join("\n"));
    assert!(read("docs/tutorial.md").contains(&shown), "docs/tutorial.md must show examples/quickstart.yaml:\n{shown}");
}

/// The options of other tools in one document: the rows of each tool's table, and the fields that they name.
fn tables(text: &str) -> impl Iterator<Item = (&str, Vec<Vec<&str>>)> {
    text.split("\n## ").skip(1).map(|chapter| {
        let rows = chapter.lines().filter(|line| line.starts_with("| ") && !line.contains("---"));
        let cells = rows.skip(1).map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect());
        (chapter.lines().next().unwrap_or_default(), cells.collect())
    })
}

fn in_backticks(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn fields_for_the_options_of_other_tools_exist() {
    let crd: serde_yaml::Value = serde_yaml::from_str(&read("crds/redisbenchmarks.redisbench.dev.yaml")).unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let text = read("docs/coming-from.md");
    let fields: Vec<_> =
        in_backticks(&text).filter(|word| ["spec.", "status."].iter().any(|part| word.starts_with(part))).collect();
    assert!(fields.len() > 100, "only {} fields", fields.len());
    for field in fields {
        let found = field.split('.').fold(schema, |at, name| {
            let at = at.get("items").unwrap_or(at);
            at.get("properties").map_or(&serde_yaml::Value::Null, |fields| &fields[name])
        });
        assert!(!found.is_null(), "docs/coming-from.md names {field}, which the CRD does not have");
    }
    let tables: Vec<_> = tables(&text).collect();
    assert_eq!(tables.len(), 8, "one table for each tool");
    for (tool, rows) in tables {
        assert!(rows.len() > 10, "{tool}: {} rows", rows.len());
        for row in rows {
            let [option, here, how] = row[..] else { panic!("{tool}: {row:?}") };
            let reasoned = ["no", "later"].contains(&here) && !how.is_empty();
            assert!(reasoned || here.starts_with("`spec.") || here.starts_with("`status."), "{tool}: {option}: {here}");
        }
    }
}

/// Options of tools that no package here installs, as listed by their own help: valkey-benchmark 9.1, and `memtier_benchmark` 2.4 with what it
/// got after that for Prometheus and for reading from replicas.
const OPTIONS_OF_OTHERS: [(&str, &str); 2] = [
    (
        "valkey-benchmark",
        "-h -p -s -a --user -u -c -n --duration --warmup -d --dbnum -3 --threads --cluster --rfr --enable-tracking -k -r \
         --sequential -P -q --precision --csv -l -t -I -x --rps --seed --num-functions --num-keys-in-fcall --dataset --maxdocs \
         --tls --sni --cacert --cacertdir --insecure --cert --key --tls-ciphers --tls-ciphersuites --rdma --mptcp --fuzz \
         --fuzz-mode --fuzz-loglevel --help --version",
    ),
    (
        "memtier_benchmark",
        "-h -s -p -S -4 -6 -P -a -u --tls --cert --key --cacert --tls-skip-verify --tls-protocols --sni -x -D --cluster-mode \
         --transaction --help -v -o --json-out-file --client-stats --hdr-file-prefix --show-config --hide-histogram \
         --print-percentiles --print-all-runs --realtime-latencies --command-stats-breakdown --command-miss-tracking \
         --miss-rate-threshold --statsd-host --statsd-port --statsd-prefix --statsd-run-label --graphite-port --prometheus-port \
         --prometheus-bind-addr --prometheus-run-label --prometheus-latency-buckets -n --rate-limiting -c -t --test-time \
         --clients-start --clients-step --step-duration --ratio --pipeline --reconnect-interval --reconnect-on-error \
         --max-reconnect-attempts --reconnect-backoff-factor --retry-on-error --max-retries --retry-backoff-ms \
         --retry-backoff-factor --retry-on --max-retry-queue --failed-keys-file --connection-timeout \
         --connection-stage-timeout --thread-conn-start-min-jitter-micros --thread-conn-start-max-jitter-micros --multi-key-get \
         --select-db --distinct-client-seed --randomize --command --command-ratio --command-key-pattern --monitor-input \
         --monitor-pattern --scan-incremental-iteration --scan-incremental-max-iterations --command-is-read --read-preference \
         --read-server --replica-clients --replicas-per-shard --read-preference-fallback -d --data-offset -R --data-size-range \
         --data-size-list --data-size-pattern --expiry-range --data-import --data-verify --verify-only --generate-keys \
         --no-expiry --key-prefix --key-minimum --key-maximum --key-pattern --key-stddev --key-median --key-zipf-exp \
         --wait-ratio --num-slaves --wait-timeout",
    ),
];

#[test]
fn every_option_of_other_tools_has_its_row() {
    let text = read("docs/coming-from.md");
    for (tool, options) in OPTIONS_OF_OTHERS {
        let (_, rows) = tables(&text).find(|(name, _)| *name == tool).unwrap();
        let known: Vec<_> = rows.iter().flat_map(|row| in_backticks(row[0])).collect();
        for option in options.split_whitespace() {
            assert!(known.contains(&option), "docs/coming-from.md has no row for {tool} {option}");
        }
    }
}

#[test]
fn every_option_of_redis_benchmark_has_its_row() {
    let help = Command::new("redis-benchmark").arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let text = read("docs/coming-from.md");
    let (_, rows) = tables(&text).find(|(tool, _)| *tool == "redis-benchmark").unwrap();
    let known: Vec<_> = rows.iter().flat_map(|row| in_backticks(row[0])).collect();
    let options = help.lines().filter_map(|line| line.strip_prefix(" -").and(line.split_whitespace().next()));
    let mut seen = 0;
    for option in options {
        assert!(known.contains(&option), "docs/coming-from.md has no row for redis-benchmark {option}");
        seen += 1;
    }
    assert!(seen > 25, "only {seen} options in: {help}");
}

/// The Dockerfile copies, builds and starts only files and programs that exist. No test builds it.
#[test]
fn the_dockerfile_builds_what_there_is() {
    let dockerfile = read("Dockerfile");
    let lines: Vec<Vec<&str>> = dockerfile
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| !words.is_empty())
        .collect();
    let of = |instruction: &'static str| lines.iter().filter(move |words| words[0] == instruction);

    let copied: Vec<&str> = of("COPY")
        .filter(|words| words[1] != "--from=build")
        .flat_map(|words| &words[1..words.len() - 1])
        .copied()
        .collect();
    for source in &copied {
        assert!(root().join(source).exists(), "the Dockerfile copies {source}, which does not exist");
    }
    // Cargo reads the manifests of all members, whichever it builds.
    let workspace = read("Cargo.toml");
    let members = workspace.lines().find_map(|line| line.strip_prefix("members = [")).unwrap();
    let members: Vec<&str> = members.split('"').skip(1).step_by(2).collect();
    assert!(members.len() > 5, "{members:?}");
    for needed in members.iter().chain(&["Cargo.toml", "Cargo.lock"]) {
        let folder = needed.split('/').next().unwrap();
        assert!(copied.contains(&folder), "the Dockerfile does not copy {folder}");
    }

    let toolchain = read("rust-toolchain.toml");
    let channel = toolchain.lines().find_map(|line| line.strip_prefix("channel = ")).unwrap().trim_matches('"');
    assert!(dockerfile.contains(&format!("\nFROM rust:{channel}-")), "not the compiler {channel}");
    assert!(dockerfile.contains(&format!("\nENV RUSTUP_TOOLCHAIN={channel}\n")), "not the compiler {channel}");

    let build = of("RUN").find(|words| words[1..3] == ["cargo", "build"]).unwrap();
    let packages: Vec<&str> = build.windows(2).filter(|pair| pair[0] == "-p").map(|pair| pair[1]).collect();
    for package in &packages {
        let member = members
            .iter()
            .find(|member| read(&format!("{member}/Cargo.toml")).contains(&format!("name = \"{package}\"")));
        let member = member.unwrap_or_else(|| panic!("the Dockerfile builds {package}, which is no member"));
        // Without a [[bin]] of that name, the program has its package's name only if no other program is named.
        let named = format!("[[bin]]\nname = \"{package}\"\npath = \"src/main.rs\"\n");
        let manifest = read(&format!("{member}/Cargo.toml"));
        assert!(manifest.contains(&named) || !manifest.contains("[[bin]]"), "{package} builds no {package}");
        assert!(root().join(member).join("src/main.rs").exists(), "{package} has no program");
    }

    // One image for each part of the chart, with its name, and with the started program as its only one; and one for CI.
    let chart: serde_yaml::Value = serde_yaml::from_str(&read("charts/redisbench-operator/values.yaml")).unwrap();
    let stages: Vec<&str> = of("FROM").map(|words| *words.last().unwrap()).filter(|stage| *stage != "build").collect();
    assert_eq!(stages, ["operator", "loadgen", "clients", "cli"]);
    let text = read("docs/operating.md");
    let stage_text = |stage: &str| {
        let begin = dockerfile.find(&format!(" AS {stage}\n")).unwrap();
        dockerfile[begin..].split("\nFROM ").next().unwrap()
    };
    for &stage in &stages[..3] {
        assert!(!chart[stage]["image"].is_null(), "the chart has no image {stage}");
        assert!(text.contains(&format!("docker build --target {stage} ")), "docs/operating.md does not build {stage}");
        let program = format!("redisbench-{stage}");
        assert!(packages.contains(&program.as_str()), "{program} is not built");
        let place = format!("/usr/local/bin/{program}");
        for line in [
            format!("COPY --from=build /source/target/release/{program} {place}"),
            format!("ENTRYPOINT [\"{place}\"]"),
            "USER 65532:65532".to_owned(),
        ] {
            assert!(stage_text(stage).lines().any(|own| own == line), "the stage {stage} has no line {line}");
        }
    }
    let guide = "docs/how-to/compare-versions.md";
    assert!(read(guide).contains("docker build --target cli "), "{guide} does not build cli");
    for program in ["redisbench-loadgen", "kubectl-redisbench"] {
        assert!(packages.contains(&program), "{program} is not built");
        let line = format!("COPY --from=build /source/target/release/{program} /usr/local/bin/{program}");
        assert!(stage_text("cli").lines().any(|own| own == line), "the stage cli has no line {line}");
    }
    assert!(read("charts/redisbench-operator/templates/deployment.yaml").contains("runAsUser: 65532\n"));
}

#[test]
fn argo_cd_is_told_how_a_benchmark_is() {
    let script = read("docs/argocd-health.lua");
    let script = format!(
        "local function health(obj)\n{script}\nend\nlocal found = health(cjson.decode(ARGV[1]))\n\
         return found.status .. ': ' .. found.message"
    );
    let server = RedisServer::start(&[]);
    let eval = |object: &str| server.ask::<String>(&["EVAL", &script, "0", object]);
    let health = |generation: i64, phase: &str, conditions: &[(&str, &str)]| {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(kind, status)| serde_json::json!({"type": kind, "status": status, "message": format!("{kind} {status}")}))
            .collect();
        let status = serde_json::json!({"observedGeneration": generation, "phase": phase, "conditions": conditions});
        let object = serde_json::json!({"metadata": {"generation": 2}, "spec": {}, "status": status});
        eval(&object.to_string())
    };
    // As created by the API server, and as left by an older definition.
    let unseen = "Progressing: The operator has not looked at this generation yet";
    assert_eq!(health(-1, "Pending", &[]), unseen);
    assert_eq!(health(1, "Succeeded", &[("Finished", "True")]), unseen);
    assert_eq!(eval(r#"{"metadata": {"generation": 1}, "spec": {}}"#), unseen);
    assert_eq!(health(2, "Pending", &[("Accepted", "False")]), "Degraded: Accepted False");
    assert_eq!(health(2, "Preparing", &[("Accepted", "True"), ("Stalled", "True")]), "Degraded: Stalled True");
    assert_eq!(
        health(2, "Running", &[("Accepted", "True"), ("Finished", "False"), ("Stalled", "False")]),
        "Progressing: The benchmark is Running"
    );
    assert_eq!(health(2, "Suspended", &[("Accepted", "True")]), "Suspended: Held back by spec.suspend");
    let finished = |others: &[(&'static str, &'static str)]| {
        let all = [&[("Accepted", "True"), ("Finished", "True")], others].concat();
        health(2, "Succeeded", &all)
    };
    let good = ("Complete", "True");
    assert_eq!(finished(&[good, ("Failed", "False"), ("Valid", "True")]), "Healthy: Finished True");
    assert_eq!(finished(&[("Complete", "False"), ("Failed", "True")]), "Degraded: Failed True");
    assert_eq!(finished(&[("Complete", "False"), ("Failed", "False")]), "Degraded: Complete False");
    for kind in ["ThresholdsMet", "Verified", "Valid"] {
        assert_eq!(finished(&[good, (kind, "False")]), format!("Degraded: {kind} False"));
        assert_eq!(finished(&[good, (kind, "Unknown")]), "Healthy: Finished True");
    }
}

#[test]
fn the_committed_definition_is_fresh() {
    fresh("crds/redisbenchmarks.redisbench.dev.yaml", &crd_yaml());
}

#[test]
fn the_charts_copy_is_fresh() {
    fresh("charts/redisbench-operator/templates/crd.yaml", &chart_crd_template());
}

#[test]
fn the_reference_of_the_api_is_fresh() {
    fresh("docs/api.md", &reference::page());
}
