use clap::Parser;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::manifest::{parse, written};

#[derive(Parser)]
#[command(disable_help_flag = true)]
struct Line {
    #[command(flatten)]
    flags: Flags,
}

fn flags(words: &[&str]) -> Flags {
    Line::try_parse_from([&["x"], words].concat()).unwrap().flags
}

/// The field at `path` of the spec that `words` make, which must be valid.
fn field(words: &[&str], path: &str) -> Value {
    let draft = flags(words).draft("a").unwrap();
    let manifest = draft.manifest(Vec::new());
    assert!(manifest.is_ok(), "{words:?}: {manifest:?}");
    draft.spec().pointer(&format!("/{path}")).cloned().unwrap_or_default()
}

#[test]
fn every_flag_reaches_its_field() {
    let cases: &[(&[&str], &str, Value)] = &[
        (&["--target", "redis"], "targets/0/endpoints", json!(["redis:6379"])),
        (&["--target", "a:1,[::1]:2,::1", "--cluster"], "targets/0/endpoints", json!(["a:1", "[::1]:2", "[::1]:6379"])),
        (&["-h", "redis", "-p", "7"], "targets/0/endpoints", json!(["redis:7"])),
        (&["-h", "fd00::1"], "targets/0/endpoints", json!(["[fd00::1]:6379"])),
        (&["--port", "7"], "targets/0/endpoints", json!(["127.0.0.1:7"])),
        (&["-s", "/run/redis.sock"], "targets/0/endpoints", json!(["unix:/run/redis.sock"])),
        (&["-u", "redis://redis:7/3"], "targets/0/endpoints", json!(["redis:7"])),
        (&["-u", "redis://redis:7/3"], "targets/0/database", json!(3)),
        (&["-u", "rediss://redis"], "targets/0/tls", json!({})),
        (
            &["-u", "redis://bob:x@redis"],
            "targets/0/auth/secretRef",
            json!({"name": "redis-auth", "usernameKey": "username"}),
        ),
        (&[], "targets/0/type", json!("Standalone")),
        (&["--cluster"], "targets/0/type", json!("Cluster")),
        (&["--sentinel", "main"], "targets/0/sentinel/masterName", json!("main")),
        (&["--sentinel", "main", "-h", "a"], "targets/0/endpoints", json!(["a:26379"])),
        (&["--user", "bob", "-a", "x"], "targets/0/auth/secretRef/usernameKey", json!("username")),
        (&["-a", "x"], "targets/0/auth/secretRef", json!({"name": "redis-auth"})),
        (&["--askpass"], "targets/0/auth/secretRef", json!({"name": "redis-auth"})),
        (&["--tls"], "targets/0/tls", json!({})),
        (&["--cacert", "f"], "targets/0/tls/caSecretRef/name", json!("redis-ca")),
        (
            &["--cert", "f", "--key", "g"],
            "targets/0/tls/clientCertificateSecretRef/name",
            json!("redis-client-certificate"),
        ),
        (&["--sni", "name"], "targets/0/tls/serverName", json!("name")),
        (&["--insecure"], "targets/0/tls/insecureSkipVerify", json!(true)),
        (&["-c", "7"], "load/connections", json!(7)),
        (&["-P", "8"], "load/pipeline", json!(8)),
        (&["-n", "900"], "load/requests", json!(900)),
        (&[], "load/duration", json!("10s")),
        (&["-n", "900"], "load/duration", Value::Null),
        (&["--duration", "30"], "load/duration", json!("30s")),
        (&["--duration", "1m30s"], "load/duration", json!("1m30s")),
        (&["--warmup", "0"], "load/warmup", json!("0s")),
        (&["--rate", "500"], "load/openLoop/rate", json!(500)),
        (&["--rate", "500"], "load/type", json!("OpenLoop")),
        (&[], "load/type", json!("ClosedLoop")),
        (&["-d", "9"], "workload/values/size/fixed/bytes", json!(9)),
        (&["-r", "77"], "workload/keys/count", json!(77)),
        (&["-t", "set,lpop"], "workload/preset", json!(["set", "lpop"])),
        (&["-t", "set"], "load/requests", json!(100_000)),
        (&["-t", "set"], "preload/mode", Value::Null),
        (&["-t", "set"], "load/warmup", json!("2s")),
        (&["-t", "set,lpop"], "load/warmup", json!("0s")),
    ];
    for (words, path, value) in cases {
        assert_eq!(field(words, path), *value, "{words:?}: {path}");
    }
    let command = <Line as clap::CommandFactory>::command();
    let tested: Vec<&str> = cases.iter().flat_map(|(words, ..)| words.iter().copied()).collect();
    for flag in command.get_arguments() {
        let short = flag.get_short().map(|short| format!("-{short}"));
        let long = flag.get_long().map(|long| format!("--{long}"));
        let known = [short, long].into_iter().flatten().any(|name| tested.contains(&name.as_str()));
        assert!(known, "no case has {flag}");
    }
}

#[test]
fn mistakes_name_the_flag_or_the_field() {
    let problem = |words: &[&str]| {
        let drafted = flags(words).draft("a").map_err(|problem| vec![problem]);
        let problems = drafted.and_then(|draft| draft.manifest(Vec::new())).unwrap_err();
        problems[0].to_string()
    };
    assert!(problem(&["--user", "bob"]).starts_with("--user: needs a password: add --askpass"));
    assert!(problem(&["-u", "http://a"]).starts_with("-u: must begin with redis://"));
    for address in [["--target", "redis://bob:hunter2@a"], ["-h", "redis://bob:hunter2@a"]] {
        assert_eq!(problem(&address), "--target: must be HOST or HOST:PORT; give a URI with -u");
    }
    assert!(problem(&["-c", "0"]).starts_with("spec.load.connections: 0: "));
    assert!(problem(&["-t", "frob"]).starts_with("spec.workload.preset: "));
    assert!(problem(&["--duration", "1ms"]).starts_with("spec.load.duration: 1ms: "));
    assert_eq!((duration("90"), duration("1m30s")), (Ok("90s".to_owned()), Ok("1m30s".to_owned())));
    assert!(duration("soon").is_err());
}

#[test]
fn a_password_on_the_command_line_is_warned_about_and_never_written() {
    for words in [&["-a", "hunter2"][..], &["-u", "redis://bob:hunter2@a"]] {
        let flags = flags(words);
        assert!(flags.target.warning().unwrap().contains("--askpass"), "{words:?}");
        assert_eq!(flags.target.password().unwrap().unwrap().reveal(), "hunter2");
        let draft = flags.draft("a").unwrap();
        let manifest = draft.manifest(draft.secrets(flags.target.password().unwrap().as_ref()).unwrap()).unwrap();
        let text = written::write(&manifest, &draft.instructions(), true);
        assert!(!format!("{text}{flags:?}{draft:?}{manifest:?}").contains("hunter2"), "{text}");
        assert!(text.contains("Needs the Secret redis-auth"), "{text}");
    }
    assert_eq!(flags(&["--askpass"]).target.warning(), None);
}

proptest! {
    #[test]
    fn a_printed_manifest_reads_back_to_the_same_object(
        connections in 1_u32..1000,
        pipeline in 1_u32..100,
        rate in proptest::option::of(1_u64..1_000_000),
        requests in proptest::option::of(1000_u64..1_000_000),
        keys in 1_u64..1_000_000,
        bytes in 1_u32..10_000,
        cluster: bool,
        test in proptest::option::of(proptest::sample::select(preset_names::all().collect::<Vec<_>>())),
        explained: bool,
    ) {
        let target = TargetFlags { cluster, ..TargetFlags::default() };
        let flags = Flags {
            target,
            connections: Some(connections),
            pipeline: Some(pipeline),
            rate,
            requests,
            keys: Some(keys),
            data_size: Some(bytes),
            tests: test.into_iter().collect(),
            ..Flags::default()
        };
        let draft = flags.draft("a").unwrap();
        if let Ok(manifest) = draft.manifest(Vec::new()) {
            let text = written::write(&manifest, &draft.remarks, explained);
            prop_assert_eq!(parse(&text).unwrap().benchmark, manifest.benchmark, "{}", text);
        }
    }
}
