//! What the documents show is what there is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

#[test]
fn readme_shows_the_quickstart_as_it_is() {
    let example = read("examples/quickstart.yaml");
    let manifest: Vec<&str> = example.lines().skip_while(|line| line.starts_with('#')).collect();
    let shown = format!("```yaml\n{}\n```", manifest.join("\n"));
    assert!(read("README.md").contains(&shown), "README.md must show examples/quickstart.yaml:\n{shown}");
}

#[test]
fn links_lead_somewhere() {
    for document in ["README.md", "docs/architecture.md", "docs/measurement.md", "docs/security.md", "docs/testing.md"]
    {
        let text = read(document);
        let folder = root().join(document).parent().unwrap().to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap_or_default();
            let local = !path.is_empty() && !link.contains("://");
            assert!(!local || folder.join(path).exists(), "{document} links to {link}");
        }
    }
}

#[test]
fn make_targets_that_documents_name_exist() {
    let rules = read("Makefile") + &read("e2e/cluster/cluster.mk");
    for document in ["README.md", "docs/testing.md", "e2e/README.md"] {
        let text = read(document);
        for rest in text.split("`make ").skip(1) {
            let target = rest.split(|c: char| c == '`' || c.is_whitespace()).next().unwrap_or_default();
            assert!(rules.contains(&format!("\n{target}:")), "{document} names make {target}");
        }
    }
}
