//! The questions of `init`. The answers are flags, so that both ways make the same manifest.

use anyhow::Context as _;
use dialoguer::{Confirm, Input, Select};

use crate::flags::{self, Flags, TargetFlags};

pub fn ask() -> anyhow::Result<Flags> {
    questions().context("failed to read an answer; all questions have flags, see --help")
}

fn questions() -> dialoguer::Result<Flags> {
    let kinds = ["one server", "a Redis Cluster", "a primary with sentinels"];
    let kind = Select::new().with_prompt("The target is").items(kinds).default(0).interact()?;
    let address: String = Input::new()
        .with_prompt(if kind == 2 { "Addresses of sentinels" } else { "Address" })
        .default("127.0.0.1".to_owned())
        .interact_text()?;
    let mut target = TargetFlags {
        target: address.split(',').map(|part| part.trim().to_owned()).collect(),
        cluster: kind == 1,
        ..TargetFlags::default()
    };
    if kind == 2 {
        target.sentinel =
            Some(Input::new().with_prompt("Name of the primary").default("mymaster".to_owned()).interact_text()?);
    }
    // The password itself is not in a manifest.
    target.askpass = Confirm::new().with_prompt("Does it need a password?").default(false).interact()?;
    if target.askpass {
        let user: String =
            Input::new().with_prompt("User (empty: the default user)").allow_empty(true).interact_text()?;
        target.user = Some(user).filter(|user| !user.is_empty());
    }
    target.tls = Confirm::new().with_prompt("TLS?").default(false).interact()?;
    let mut flags = Flags { target, ..Flags::default() };
    let loads = ["at a rate: how long do users wait?", "as fast as it answers: what can the server do?"];
    if Select::new().with_prompt("Send requests").items(loads).default(0).interact()? == 0 {
        flags.rate = Some(number("Requests per second", 5000)?);
    }
    flags.connections = Some(number("Connections", 50)?);
    flags.keys = Some(number("Keys", 10_000)?);
    flags.data_size = Some(number("Bytes per value", 100)?);
    let duration: String = Input::new()
        .with_prompt("Duration")
        .default("1m".to_owned())
        .validate_with(|text: &String| flags::duration(text).map(|_| ()))
        .interact_text()?;
    flags.duration = flags::duration(&duration).ok();
    Ok(flags)
}

fn number<T>(question: &str, default: T) -> dialoguer::Result<T>
where
    T: Clone + ToString + std::str::FromStr,
    T::Err: ToString,
{
    Input::new().with_prompt(question).default(default).interact_text()
}
