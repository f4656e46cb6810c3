//! A network of two hosts, the tests' own: the test on one, a redis-server on the other, and a link of known capacity
//! between them.

use std::env;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use redisbench_wire::snapshot::Interface;

use crate::support::wait_until;

/// What the link carries: 40 Mbit/s.
pub const BYTES_PER_SECOND: u64 = 5_000_000;

/// Set where the network is made.
const INSIDE: &str = "REDISBENCH_TEST_NETWORK";

const SERVER: &str = "10.99.0.2:7000";

/// Which way is slow.
#[derive(Clone, Copy)]
pub enum Shaped {
    Uplink,
    Downlink,
}

/// Makes the network, runs the test with this name in it, and ends both. The server's namespace lives as long as `host`.
const NETWORK: &str = r#"
shaper="root tbf rate 40mbit burst 64k latency 50ms"
ip link set lo up
unshare --net sleep 100 & host=$!
trap 'kill $host $server 2>/dev/null' EXIT
until [ "$(readlink /proc/$host/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do :; done
far() { nsenter --target $host --net "$@"; }
set -e
ip link add near type veth peer name far netns $host
ip addr add 10.99.0.1/24 dev near
ip link set near up
far ip addr add 10.99.0.2/24 dev far
far ip link set far up
case $REDISBENCH_TEST_NETWORK in
  Uplink) tc qdisc add dev near $shaper ;;
  Downlink) far tc qdisc add dev far $shaper ;;
esac
nsenter --target $host --net redis-server --port 7000 --bind 10.99.0.2 --protected-mode no --save '' --appendonly no \
  --dir /tmp >/dev/null & server=$!
status=0
"$@" || status=$?
exit $status
"#;

/// Inside the network, where the server is; outside, makes the network, has the test `name` run in it, and says nothing.
pub fn inside(name: &str, shaped: Shaped) -> Option<SocketAddr> {
    if env::var_os(INSIDE).is_some() {
        let server = SERVER.parse().unwrap();
        wait_until("the server answers", || TcpStream::connect(server).is_ok());
        return Some(server);
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "sh", "-c", NETWORK, "sh"]).arg(env::current_exe().unwrap());
    unshare.args(["--exact", name, "--ignored", "--nocapture"]);
    unshare.env(INSIDE, if matches!(shaped, Shaped::Uplink) { "Uplink" } else { "Downlink" });
    let output = unshare.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "within the network:\n{}\n{}", text(&output.stdout), text(&output.stderr));
    None
}

/// The busiest 100 ms were about what the link carries: no more, but for a queue that is sent at once, and not much less.
pub fn assert_full(bytes_per_second: u64, interface: &Interface) {
    let expected = BYTES_PER_SECOND * 7 / 10..BYTES_PER_SECOND * 15 / 10;
    assert!(expected.contains(&bytes_per_second), "{interface:?}");
}
