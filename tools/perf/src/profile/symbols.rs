//! The functions at an offset of a program, including inlined ones, from `addr2line` and `readelf` (binutils).

use std::collections::{BTreeSet, HashMap};

use anyhow::Context as _;

use crate::bench::Bench;

/// The name of a function, and its source file.
pub type Place = (String, String);

/// The functions at each of these offsets in the file, innermost first.
pub fn places(bench: &Bench, program: &str, offsets: &BTreeSet<u64>) -> anyhow::Result<HashMap<u64, Vec<Place>>> {
    let headers = bench.run(&format!("readelf -lW {program}"))?.output;
    let shift = shift(&headers).with_context(|| format!("readelf printed no executable segment: {headers}"))?;
    let addresses: String = offsets.iter().map(|offset| format!("{:#x}\n", offset + shift)).collect();
    let file = tempfile::NamedTempFile::new().context("failed to create a file for addr2line")?;
    std::fs::write(file.path(), addresses).context("failed to write addresses for addr2line")?;
    let line = format!("addr2line -a -i -f -C -e {program} @{}", file.path().display());
    let mut places = parse(&bench.run(&line)?.output);
    let at = |offset: &u64| (*offset, places.remove(&(offset + shift)).unwrap_or_default());
    Ok(offsets.iter().map(at).collect())
}

/// The difference between addresses and offsets in the segment of code.
fn shift(headers: &str) -> Option<u64> {
    let line = headers.lines().find(|line| line.trim_start().starts_with("LOAD") && line.contains("R E"))?;
    let mut numbers = line.split_whitespace().filter_map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let (offset, address) = (numbers.next()?, numbers.next()?);
    address.checked_sub(offset)
}

/// Parses an address followed by two lines per function: its name, and its place in the source.
fn parse(text: &str) -> HashMap<u64, Vec<Place>> {
    let mut found: HashMap<u64, Vec<Place>> = HashMap::new();
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
    fn the_segment_of_code_tells_the_shift() {
        let text = "  LOAD           0x000000 0x0000000000000000 0x0000000000000000 0x0ebdc4 0x0ebdc4 R   0x1000
  LOAD           0x0ebe00 0x00000000000ece00 0x00000000000ece00 0x222a20 0x222a20 R E 0x1000
  GNU_STACK      0x000000 0x0000000000000000 0x0000000000000000 0x000000 0x000000 RW  0x10";
        assert_eq!(shift(text), Some(0x1000));
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
