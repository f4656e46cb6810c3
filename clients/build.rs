//! The versions of the libraries under test, from the lock file: results state them.

use std::{env, fs, path::PathBuf};

fn main() {
    let lock = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(lock).unwrap_or_default();
    for (name, variable) in [("redis", "REDIS_VERSION"), ("fred", "FRED_VERSION")] {
        println!("cargo::rustc-env={variable}={}", version(&text, name).unwrap_or("unknown"));
    }
}

fn version<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let package = lock.split("[[package]]").find(|package| package.contains(&format!("\nname = \"{name}\"\n")))?;
    package.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
}
