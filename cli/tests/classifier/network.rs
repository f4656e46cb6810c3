//! Links of 20 Mbit/s in a network of the test's own.

use std::env;
use std::net::TcpStream;
use std::process::Command;

use crate::servers::wait_until;
use crate::situation::{Expected, Manifest, alone, judge};

/// Set where the network is made.
const INSIDE: &str = "REDISBENCH_TEST_NETWORK";

const SERVER: &str = "10.98.0.2:7000";

/// Makes the network, runs the test with this name in it, and ends both. The server's namespace lives as long as `host`.
const NETWORK: &str = r#"
shaper="root tbf rate 20mbit burst 32k latency 50ms"
ip link set lo up
unshare --net sleep 200 & host=$!
trap 'kill $host $server 2>/dev/null' EXIT
until [ "$(readlink /proc/$host/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do :; done
far() { nsenter --target $host --net "$@"; }
set -e
ip link add near type veth peer name far netns $host
ip addr add 10.98.0.1/24 dev near
ip link set near up
far ip addr add 10.98.0.2/24 dev far
far ip link set far up
case $REDISBENCH_TEST_NETWORK in
  Uplink) tc qdisc add dev near $shaper ;;
  Downlink) far tc qdisc add dev far $shaper ;;
esac
nsenter --target $host --net redis-server --port 7000 --bind 10.98.0.2 --protected-mode no --save '' --appendonly no \
  --dir /tmp >/dev/null & server=$!
status=0
"$@" || status=$?
exit $status
"#;

/// Whether this is within the network, where the server is; outside, makes the network and has the test `name` run in it.
fn inside(name: &str, shaped: &str) -> bool {
    if env::var_os(INSIDE).is_some() {
        wait_until("the server answers", || TcpStream::connect(SERVER).is_ok());
        return true;
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "sh", "-c", NETWORK, "sh"]).arg(env::current_exe().unwrap());
    unshare.args(["--exact", name, "--ignored", "--nocapture"]);
    let output = unshare.env(INSIDE, shaped).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    println!("{}", text(&output.stdout));
    assert!(output.status.success(), "within the network:\n{}\n{}", text(&output.stdout), text(&output.stderr));
    false
}

fn link(operations: &str, connections: u32) -> Manifest {
    Manifest {
        operations: operations.into(),
        keys: "{count: 16}".into(),
        workload: "values: {size: {type: Fixed, fixed: {bytes: 16384}}}".into(),
        load: format!("type: ClosedLoop, connections: {connections}, duration: 4s, warmup: 1s"),
        measurement: "linkCapacity: 20Mbit".into(),
        ..Manifest::new(SERVER)
    }
}

#[test]
#[ignore = "makes a network of its own, which needs root: make test-selfcheck"]
fn a_full_uplink() {
    let _machine = alone();
    if inside("network::a_full_uplink", "Uplink") {
        let expected = Expected {
            limited_by: "GeneratorNetwork",
            component: "Uplink",
            ..Expected::clean("an uplink of 20 Mbit/s")
        };
        judge(&expected, &link("[{name: set, command: SET __key__ __data__}]", 8), |_| {});
    }
}

#[test]
#[ignore = "makes a network of its own, which needs root: make test-selfcheck"]
fn a_full_downlink() {
    let _machine = alone();
    if inside("network::a_full_downlink", "Downlink") {
        let expected = Expected {
            limited_by: "GeneratorNetwork",
            component: "Downlink",
            ..Expected::clean("a downlink of 20 Mbit/s")
        };
        judge(&expected, &link("[{name: get, command: GET __key__}]", 8), |_| {});
        // Nobody said what it carries.
        let expected = Expected { limited_by: "Unknown", ..Expected::clean("the same without a stated capacity") };
        let manifest = Manifest { measurement: String::new(), ..link("[{name: get, command: GET __key__}]", 8) };
        judge(&expected, &manifest, |_| {});
    }
}

#[test]
#[ignore = "makes a network of its own, which needs root: make test-selfcheck"]
fn a_link_that_is_not_full() {
    let _machine = alone();
    if inside("network::a_link_that_is_not_full", "Downlink") {
        let load = "type: OpenLoop, openLoop: {rate: 100}, connections: 4, duration: 3s, warmup: 500ms";
        let manifest = Manifest { load: load.into(), ..link("[{name: get, command: GET __key__}]", 4) };
        judge(&Expected::clean("a link of 20 Mbit/s that is not full"), &manifest, |_| {});
    }
}
