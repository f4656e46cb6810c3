//! Examples in the help of each command.

use std::fmt::Write as _;

/// Examples by command: what they do, and their arguments.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "local",
        &[
            ("Load a server for 10 s, as fast as it answers", "--target 127.0.0.1:6379"),
            (
                "5,000 requests per second over 20 connections, latency from the due time",
                "-h redis -p 6379 -c 20 --rate 5000",
            ),
            (
                "Two tests of redis-benchmark, 100,000 requests each, 16 in flight per connection",
                "-h redis -t set,get -n 100000 -P 16",
            ),
            ("A cluster with TLS and a password that is asked for", "--target a:6379,b:6379 --cluster --tls --askpass"),
            ("Without any Redis: start a throwaway server", "--with-redis"),
            ("See the manifest instead of running it", "--target redis --rate 5000 --print-manifest"),
            ("Run a manifest", "-f examples/quickstart.yaml --with-redis"),
            ("Measure the load generator itself", "-f examples/quickstart.yaml --baseline"),
        ],
    ),
    (
        "init",
        &[
            ("Answer questions on the terminal", "-o benchmark.yaml"),
            ("From flags", "--target redis:6379 --rate 5000 --duration 1m -o benchmark.yaml"),
            ("From another tool", "--from 'memtier_benchmark -s redis -t 2 -c 25 --ratio 1:4 --test-time 60'"),
        ],
    ),
    (
        "run",
        &[
            ("Run on the cluster of the current context", "-f examples/quickstart.yaml"),
            ("Elsewhere, with the result as JSON", "-f examples/quickstart.yaml --context staging -n load -o json"),
        ],
    ),
    (
        "list",
        &[
            ("Benchmarks of the current namespace", ""),
            ("Of all namespaces, on another cluster", "-A --context staging"),
        ],
    ),
    ("status", &[("How far it is", "quickstart"), ("The object itself", "quickstart -n load -o yaml")]),
    ("watch", &[("Follow it to its end", "quickstart"), ("In the log of a pipeline", "quickstart --plain")]),
    ("result", &[("Tables", "quickstart"), ("All of it", "quickstart -o json")]),
    ("logs", &[("Of all shards", "quickstart"), ("Of one", "quickstart --shard 3")]),
    ("abort", &[("After a question", "quickstart"), ("At once", "quickstart --yes")]),
    (
        "compare",
        &[
            ("Two benchmarks on the cluster", "before after"),
            ("Saved results", "before.json after.json"),
            ("On machines that differ by up to a quarter", "--tolerance 25 baseline.json result.json"),
        ],
    ),
    ("explain", &[("A reason of the verdict", "SendLate"), ("An exit code", "4"), ("All that can be explained", "")]),
    ("version", &[("Of this program and of the operator", "")]),
    (
        "report",
        &[
            ("Of a benchmark on the cluster", "quickstart -o report.html"),
            ("Of a saved result", "-f results -o report.html"),
        ],
    ),
    (
        "export",
        &[
            ("Percentiles for the plotter of HdrHistogram", "quickstart --format hgrm -o quickstart.hgrm"),
            ("Test cases, of a directory of `local --output-dir`", "-f results --format junit -o redis.xml"),
            ("The summary of a GitHub workflow, of a saved result", "-f saved.json --format github-summary"),
        ],
    ),
    (
        "validate",
        &[
            ("Check several manifests", "-f examples/quickstart.yaml examples/sweep.yaml"),
            ("Check standard input", "-f -"),
        ],
    ),
    ("completion", &[("For this session of bash: source <(...)", "bash")]),
];

/// Examples of the program: what they do, and all arguments.
const FIRST: &[(&str, &str)] = &[
    ("Without any Redis: start a throwaway server and load it for 10 s", "local --with-redis"),
    ("Load a server with 5,000 requests per second", "local --target 127.0.0.1:6379 --rate 5000"),
    ("Run a manifest on the cluster of the current context", "run -f examples/quickstart.yaml"),
    ("What a reason of the verdict means, and what to do", "explain SendLate"),
];

/// Adds the examples to `command` and its subcommands, for a user who calls it `name`.
pub fn add_examples(command: clap::Command, name: &str) -> clap::Command {
    command.after_long_help(text(name, FIRST)).mut_subcommands(|command| {
        let found = EXAMPLES.iter().find(|(subcommand, _)| *subcommand == command.get_name());
        let Some((_, examples)) = found else { return command };
        let text = text(&format!("{name} {}", command.get_name()), examples);
        command.after_long_help(text)
    })
}

fn text(begin: &str, examples: &[(&str, &str)]) -> String {
    let mut text = String::from("Examples:\n");
    for (effect, arguments) in examples {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  # {effect}\n{}", format!("  {begin} {arguments}").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use crate::command::{command, parse};

    use super::*;

    #[test]
    fn every_command_has_examples_that_can_be_typed() {
        let assert_typed = |line: &str| {
            let words = shlex::split(&format!("redisbench {line}")).unwrap();
            let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
            assert!(parse(&words).is_ok(), "{words:?}");
        };
        for (_, arguments) in FIRST {
            assert_typed(arguments);
        }
        let program = command("redisbench");
        for command in program.get_subcommands() {
            let found = EXAMPLES.iter().find(|(name, _)| *name == command.get_name());
            let (_, examples) = found.unwrap_or_else(|| panic!("add examples of {}", command.get_name()));
            for (_, arguments) in *examples {
                assert_typed(&format!("{} {arguments}", command.get_name()));
            }
        }
        for command in program.get_subcommands().chain([&program]) {
            let help = command.get_after_long_help().unwrap().to_string();
            assert!(help.starts_with("Examples:\n") && help.contains("  redisbench "), "{help}");
        }
    }
}
