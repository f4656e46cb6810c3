//! Asks sentinels for the primary.

use std::cmp::Reverse;
use std::time::Duration;

use redis::Value;
use redisbench_wire::plan::{ShardPlan, Target};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::access::{Mounts, TargetAccess};
use super::addresses::{addresses, not_answered};
use super::advice;
use super::client::{Client, text};
use super::end::End;
use super::endpoint::Endpoint;
use super::finding::Finding;
use super::jitter::{jitter, share};
use super::trouble::Trouble;

/// The most names in a message.
const NAMED: usize = 8;

/// Poll interval of a watch. Longer with more shards, so that all together ask at most 1,000 times a second. After a manual failover the
/// old primary may stay a primary for seconds. It closes no connection and refuses no command, so only sentinels show the change. They also
/// publish it (`+switch-master`), but only to users whose ACL allows subscribing, and only some milliseconds sooner. A message may be lost,
/// so polling would still be necessary.
const WATCH: Duration = Duration::from_millis(100);
/// Pause before trying the sentinels again after none answered.
const MISSED: Duration = Duration::from_secs(1);
const CONNECT: Duration = Duration::from_secs(5);
/// Wait for further sentinels after the first answer.
const MOMENT: Duration = Duration::from_millis(50);

/// Polls for the primary over a kept connection, and sends a message whenever it changes. `known` is the first one, as `host:port`.
pub async fn watch(plan: ShardPlan, mounts: Mounts, mut known: String, moved: mpsc::Sender<()>) {
    let pause = WATCH.max(share(plan.shards));
    loop {
        // All shards begin at once, and lose the same sentinel at once.
        sleep(jitter(pause)).await;
        if let Ok(access) = TargetAccess::read(&plan, &mounts).await {
            let access = access.for_sentinels();
            for sentinel in &plan.target.endpoints {
                let Some(mut client) = reach(sentinel, access).await else { continue };
                while let Ok(primary) = ask(&plan.target, sentinel, access, &mut client).await {
                    let primary = primary.to_string();
                    if primary != known {
                        known = primary;
                        if moved.send(()).await.is_err() {
                            return;
                        }
                    }
                    sleep(pause).await;
                }
            }
        }
        sleep(MISSED.max(pause)).await;
    }
}

async fn reach(sentinel: &str, access: &TargetAccess) -> Option<Client> {
    for address in sentinel.parse::<Endpoint>().ok()?.resolve().await.ok()? {
        if let Ok(client) = Client::connect(sentinel, address, access.security.as_ref(), CONNECT).await {
            return Some(client);
        }
    }
    None
}

/// All distinct primaries that sentinels name, the most frequent first. The `silent` one goes last. All sentinels are asked in parallel,
/// because the leader of a failover learns its end seconds before the others.
pub async fn named(plan: &ShardPlan, access: &TargetAccess, limit: Duration, silent: Option<&str>) -> Vec<Endpoint> {
    let mut asked = JoinSet::new();
    for text in plan.target.endpoints.clone() {
        let (target, access) = (plan.target.clone(), access.for_sentinels().clone());
        asked.spawn(async move {
            let mut client = reach(&text, &access).await?;
            ask(&target, &text, &access, &mut client).await.ok()
        });
    }
    let mut votes: Vec<(Endpoint, usize)> = Vec::new();
    // After the first answer, a slow sentinel delays the result only briefly.
    while let Ok(Some(answer)) = timeout(if votes.is_empty() { limit } else { MOMENT }, asked.join_next()).await {
        let Ok(Some(primary)) = answer else { continue };
        match votes.iter_mut().find(|(known, _)| *known == primary) {
            Some((_, count)) => *count += 1,
            None => votes.push((primary, 1)),
        }
    }
    votes.sort_by_key(|(primary, count)| (silent == Some(primary.to_string().as_str()), Reverse(*count)));
    votes.into_iter().map(|(primary, _)| primary).collect()
}

/// The primary according to the first sentinel that answers.
pub async fn primary(plan: &ShardPlan, access: &TargetAccess, limit: Duration) -> Result<Endpoint, Finding> {
    let target = &plan.target;
    first(target, access.for_sentinels(), limit).await.map_err(|finding| match finding {
        Finding::Failed(failure) => Finding::Failed(advice::of_sentinels(target, &failure)),
        Finding::Obstacle(failure) => Finding::Obstacle(advice::of_sentinels(target, &failure)),
        other => other,
    })
}

async fn first(target: &Target, access: &TargetAccess, limit: Duration) -> Result<Endpoint, Finding> {
    let mut last = None;
    for text in &target.endpoints {
        let addresses = match addresses(target, text).await {
            Ok((_, addresses)) => addresses,
            Err(Finding::Obstacle(failure)) => {
                last.get_or_insert(failure);
                continue;
            }
            Err(finding) => return Err(finding),
        };
        for address in addresses {
            let connected = Client::connect(text, address, access.security.as_ref(), limit).await;
            let asked = match connected {
                Ok(mut client) => ask(target, text, access, &mut client).await,
                Err(trouble) => Err(trouble.into()),
            };
            match asked {
                Ok(primary) => return Ok(primary),
                Err(End::Judged(finding)) => return Err(finding),
                Err(End::Trouble(trouble)) => match not_answered(target, text, address, access, &trouble).await {
                    Finding::Obstacle(failure) => last = Some(failure),
                    finding => return Err(finding),
                },
            }
        }
    }
    Err(Finding::Obstacle(last.unwrap_or_else(|| advice::unreachable(&target.name, "none", "the list is empty"))))
}

async fn ask(target: &Target, sentinel: &str, access: &TargetAccess, client: &mut Client) -> Result<Endpoint, End> {
    let name = target.master_name.as_deref().unwrap_or_default();
    let mut question = redis::cmd("SENTINEL");
    question.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let own = target.sentinels.as_ref().is_some_and(|own| own.authenticate);
    let mut answer = Err(Trouble::Refused("NOAUTH".to_owned()));
    if !own {
        answer = client.ask(&question).await;
    }
    // Send the servers' password only to a sentinel that requires one.
    if let (Err(trouble), Some(credentials)) = (&answer, &access.credentials)
        && trouble.code() == "NOAUTH"
    {
        answer = match client.ask(&credentials.command()).await {
            Ok(_) => client.ask(&question).await,
            Err(trouble) => Err(trouble),
        };
    }
    match answer {
        Ok(answer) => match read(&answer) {
            Some(primary) => Ok(primary),
            None => Err(unknown(target, sentinel, client).await?.into()),
        },
        Err(trouble) if trouble.text().contains("unknown command") => {
            let message = format!(
                "target {}: {sentinel} is not a sentinel: list sentinels in spec.targets[0].endpoints, or set \
                 spec.targets[0].type: Standalone",
                target.name
            );
            Err(Finding::Failed(advice::wrong_topology(&message)).into())
        }
        Err(trouble)
            if ["NOAUTH", "WRONGPASS", "NOPERM"].contains(&trouble.code())
                || trouble.text().contains("without any password configured") =>
        {
            let name = format!("{}'s sentinel {sentinel}", target.name);
            Err(Finding::Failed(advice::refused_credentials(&name, access.credentials.as_ref(), &trouble)).into())
        }
        Err(trouble) => Err(trouble.into()),
    }
}

fn read(answer: &Value) -> Option<Endpoint> {
    let Value::Array(fields) = answer else { return None };
    let [host, port] = fields.as_slice() else { return None };
    Some(Endpoint::new(text(host)?, text(port)?.parse().ok()?))
}

/// The sentinel has no primary of that name: lists those that it has.
async fn unknown(target: &Target, sentinel: &str, client: &mut Client) -> Result<Finding, Trouble> {
    let answer = client.ask(redis::cmd("SENTINEL").arg("MASTERS")).await?;
    let primaries: &[Value] = if let Value::Array(primaries) = &answer { primaries } else { &[] };
    // Each is a list of fields and values. The first field is the name.
    let names = primaries.iter().filter_map(|primary| match primary {
        Value::Array(fields) => fields.get(1).and_then(text),
        _ => None,
    });
    let known: Vec<&str> = names.take(NAMED).collect();
    let message = format!(
        "target {}: sentinel {sentinel} has no master {:?}: set spec.targets[0].sentinel.masterName to one that \
         it has: {}",
        target.name,
        target.master_name.as_deref().unwrap_or_default(),
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    );
    Ok(Finding::Failed(advice::wrong_topology(&message)))
}

/// Checks that the server that sentinels name is a primary. They may disagree during a failover.
pub async fn check_role(target: &Target, endpoint: &Endpoint, client: &mut Client) -> Result<(), End> {
    match client.ask(&redis::cmd("ROLE")).await {
        Ok(Value::Array(fields)) => match fields.first().and_then(text) {
            Some(role) if role != "master" => {
                let message = format!(
                    "target {}: sentinels return {endpoint}, which is a {role}: wait until the failover ends, or \
                     check SENTINEL MASTERS",
                    target.name
                );
                Err(Finding::Obstacle(advice::wrong_topology(&message)).into())
            }
            _ => Ok(()),
        },
        // A user who may not run ROLE relies on the sentinels.
        Ok(_) | Err(Trouble::Refused(_)) => Ok(()),
        Err(trouble) => Err(trouble.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_host_and_port() {
        let bulk = |text: &str| Value::BulkString(text.into());
        let answer = Value::Array(vec![bulk("10.0.0.1"), bulk("6379")]);
        assert_eq!(read(&answer), Some(Endpoint::new("10.0.0.1", 6379)));
        for answer in [Value::Nil, Value::Array(vec![]), Value::Array(vec![bulk("h"), bulk("x")])] {
            assert_eq!(read(&answer), None, "{answer:?}");
        }
    }
}
