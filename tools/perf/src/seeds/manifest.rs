//! Manifests of `examples/seeds`, shortened.

use anyhow::Context as _;
use serde_json::Value;

use crate::bench::Bench;
use crate::local;

/// A manifest of `examples/seeds`, and the changes that shorten it.
pub struct Seed {
    pub file: &'static str,
    /// Texts that the manifest has once, and their replacements.
    pub changes: &'static [(&'static str, &'static str)],
}

impl Seed {
    /// Its path below the root.
    pub fn path(&self) -> String {
        format!("examples/seeds/{}", self.file)
    }

    /// Runs it with the additional options of `local`, and with `addresses` changed too, for at most `limit` seconds. Returns the finished
    /// object.
    pub fn run(
        &self,
        bench: &Bench,
        cpus: &str,
        addresses: &[(&str, &str)],
        options: &str,
        limit: u32,
    ) -> anyhow::Result<Value> {
        let path = self.path();
        println!("{path}");
        let manifest = std::fs::read_to_string(&path).with_context(|| format!("failed to read {path}"))?;
        let manifest = self.changed(&manifest, addresses).with_context(|| path.clone())?;
        let folder = tempfile::tempdir().context("failed to create a directory for a manifest")?;
        let file = folder.path().join(self.file);
        std::fs::write(&file, manifest).context("failed to write a manifest")?;
        local::run(bench, cpus, &file, options, limit).context(path)
    }

    /// The text of its file with all changes.
    pub fn changed(&self, manifest: &str, addresses: &[(&str, &str)]) -> anyhow::Result<String> {
        let mut text = manifest.to_owned();
        for (from, to) in self.changes.iter().chain(addresses) {
            let count = text.matches(from).count();
            anyhow::ensure!(count == 1, "the manifest has {count} of {from:?}, which must be there once");
            text = text.replace(from, to);
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_replaced_only_where_it_is_there_once() {
        let seed = Seed { file: "a.yaml", changes: &[("count: 5", "count: 2")] };
        let changed = seed.changed("count: 5\nhost: redis\n", &[("redis", "127.0.0.1")]).unwrap();
        assert_eq!(changed, "count: 2\nhost: 127.0.0.1\n");
        for manifest in ["", "count: 5\ncount: 5\n"] {
            assert!(seed.changed(manifest, &[]).unwrap_err().to_string().contains("must be there once"));
        }
    }
}
