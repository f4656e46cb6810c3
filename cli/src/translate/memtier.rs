//! `memtier_benchmark`.

use serde_json::{Value, json};

use super::command::{self, Names};
use super::given::Given;
use super::tables::Part;
use crate::draft::Draft;
use crate::manifest::Problem;

/// The tool's defaults.
const CLIENTS: u64 = 50;
const THREADS: u64 = 4;
const REQUESTS: u64 = 10_000;
const BYTES: u64 = 32;
const LAST_KEY: u64 = 10_000_000;
const RATIO: &str = "1:10";

/// Makes of the parts what they are together, and writes out the tool's defaults.
pub fn finish(given: &Given, draft: &mut Draft) -> Result<(), Problem> {
    target(given, draft)?;
    given.set_threads(draft)?;
    let (threads, connections) = (threads(given)?, connections(given)?);
    draft.set("load/connections", connections);
    let rate: Option<u64> = given.number(Part::Rate)?.filter(|rate| *rate > 0);
    draft.set("load/type", if rate.is_some() { "OpenLoop" } else { "ClosedLoop" });
    draft.set_if("load/openLoop/rate", rate.map(|each| each.saturating_mul(connections)));
    draft.set("load/warmup", "0s");
    // 0 is never.
    let lifetime = given.number::<u32>(Part::Reconnect)?.filter(|requests| *requests > 0);
    draft.set_if("load/connectionLifetime/requests", lifetime);
    let count = keys(given, draft)?;
    values(given, draft)?;
    length(given, count, draft)?;
    steps(given, threads, connections, draft)?;
    operations(given, draft)?;
    waits(given, draft)?;
    if let Some(text) = given.value(Part::Percentiles) {
        let numbers: Option<Vec<Value>> =
            text.split(',').map(|number| serde_json::from_str(number.trim()).ok()).collect();
        let numbers = numbers.filter(|numbers| numbers.iter().all(Value::is_number));
        draft.set(
            "measurement/percentiles",
            numbers.ok_or_else(|| given.wrong(Part::Percentiles, "numbers, such as 50,99.9"))?,
        );
    }
    draft.remark("Numbers in keys have leading zeros here, so keys that memtier_benchmark wrote are not found.");
    Ok(())
}

fn target(given: &Given, draft: &mut Draft) -> Result<(), Problem> {
    let mut target = given.target()?;
    // USER:PASSWORD, or the password alone.
    if let Some((user, _)) = given.value(Part::Password).and_then(|login| login.split_once(':')) {
        target.user = Some(user.to_owned()).filter(|user| !user.is_empty());
    }
    target.apply(draft)?;
    match given.value(Part::Protocol) {
        None => {}
        Some("redis" | "resp2") => draft.set("targets/0/protocol", "RESP2"),
        Some("resp3") => draft.set("targets/0/protocol", "RESP3"),
        Some(_) => return Err(given.wrong(Part::Protocol, "redis, resp2 or resp3, because this is for Redis only")),
    }
    if let Some(versions) = given.value(Part::TlsVersions) {
        let versions = versions.to_lowercase();
        if versions.split(',').any(|version| matches!(version, "tlsv1" | "tlsv1.1")) {
            draft.remark("--tls-protocols: TLS 1.2 is the oldest version here");
        }
        draft.set("targets/0/tls/minimumVersion", if versions == "tlsv1.3" { "TLS13" } else { "TLS12" });
    }
    if let Some(preference) = given.value(Part::ReadFrom) {
        let from = match preference {
            "primary" => "Primary",
            "secondary" => "Replica",
            "secondaryPreferred" => "PreferReplica",
            "nearest" => {
                draft.remark("No counterpart of --read-preference nearest: replicas are not chosen by their latency");
                "PreferReplica"
            }
            _ => return Err(given.wrong(Part::ReadFrom, "primary, secondary, secondaryPreferred or nearest")),
        };
        if given.has(Part::Cluster) {
            draft.set("targets/0/cluster/readFrom", from);
        } else {
            draft.remark("--read-preference: no effect without --cluster-mode");
        }
    }
    Ok(())
}

fn threads(given: &Given) -> Result<u64, Problem> {
    Ok(given.number(Part::Threads)?.unwrap_or(THREADS))
}

/// The connections of all threads.
fn connections(given: &Given) -> Result<u64, Problem> {
    Ok(given.number(Part::Clients)?.unwrap_or(CLIENTS).saturating_mul(threads(given)?))
}

/// The first key's number, and the number of keys.
fn numbers(given: &Given) -> Result<(u64, u64), Problem> {
    let first: u64 = given.number(Part::KeyMinimum)?.unwrap_or(0);
    let last: u64 = given.number(Part::KeyMaximum)?.unwrap_or(LAST_KEY);
    let count = last.checked_sub(first).ok_or_else(|| given.wrong(Part::KeyMaximum, "at least --key-minimum"))?;
    Ok((first, count.saturating_add(1)))
}

/// Sets the keys, and returns their number.
fn keys(given: &Given, draft: &mut Draft) -> Result<u64, Problem> {
    let (first, count) = numbers(given)?;
    draft.set("workload/keys/prefix", given.value(Part::KeyPrefix).unwrap_or("memtier-"));
    draft.set("workload/keys/start", first);
    draft.set("workload/keys/count", count);
    Ok(count)
}

/// Returns whether there are several operations.
fn takes_turns(given: &Given) -> bool {
    let ratio = given.value(Part::Ratio).unwrap_or(RATIO);
    match given.parts().filter(|(part, _)| *part == Part::Command).count() {
        0 => !ratio.starts_with("0:") && !ratio.ends_with(":0"),
        commands => commands > 1,
    }
}

/// Returns whether connections can have keys of their own.
fn walks_alone(given: &Given) -> Result<bool, Problem> {
    let rate = given.number::<u64>(Part::Rate)?.is_some_and(|rate| rate > 0);
    Ok(!rate && !given.has(Part::Cluster) && !given.has(Part::Verify))
}

/// A pattern by its letter.
fn pattern(given: &Given, part: Part, letter: &str) -> Result<Value, Problem> {
    Ok(match letter {
        "R" => json!({"type": "Uniform"}),
        "S" if walks_alone(given)? => json!({"type": "Sequential", "perConnection": true}),
        "P" if !takes_turns(given) => json!({"type": "Partitioned"}),
        // Each connection needs a key.
        "P" if walks_alone(given)? && numbers(given)?.1 >= connections(given)? => {
            json!({"type": "Partitioned", "perConnection": true})
        }
        // Exact turns do not divide the keys.
        "S" | "P" => json!({"type": "Sequential"}),
        "G" => {
            let mut gaussian = json!({});
            for (field, part) in [("mean", Part::KeyMedian), ("standardDeviation", Part::KeyDeviation)] {
                if let Some(number) = given.number::<f64>(part)?.filter(|number| *number > 0.0) {
                    // Fractions of a key have no meaning.
                    gaussian[field] =
                        format!("{number:.0}").parse::<u64>().map_err(|_| given.wrong(part, "a number"))?.into();
                }
            }
            json!({"type": "Gaussian", "gaussian": gaussian})
        }
        "Z" => {
            let exponent = given.value(Part::ZipfExponent).unwrap_or("1");
            json!({"type": "Zipf", "zipf": {"exponent": exponent, "hotKeys": "First"}})
        }
        _ => return Err(given.wrong(part, "of the letters R, S, P, G and Z")),
    })
}

fn values(given: &Given, draft: &mut Draft) -> Result<(), Problem> {
    let numbers = |text: &str, by: char| {
        let (one, other) = text.split_once(by)?;
        Some((one.parse::<u64>().ok()?, other.parse::<u64>().ok()?))
    };
    let size = if let Some(list) = given.value(Part::ValueList) {
        let sizes = list
            .split(',')
            .map(|entry| numbers(entry, ':').map(|(bytes, weight)| json!({"bytes": bytes, "weight": weight})));
        let sizes: Option<Vec<Value>> = sizes.collect();
        let sizes = sizes.ok_or_else(|| given.wrong(Part::ValueList, "SIZE:WEIGHT,SIZE:WEIGHT"))?;
        json!({"type": "Weighted", "weighted": sizes})
    } else if let Some(range) = given.value(Part::ValueRange) {
        let (least, most) = numbers(range, '-').ok_or_else(|| given.wrong(Part::ValueRange, "MINIMUM-MAXIMUM"))?;
        json!({"type": "Range", "range": {"minBytes": least, "maxBytes": most}})
    } else {
        json!({"type": "Fixed", "fixed": {"bytes": given.number(Part::ValueBytes)?.unwrap_or(BYTES)}})
    };
    draft.set("workload/values/size", size);
    draft.set("workload/values/content/type", if given.has(Part::RandomData) { "Random" } else { "Zero" });
    if let Some(range) = given.value(Part::Expiry) {
        let (least, most) = numbers(range, '-').ok_or_else(|| given.wrong(Part::Expiry, "MINIMUM-MAXIMUM"))?;
        draft.set("workload/values/ttl", json!({"min": format!("{least}s"), "max": format!("{most}s")}));
    }
    Ok(())
}

fn length(given: &Given, keys: u64, draft: &mut Draft) -> Result<(), Problem> {
    let seconds: Option<u64> = given.number(Part::Duration)?;
    if let Some(seconds) = seconds.filter(|seconds| *seconds > 0) {
        draft.set("load/duration", format!("{seconds}s"));
    } else if given.value(Part::Requests) == Some("allkeys") {
        // With other patterns, each client sends as many requests as there are keys.
        let once = given.value(Part::KeyPattern) == Some("P:P");
        draft.set(if once { "load/requests" } else { "load/requestsPerConnection" }, keys);
    } else if !given.has(Part::ClientsStep) {
        draft.set("load/requestsPerConnection", given.number(Part::Requests)?.unwrap_or(REQUESTS));
    }
    Ok(())
}

/// The staircase of clients as a sweep.
fn steps(given: &Given, threads: u64, connections: u64, draft: &mut Draft) -> Result<(), Problem> {
    let first: u64 = given.number(Part::ClientsStart)?.unwrap_or(1);
    let step: u64 = given.number(Part::ClientsStep)?.unwrap_or(0);
    if step == 0 {
        if given.has(Part::ClientsStart) || given.has(Part::StepDuration) {
            draft.remark("--clients-start and --step-duration: no effect without --clients-step");
        }
        return Ok(());
    }
    // A spec with more values is refused.
    let values = (0..=250).map(|index| first.saturating_add(step.saturating_mul(index)).saturating_mul(threads));
    let values: Vec<u64> = values.take_while(|value| *value < connections).chain([connections]).collect();
    draft.set("sweep", json!([{"field": "load.connections", "values": values}]));
    draft.set("sweepOrder", "Listed");
    if let Some(seconds) = given.number::<u64>(Part::StepDuration)? {
        draft.set("load/duration", format!("{seconds}s"));
    }
    draft.set_default("load/duration", "10s");
    Ok(())
}

fn operations(given: &Given, draft: &mut Draft) -> Result<(), Problem> {
    let has_own =
        given.parts().any(|(part, _)| matches!(part, Part::Command | Part::CommandRatio | Part::CommandPattern));
    unused(given, has_own, draft);
    let operations = if has_own { own_commands(given, draft)? } else { sets_and_gets(given, draft)? };
    if given.has(Part::Verify) {
        draft.set("verify/mode", "Values");
        draft.remark("--data-verify: the mix is random, because spec.verify does not allow exact turns");
    } else if operations.len() > 1 {
        draft.set("workload/mix", "Ratio");
    }
    draft.set("workload/operations", operations);
    Ok(())
}

fn sets_and_gets(given: &Given, draft: &mut Draft) -> Result<Vec<Value>, Problem> {
    let patterned = given.value(Part::KeyPattern).unwrap_or("R:R");
    let (of_set, of_get) =
        patterned.split_once(':').ok_or_else(|| given.wrong(Part::KeyPattern, "SET:GET, such as R:R"))?;
    let [of_set, of_get] = [pattern(given, Part::KeyPattern, of_set)?, pattern(given, Part::KeyPattern, of_get)?];
    draft.set("workload/keys/pattern", of_set.clone());
    let ratio = given.value(Part::Ratio).unwrap_or(RATIO);
    let wrong = || given.wrong(Part::Ratio, "SET:GET, such as 1:10");
    let (sets, gets) = ratio.split_once(':').ok_or_else(wrong)?;
    let (sets, gets): (u32, u32) = sets.parse().ok().zip(gets.parse().ok()).ok_or_else(wrong)?;
    let set = if given.has(Part::Expiry) { "SET __key__ __data__ EX __ttl__" } else { "SET __key__ __data__" };
    let mut many: u32 = given.number(Part::MultiGet)?.unwrap_or(1);
    if many > 1 && given.has(Part::Cluster) {
        draft.remark("No counterpart of --multi-key-get in a cluster: GET takes its place, because random keys are in different slots");
        many = 1;
    }
    let get = if many > 1 {
        let further: String = (2..=many).map(|key| format!(" __key:{key}__")).collect();
        format!("MGET __key__{further}")
    } else {
        "GET __key__".to_owned()
    };
    let mut get = command::operation("get", gets, &get);
    if of_get != of_set {
        get["keys"] = json!({"pattern": of_get});
    }
    let both = [(sets, command::operation("set", sets, set)), (gets, get)];
    Ok(both.into_iter().filter(|(weight, _)| *weight > 0).map(|(_, operation)| operation).collect())
}

/// Names options that have no effect beside the others, in the tool too.
fn unused(given: &Given, own: bool, draft: &mut Draft) {
    let patterns = [Part::KeyPattern, Part::CommandPattern];
    let has_letter = |letter| given.parts().any(|(part, value)| patterns.contains(&part) && value.contains(letter));
    for (part, option, unless, needs) in [
        (Part::KeyDeviation, "--key-stddev", has_letter('G'), "a key pattern G"),
        (Part::KeyMedian, "--key-median", has_letter('G'), "a key pattern G"),
        (Part::ZipfExponent, "--key-zipf-exp", has_letter('Z'), "a key pattern Z"),
        (Part::KeyPattern, "--key-pattern", !own, "SET and GET, which --command replaces"),
        (Part::Ratio, "--ratio", !own, "SET and GET, which --command replaces"),
        (Part::MultiGet, "--multi-key-get", !own, "GET, which --command replaces"),
    ] {
        if given.has(part) && !unless {
            draft.remark(format!("{option}: no effect without {needs}"));
        }
    }
}

/// The arbitrary commands. Ratios and patterns belong to the command before them.
fn own_commands(given: &Given, draft: &mut Draft) -> Result<Vec<Value>, Problem> {
    let (mut names, mut operations) = (Names::default(), Vec::<Value>::new());
    for (part, value) in given.parts() {
        match (part, operations.last_mut()) {
            (Part::Command, _) => operations.push(command::operation(&names.of(value), 1, value)),
            (Part::CommandRatio, Some(last)) => {
                last["weight"] = value.parse::<u32>().map_err(|_| given.wrong(part, "a number"))?.into();
            }
            (Part::CommandPattern, Some(last)) => last["keys"] = json!({"pattern": pattern(given, part, value)?}),
            (Part::CommandRatio | Part::CommandPattern, None) => return Err(given.wrong(part, "behind a --command")),
            _ => {}
        }
    }
    let all = operations.len();
    operations.retain(|operation| !operation["command"].as_str().is_some_and(command::delimits_transaction));
    if operations.len() < all {
        command::set_transaction(operations.len(), given.has(Part::Cluster), draft);
    }
    Ok(operations)
}

fn waits(given: &Given, draft: &mut Draft) -> Result<(), Problem> {
    // Ranges: the most replicas, and the longest time.
    let most = |part: Part| {
        let text = given.value(part).map(|text| text.rsplit('-').next().unwrap_or(text));
        let number = text.map(|text| text.parse::<u64>().map_err(|_| given.wrong(part, "a number or MINIMUM-MAXIMUM")));
        number.transpose()
    };
    let (replicas, milliseconds) = (most(Part::Replicas)?, most(Part::WaitTimeout)?);
    let waits = [Part::Waits, Part::Replicas, Part::WaitTimeout].into_iter().any(|part| given.has(part));
    if waits {
        draft.set("workload/wait/replicas", replicas.unwrap_or(1));
        draft.set_if(
            "workload/wait/timeout",
            milliseconds.filter(|milliseconds| *milliseconds > 0).map(|ms| format!("{ms}ms")),
        );
        draft.remark("WAIT follows every write, as part of the request; --wait-ratio has no counterpart");
    }
    Ok(())
}
