//! The command line: all commands.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as _, ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum as _};

use crate::arguments::{
    ALONE, ClusterCommand, CompareArguments, CompletionArguments, ExplainArguments, InitArguments, LocalArguments,
    ReportArguments, RunArguments, ValidateArguments, VersionArguments, name_of,
};
use crate::export::ExportArguments;
use crate::flags::Flags;
use crate::help;

/// Load-test Redis: run a RedisBenchmark manifest locally or on a cluster, and print its merged result.
#[derive(Debug, Parser)]
#[command(name = "kubectl-redisbench", bin_name = "kubectl redisbench", version, propagate_version = true)]
pub struct Arguments {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
    /// Colours: auto uses them on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub color: ColorChoice,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a benchmark from flags or a manifest on this machine, without a cluster, with child processes as shards
    ///
    /// Exit codes: 0: completed and the verdict is not Invalid. 1: Invalid, Failed or Aborted. 2: invalid manifest or usage. 3: `verify`
    /// found lost data or wrong replies. 4: a threshold failed, or a search missed its objective. 5: a threshold could not be judged.
    ///
    /// Ctrl-C aborts the benchmark and prints the partial result. A second Ctrl-C exits immediately.
    Local(LocalArguments),
    /// Write a commented manifest from flags, from questions, or from the command line of another tool
    ///
    /// Without flags, asks on the terminal. Passwords are not written: the manifest refers to a Secret, and its head says how to create it.
    ///
    /// Exit codes: 0: the manifest is written. 1: it could not be. 2: wrong flags, an option that the other tool does not have, or a
    /// benchmark that is not valid.
    Init(InitArguments),
    /// Apply a manifest to the cluster, wait until the benchmark finishes, and print the result
    ///
    /// Exit codes as for local. Ctrl-C aborts the benchmark after a confirmation.
    Run(RunArguments),
    /// Convert a finished benchmark's result into a format that other tools read
    ///
    /// The result is read from the cluster by NAME, or from files: an object saved with `-o json` or `-o yaml`, full results of
    /// `local --output-dir`, or that directory. Unknown numbers, such as quantiles of too few requests, stay empty.
    ///
    /// Exit codes: 0: written. 1: the cluster could not be read, or the file not be written. 2: not a finished result, or it lacks what the
    /// format needs.
    Export(ExportArguments),
    /// Write a finished benchmark's result as one HTML file to read or to send
    ///
    /// The result is read as by export. The file fetches nothing, contains no program, and has at most 2 MB.
    ///
    /// Exit codes as for export.
    Report(ReportArguments),
    /// Check manifests without running them, and print all errors
    ///
    /// Exit codes: 0: all are valid. 2: at least one is invalid.
    Validate(ValidateArguments),
    /// Commands for benchmarks on a cluster.
    #[command(flatten)]
    Cluster(ClusterCommand),
    /// Compare two finished benchmarks with the same workload and load: faster, slower or the same
    ///
    /// Each needs at least 5 usable trials at a setting (spec.repeats): fewer cannot show a difference. The intervals are those of
    /// spec.comparison.
    ///
    /// Exit codes: 0: faster, no relevant difference, or within --tolerance. 1: not comparable, or this program failed. 2: not a finished
    /// result. 4: slower, by more than --tolerance. 5: inconclusive.
    Compare(CompareArguments),
    /// Explain a reason of a verdict or condition, a phase, or an exit code, and what to do next
    Explain(ExplainArguments),
    /// Print the versions of this program and of the operator, if a cluster is reachable
    Version(VersionArguments),
    /// Print a script that completes commands and flags of `redisbench` in a shell
    ///
    /// `kubectl redisbench` is completed by kubectl itself, if the program `kubectl_complete-redisbench` is in PATH.
    Completion(CompletionArguments),
}

/// The command line for a user who calls this program `name`.
pub fn command(name: &'static str) -> clap::Command {
    let flags: Vec<clap::Id> =
        Flags::augment_args(clap::Command::new("")).get_arguments().map(|flag| flag.get_id().clone()).collect();
    let command = Arguments::command().mut_subcommands(|command| {
        let other = match command.get_name() {
            "local" => "file",
            "init" => "from",
            _ => return command,
        };
        // Its short form is the host.
        let help = clap::Arg::new("help").long("help").action(clap::ArgAction::HelpLong).help("Print help");
        let help = help.help_heading(None::<&str>);
        // By name, in place of a list at every flag.
        let excluded = |flag: clap::Arg| if flags.contains(flag.get_id()) { flag.conflicts_with(other) } else { flag };
        command.mut_args(excluded).disable_help_flag(true).arg(help)
    });
    let file = if name == ALONE { ALONE } else { "kubectl-redisbench" };
    help::add_examples(command.name(file).bin_name(name), name)
}

/// Reads the command line.
///
/// # Errors
/// Wrong usage, and requests for help, as a text to print.
pub fn parse(words: &[OsString]) -> Result<Arguments, clap::Error> {
    let name = name_of(words.first().map(OsString::as_os_str));
    let color = color(words);
    let read = |words: &[OsString]| {
        command(name).color(color).try_get_matches_from(words).and_then(|matches| Arguments::from_arg_matches(&matches))
    };
    read(words).map_err(|error| {
        // `-h` is a host, as in redis-cli. As the last word it is a request for help, as everywhere else.
        let is_subcommand = |word: &&OsString| command(name).find_subcommand(word).is_some();
        let is_help = words.last().is_some_and(|word| word == "-h") && is_host_without_value(&error);
        let subcommand = words.iter().skip(1).find(is_subcommand).filter(|_| is_help);
        let help = subcommand.map(|subcommand| [name.into(), subcommand.clone(), "--help".into()]);
        help.and_then(|words| read(&words).err()).unwrap_or(error)
    })
}

/// The value of `--color`, for messages about the command line itself.
fn color(words: &[OsString]) -> ColorChoice {
    let mut words = words.iter().filter_map(|word| word.to_str());
    let value = words.find_map(|word| word.strip_prefix("--color")).map(|rest| rest.strip_prefix('='));
    let value = value.and_then(|attached| attached.or_else(|| words.next()));
    value.and_then(|value| ColorChoice::from_str(value, true).ok()).unwrap_or_default()
}

fn is_host_without_value(error: &clap::Error) -> bool {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "-",
    };
    error.kind() == ErrorKind::InvalidValue
        && text(ContextKind::InvalidArg).starts_with("--host ")
        && text(ContextKind::InvalidValue).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::AS_PLUGIN;

    fn read(line: &str) -> Result<Arguments, clap::Error> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        parse(&words)
    }

    #[test]
    fn command_line_is_consistent() {
        for name in [ALONE, AS_PLUGIN] {
            command(name).debug_assert();
        }
    }

    #[test]
    fn messages_use_the_name_of_the_program() {
        let usage = read("redisbench local --frob").unwrap_err().to_string();
        assert!(usage.contains("Usage: redisbench local") && !usage.contains("kubectl"), "{usage}");
        let usage = read("kubectl-redisbench local --frob").unwrap_err().to_string();
        assert!(usage.contains("Usage: kubectl redisbench local"), "{usage}");
    }

    #[test]
    fn h_is_a_host_and_still_explains() {
        for line in [
            "redisbench local --help",
            "redisbench local -h",
            "redisbench --color never local -c 3 -h",
            "redisbench init -h",
        ] {
            let help = read(line).unwrap_err();
            assert_eq!((help.kind(), help.exit_code()), (ErrorKind::DisplayHelp, 0), "{line}");
            assert!(help.to_string().contains("-h, --host <HOST>"), "{line}: {help}");
        }
        assert_eq!(read("redisbench -h").unwrap_err().kind(), ErrorKind::DisplayHelp);
        // As of `-h $HOST --tls` with an empty variable.
        assert_eq!(read("redisbench local -h --tls").unwrap_err().exit_code(), 2);
        let Command::Local(arguments) = read("redisbench local -h redis").unwrap().command else { panic!() };
        assert_eq!(arguments.flags.target.host.as_deref(), Some("redis"));
    }

    #[test]
    fn flags_beside_a_manifest_are_refused_by_name() {
        for (line, flag, other) in [
            ("local -f a -c 3", "--connections", "--file"),
            ("local -f a -t set", "--tests", "--file"),
            ("local -f a -h b", "--host", "--file"),
            ("local -f a --print-manifest", "--print-manifest", "--file"),
            ("init --from a --rate 3", "--rate", "--from"),
        ] {
            let message = read(&format!("redisbench {line}")).unwrap_err().to_string();
            assert!(message.contains(flag) && message.contains(other), "{line}: {message}");
        }
        assert!(read("redisbench local -f a --shards 3 --with-redis").is_ok());
    }
}
