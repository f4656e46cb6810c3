use std::fs;
use std::path::Path;

use redisbench_loadgen::cluster::Topology as Map;
use redisbench_loadgen::engine::{EngineConfig, Login};
use redisbench_wire::plan::{Client, Library, Part, Protocol, Runtime, TrialPlan};

use super::*;
use crate::drivers::{Drivers, Patience};

fn setup(directory: &Path, change: impl FnOnce(&mut TrialPlan)) -> Setup {
    let drivers = Drivers::listen(directory, vec!["go".parse().unwrap()], Patience::default()).unwrap();
    let client = Client {
        name: "subject".into(),
        library: Library::Driver { name: "go".into() },
        pool: Pool::Shared,
        threads: 1,
        runtime: Runtime::CurrentThread,
        retries: 2,
    };
    let mut plan = TrialPlan::basic("redis:6379");
    change(&mut plan);
    let mut config = EngineConfig::new(plan.of_shard(0), 1, Map::of(&["127.0.0.1:7000".parse().unwrap()]));
    config.access.login = Some(Login { username: None, password: b"geheim".to_vec() });
    Setup::new(&config, client, 64, Some(drivers.socket("go").unwrap()))
}

#[test]
fn a_driver_is_configured_as_planned() {
    let directory = tempfile::tempdir().unwrap();
    let setup = setup(directory.path(), |plan| {
        plan.target.protocol = Protocol::Resp3;
        plan.target.database = 3;
        (plan.timeouts.connect_nanoseconds, plan.timeouts.request_nanoseconds) = (2_000_000_000, 500_000);
        plan.workload_mut().operations[0].name = "own".into();
        let literal = |word: &str| vec![Part::Literal(word.into())];
        plan.workload_mut().operations[0].arguments =
            vec![literal("EVAL"), literal("return 1"), literal("1"), vec![Part::Key]];
    });
    let socket = setup.driver.clone().unwrap();
    let told = configuration(&setup, &socket, 4).unwrap();
    assert_eq!((told.topology, told.addresses.as_slice()), (Topology::Standalone, &["127.0.0.1:7000".to_owned()][..]));
    assert_eq!((told.protocol, told.database, told.connections, told.callers), (3, 3, 4, 64));
    assert_eq!((told.sharing, told.retries), (Sharing::Shared, 2));
    assert_eq!((told.connect_timeout_milliseconds, told.response_timeout_milliseconds), (2_000, 1));
    assert_eq!(told.operations, [Operation { name: "own".into(), key: Some(3) }]);
    assert_eq!(fs::read_to_string(told.password_file.unwrap()).unwrap(), "geheim");
    assert_eq!(told.username_file, None);
}

#[test]
fn an_outcome_has_the_drivers_times() {
    let of = |result| called(&Outcome { id: 1, called: 5, completed: 9, checksum: None, null: true, result });
    let good = of(Ok(()));
    assert_eq!((good.called, good.completed), (5, 9));
    assert_eq!(good.reply, Ok(Reply { nil: true, bytes: 0 }));
    for (error, kind, answered, sent) in [
        (contract::CallErrorKind::Reply("WRONGTYPE".into()), "WRONGTYPE", true, true),
        (contract::CallErrorKind::Timeout, "Timeout", false, true),
        (contract::CallErrorKind::Disconnected, "ConnectionReset", false, true),
        (contract::CallErrorKind::Library("TypeError".into()), "Library", false, false),
    ] {
        let failed = of(Err(error)).reply.unwrap_err();
        assert_eq!((failed.kind.as_str(), failed.answered, failed.sent), (kind, answered, sent));
    }
}
