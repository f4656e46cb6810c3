//! Malformed manifests and results of all kinds. See `redisbench_testkit::hostile`.

use redisbench_testkit::hostile::{Meter, Target, drive};

use super::super::{compile, parse};
use crate::export::sample;
use crate::reading;

#[global_allocator]
static METER: Meter = Meter;

const TARGETS: [Target; 2] = [
    // YAML is parsed into two trees of values. Aliases may repeat their content a limited number of times.
    Target { name: "manifest", run: manifest, seeds, words, memory: (64 << 20, 1024), cases: 400 },
    // Exported in every format, with a histogram per second and operation at a time.
    Target {
        name: "result",
        run: reading::tests::hostile,
        seeds: results,
        words,
        memory: (128 << 20, 4096),
        cases: 100,
    },
];

#[test]
fn hostile_input_is_refused_in_bounded_memory() {
    drive(env!("CARGO_MANIFEST_DIR"), &TARGETS);
}

fn manifest(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match parse(&text) {
        Ok(manifest) => drop(compile(&manifest.benchmark)),
        Err(problems) => assert!(!problems.is_empty()),
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n";
    let quickstart = include_str!("../../../../examples/quickstart.yaml");
    // Every JSON document is also a YAML document.
    let json = serde_json::to_string(&parse(quickstart).unwrap_or_else(|_| unreachable!("it is tested")).document);
    let bomb = (1..9).fold("a0: &a0 [x]\n".to_owned(), |text, n| {
        let list = format!("*a{}, ", n - 1).repeat(9);
        format!("{text}a{n}: &a{n} [{list}]\n")
    });
    let texts = [quickstart.to_owned(), format!("{quickstart}{secret}"), json.unwrap_or_default(), bomb];
    texts.map(String::into_bytes).to_vec()
}

fn results() -> Vec<Vec<u8>> {
    vec![serde_json::to_vec(&sample::trial()).unwrap_or_default()]
}

fn words() -> Vec<String> {
    ["---\n", "&a ", "*a", "<<: *a\n", "!!binary ", "!x ", "? ", "| \n", "\t", ".nan", "0x7f", "~", "{}", "1e999"]
        .map(str::to_owned)
        .to_vec()
}
