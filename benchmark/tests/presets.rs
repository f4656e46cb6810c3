//! Checks that the presets send what redis-benchmark sends, by running it against a recording server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use redisbench_benchmark::api::preset::{DIGITS, PRESETS, Preset};
use redisbench_wire::plan::Part;

const NUMBERS: u64 = 1_000_000;

/// Answers each command of a connection, and reports those that are arrays.
fn serve(connection: TcpStream, told: &mpsc::Sender<Vec<String>>) -> std::io::Result<()> {
    let mut writer = connection.try_clone()?;
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let count: usize = line.trim().strip_prefix('*').and_then(|count| count.parse().ok()).unwrap_or(0);
        let mut arguments = Vec::new();
        for _ in 0..count {
            line.clear();
            reader.read_line(&mut line)?;
            let length: usize = line.trim().strip_prefix('$').and_then(|length| length.parse().ok()).unwrap_or(0);
            let mut argument = vec![0; length + 2];
            reader.read_exact(&mut argument)?;
            argument.truncate(length);
            arguments.push(String::from_utf8_lossy(&argument).into_owned());
        }
        let is_configuration = arguments.first().is_some_and(|name| name == "CONFIG");
        // Before the answer, because redis-benchmark may exit after it.
        if !is_configuration {
            let _ = told.send(arguments);
        }
        writer.write_all(if is_configuration { b"*2\r\n$4\r\nsave\r\n$0\r\n\r\n" } else { b"+OK\r\n" })?;
        line.clear();
    }
    Ok(())
}

/// The last command of a test.
fn recorded(test: &str) -> Option<Vec<String>> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let (told, commands) = mpsc::channel();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let told = told.clone();
            let _ = connection.set_read_timeout(Some(Duration::from_secs(60)));
            std::thread::spawn(move || serve(connection, &told));
        }
    });
    let range = NUMBERS.to_string();
    let words = ["60", "redis-benchmark", "-p", &port, "-n", "1", "-c", "1", "-q", "-r", &range, "-t", test];
    let status = Command::new("timeout").args(words).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(status.success(), "redis-benchmark -t {test}: {status}");
    commands.try_iter().last()
}

/// Returns whether these parts can produce the argument.
fn fits(parts: &[Part], preset: &Preset, argument: &str) -> bool {
    let mut rest = argument;
    for part in parts {
        let (text, digits) = match part {
            Part::Literal(text) => (text.as_str(), 0),
            Part::Key | Part::NthKey(_) => (preset.prefix, DIGITS),
            Part::Integer { width, .. } => ("", *width as usize),
            // Three bytes by default.
            Part::Data => return rest.len() == 3,
            Part::Sequence | Part::Score => return false,
        };
        let Some((number, after)) = rest.strip_prefix(text).and_then(|rest| rest.split_at_checked(digits)) else {
            return false;
        };
        if digits > 0 && number.parse::<u64>().is_ok_and(|number| number >= NUMBERS) {
            return false;
        }
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

#[test]
fn presets_send_what_redis_benchmark_sends() {
    for preset in PRESETS {
        let Some(sent) = recorded(preset.name) else {
            assert_eq!(preset.name, "xadd", "redis-benchmark -t {} sent nothing", preset.name);
            continue;
        };
        let arguments = preset.arguments(NUMBERS);
        let is_same = arguments.len() == sent.len()
            && arguments.iter().zip(&sent).all(|(parts, argument)| fits(parts, preset, argument));
        assert!(is_same, "{}: {:?} is not {sent:?}", preset.name, preset.command(NUMBERS));
    }
}
