//! `redisbench-operator`.

use clap::Parser as _;
use redisbench_operator::options::{Command, Options};

fn main() -> anyhow::Result<()> {
    match Options::parse().command {
        Command::Run(options) => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(redisbench_operator::run(*options))?;
        }
        Command::Crd => print!("{}", redisbench_benchmark::api::crd_yaml()),
        Command::Version => println!("redisbench-operator {}", env!("CARGO_PKG_VERSION")),
    }
    Ok(())
}
