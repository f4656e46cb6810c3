//! A private network of two hosts, with the test on one, a redis-server on the other, and a link of known capacity in between. Needs root.

use std::env;
use std::net::TcpStream;
use std::process::Command;

use crate::servers::wait_until;

/// The environment variable that marks a process inside the network.
const INSIDE: &str = "REDISBENCH_TEST_NETWORK";

/// The redis-server's address.
pub const SERVER: &str = "10.98.0.2:7000";

#[derive(Clone, Copy, Debug)]
pub enum Shaped {
    Uplink,
    Downlink,
}

#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub shaped: Shaped,
    pub megabits: u32,
    /// The burst that passes at full speed after a pause.
    pub burst_kib: u32,
}

/// Creates the network, runs the test with this name in it, and ends both. The server's namespace lives as long as the process `host`.
const NETWORK: &str = r#"
shaper="root tbf $REDISBENCH_TEST_SHAPER latency 50ms"
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

/// Returns true inside the network, once the server answers. Outside, creates the network and runs the test `name` in it.
pub fn inside(name: &str, link: Link) -> bool {
    if env::var_os(INSIDE).is_some() {
        wait_until("the server answers", || TcpStream::connect(SERVER).is_ok());
        return true;
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "sh", "-c", NETWORK, "sh"]).arg(env::current_exe().unwrap());
    unshare.args(["--exact", name, "--ignored", "--nocapture"]);
    unshare.env(INSIDE, format!("{:?}", link.shaped));
    unshare.env("REDISBENCH_TEST_SHAPER", format!("rate {}mbit burst {}k", link.megabits, link.burst_kib));
    let output = unshare.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    println!("{}", text(&output.stdout));
    assert!(output.status.success(), "within the network:\n{}\n{}", text(&output.stdout), text(&output.stderr));
    false
}
