//! The functions at an offset of a program, including inlined ones, from `addr2line` and `readelf` (binutils).

use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

use super::samples::Places;
use crate::process::run;

/// A segment of a file and its place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    offset: u64,
    address: u64,
    length: u64,
}

/// The functions at each of these offsets in the file.
///
/// # Errors
/// If the programs are missing or fail.
pub fn places(program: &str, offsets: &BTreeSet<u64>) -> anyhow::Result<HashMap<u64, Places>> {
    let headers = run(&["readelf", "-lW", program], "0", Duration::from_secs(60))?.output;
    let segments = segments(&headers);
    let addresses: HashMap<u64, u64> =
        offsets.iter().filter_map(|offset| Some((address(&segments, *offset)?, *offset))).collect();
    let question: String = addresses.keys().map(|address| format!("{address:#x}\n")).collect();
    let mut child = Command::new("addr2line")
        .args(["-a", "-i", "-f", "-C", "-e", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to start addr2line")?;
    let mut stdin = child.stdin.take().context("failed to open addr2line's standard input")?;
    // In a separate thread, because addr2line prints while it still reads.
    let asking = std::thread::spawn(move || stdin.write_all(question.as_bytes()));
    let output = child.wait_with_output().context("failed to read addr2line's output")?;
    anyhow::ensure!(output.status.success() && matches!(asking.join(), Ok(Ok(()))), "addr2line failed");
    let places = parse(&String::from_utf8_lossy(&output.stdout));
    Ok(places.into_iter().filter_map(|(address, places)| Some((*addresses.get(&address)?, places))).collect())
}

fn segments(headers: &str) -> Vec<Segment> {
    let segment = |line: &str| {
        let mut words = line.split_whitespace();
        let mut number = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let (offset, address, _, length) = (number()?, number()?, number()?, number()?);
        Some(Segment { offset, address, length })
    };
    headers.lines().filter_map(|line| segment(line.trim_start().strip_prefix("LOAD")?)).collect()
}

fn address(segments: &[Segment], offset: u64) -> Option<u64> {
    let holds = |segment: &&Segment| (segment.offset..segment.offset + segment.length).contains(&offset);
    segments.iter().find(holds).map(|segment| offset - segment.offset + segment.address)
}

/// Parses an address followed by two lines per function: its name, and its place in the source.
fn parse(text: &str) -> HashMap<u64, Places> {
    let mut found: HashMap<u64, Places> = HashMap::new();
    let mut current = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(address) = line.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
            current = Some(address);
        } else if let (Some(address), Some(place)) = (current, lines.next()) {
            let source = place.rsplit_once(':').map_or(place, |(source, _)| source);
            found.entry(address).or_default().push((line.to_owned(), source.to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_become_addresses() {
        let text = "  LOAD           0x000000 0x0000000000000000 0x0000000000000000 0x0ebdc4 0x0ebdc4 R   0x1000
  LOAD           0x0ebe00 0x00000000000ece00 0x00000000000ece00 0x222a20 0x222a20 R E 0x1000
  GNU_STACK      0x000000 0x0000000000000000 0x0000000000000000 0x000000 0x000000 RW  0x10";
        let segments = segments(text);
        assert_eq!(segments.len(), 2);
        assert_eq!(address(&segments, 0xebe10), Some(0xece10));
        assert_eq!(address(&segments, 0x10), Some(0x10));
        assert_eq!(address(&segments, 0xffff_ffff), None);
    }

    #[test]
    fn inlined_functions_are_told_innermost_first() {
        let text =
            "0x000000000011c167\nadd\n/x/record.rs:200\ncount\n/x/traffic.rs:342 (discriminator 2)\n0x2\n??\n??:0\n";
        let places = parse(text);
        let wanted = [("add", "/x/record.rs"), ("count", "/x/traffic.rs")];
        let found: Vec<(&str, &str)> = places[&0x11_c167].iter().map(|(name, source)| (&**name, &**source)).collect();
        assert_eq!(found, wanted);
        assert_eq!(places[&2], [("??".to_owned(), "??".to_owned())]);
    }
}
