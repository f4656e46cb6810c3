//! The live view in a real terminal, which `script` of util-linux makes.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use redisbench_testkit::servers::RedisServer;
use tempfile::TempDir;

use crate::support::{benchmark, load_generator, program, standalone};

const TAKES: &str = "\u{1b}[?1049h";
const GIVES_BACK: &str = "\u{1b}[?1049l";
const SHOWS_CURSOR: &str = "\u{1b}[?25h";
/// The beginning of every colour of the view.
const COLOUR: &str = "\u{1b}[38;5;";
const CTRL_C: &[u8] = b"\x03";

/// A terminal of 40 columns and 10 rows with a run of `local`, between the terminal's settings before and after.
struct Terminal {
    script: Child,
    seen: Vec<u8>,
    _redis: RedisServer,
    _manifest: TempDir,
}

impl Terminal {
    fn start(arguments: &str, duration: &str) -> Self {
        load_generator();
        let redis = RedisServer::start(&[]);
        let directory = tempfile::tempdir().unwrap();
        let manifest = directory.path().join("manifest.yaml");
        let spec = format!(
            "  workload: {{operations: [{{name: get, command: GET __key__}}]}}\n  \
             load: {{type: ClosedLoop, connections: 2, warmup: 0s, duration: {duration}}}\n"
        );
        std::fs::write(&manifest, benchmark(&standalone(redis.endpoint()), &spec)).unwrap();
        let command = format!(
            "stty cols 40 rows 10; stty -g; {} local -f {} {arguments}; echo code $?; stty -g",
            program().display(),
            manifest.display()
        );
        // The shell survives Ctrl-C, which the terminal sends to it too.
        let command = format!("trap : INT; {command}");
        let script = Command::new("script")
            .args(["--quiet", "--flush", "--command", &command, "/dev/null"])
            .envs([("TERM", "xterm"), ("SHELL", "/bin/sh"), ("NO_COLOR", "")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self { script, seen: Vec::new(), _redis: redis, _manifest: directory }
    }

    fn wait_for(&mut self, part: &str) {
        let output = self.script.stdout.as_mut().unwrap();
        while !String::from_utf8_lossy(&self.seen).contains(part) {
            let mut some = [0; 4096];
            let read = output.read(&mut some).unwrap();
            assert!(read > 0, "{part:?} in\n{}", String::from_utf8_lossy(&self.seen));
            self.seen.extend_from_slice(&some[..read]);
        }
    }

    fn types(&mut self, keys: &[u8]) {
        let input = self.script.stdin.as_mut().unwrap();
        input.write_all(keys).and_then(|()| input.flush()).unwrap();
    }

    /// Everything that the terminal got.
    fn finish(mut self) -> String {
        let mut rest = Vec::new();
        self.script.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
        self.script.wait().unwrap();
        self.seen.extend(rest);
        String::from_utf8_lossy(&self.seen).into_owned()
    }
}

/// Asserts that the terminal is as it was before.
fn assert_given_back(text: &str) {
    assert!(text.contains(TAKES) && text.contains(SHOWS_CURSOR), "{text}");
    assert!(text.rfind(GIVES_BACK) > text.rfind(TAKES), "{text}");
    // Settings as `stty -g` prints them.
    let settings: Vec<&str> = text.split_whitespace().filter(|word| word.matches(':').count() > 20).collect();
    assert!(settings.len() == 2 && settings[0] == settings[1], "{settings:?} in\n{text}");
}

#[test]
fn the_view_is_drawn_and_the_terminal_given_back() {
    let text = Terminal::start("", "2s").finish();
    assert_given_back(&text);
    assert!(text.find(TAKES) < text.find("Running") && text.rfind(GIVES_BACK) < text.find("response time"), "{text}");
}

#[test]
fn ctrl_c_gives_the_terminal_back_with_the_partial_result() {
    let mut terminal = Terminal::start("", "1m");
    terminal.wait_for("Running");
    terminal.types(CTRL_C);
    let text = terminal.finish();
    assert_given_back(&text);
    assert!(text.contains("aborting: keeping the partial result") && text.contains("response time"), "{text}");
    assert!(text.contains("code 1"), "{text}");
}

#[test]
fn an_error_gives_the_terminal_back() {
    let text = Terminal::start("--evidence /does/not/exist", "1s").finish();
    assert_given_back(&text);
    let error = text.rfind("failed to write /does/not/exist");
    assert!(error > text.rfind(GIVES_BACK) && text.contains("code 1"), "{text}");
}

#[test]
fn the_view_has_colours_unless_they_are_refused() {
    for (arguments, coloured) in [("", true), ("--color never", false)] {
        let text = Terminal::start(arguments, "2s").finish();
        assert_given_back(&text);
        assert_eq!(text.contains(COLOUR), coloured, "{text}");
    }
}

#[test]
fn plain_lines_are_printed_if_wanted() {
    let text = Terminal::start("--plain", "1s").finish();
    assert!(!text.contains(TAKES) && text.contains("Preparing") && text.contains("response time"), "{text}");
}
