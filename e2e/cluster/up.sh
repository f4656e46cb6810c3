#!/bin/bash
# up.sh [NODES]: starts a real Kubernetes (3 nodes by default) on this machine.
# The control plane runs in this machine's own network namespace, on the
# bridge's address; each node is a set of namespaces (net, mount, pid, uts) with
# its own containerd, kubelet, kube-proxy and CNI bridge.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
NODES=${1:-3}
[ "$(id -u)" = 0 ] || die "run as root"
[ ! -e "$STATE" ] || die "a cluster is running or was left behind on this machine: run $HERE/down.sh first"
[ -z "$(ip route show "$NET.0/24")$(ip route show "$SVC_CIDR")" ] || die "the network $NET.0/24 or $SVC_CIDR is already in use"
for f in "$BIN/stamp" "$IMAGES"/{pause,coredns,redis,haproxy}.tar; do [ -e "$f" ] || die "no $f: run build.sh and images.sh first"; done
rm -rf "$RUN"
mkdir -p "$RUN"/{logs,etcd} "$STATE/pids"
chmod 700 "$RUN"
echo "$NODES" >"$STATE/nodes"
trap '[ $? = 0 ] || echo "up.sh failed; its logs are in $RUN/logs and $RUN/n*/log" >&2' EXIT
"$HERE/pki.sh" "$NODES"
say "certificates"

# Kubelets change these for the whole machine. Saved for down.sh.
for s in vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes fs.inotify.max_user_instances net.ipv4.ip_forward; do
  echo "$s=$(sysctl -n $s)"
done >"$STATE/sysctl.before"
sysctl -qw fs.inotify.max_user_instances=2048 net.ipv4.ip_forward=1

ip link add "$BRIDGE" type bridge
ip addr add "$API/24" dev "$BRIDGE"
ip link set "$BRIDGE" up

for part in etcd apiserver; do "$HERE/part.sh" $part start; done

# On cgroup v1, copies the root's settings. On v2, the root must delegate its
# controllers (written from the documentation, not yet tested).
make_cgroup() { # name
  local c f
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    for c in $(cat /sys/fs/cgroup/cgroup.controllers); do echo "+$c" >/sys/fs/cgroup/cgroup.subtree_control || true; done
    mkdir -p "/sys/fs/cgroup/$1"
    return
  fi
  for c in /sys/fs/cgroup/*/; do
    case $c in */unified/) ;; *) mkdir -p "$c/$1" ;; esac
  done
  for f in cpuset.cpus cpuset.mems; do cat "/sys/fs/cgroup/cpuset/$f" >"/sys/fs/cgroup/cpuset/$1/$f"; done
}
for i in $(seq "$NODES"); do
  ns=$PREFIX-n$i ip=$NET.$((10 + i))
  ip netns add "$ns"
  ip link add "$ns" type veth peer name eth0 netns "$ns"
  ip link set "$ns" master "$BRIDGE" up
  ip -n "$ns" addr add "$ip/24" dev eth0
  ip -n "$ns" link set lo up
  ip -n "$ns" link set eth0 up
  ip -n "$ns" route add default via "$API"
  for j in $(seq "$NODES"); do [ "$j" = "$i" ] || ip -n "$ns" route add "$POD_NET.$j.0/24" via "$NET.$((10 + j))"; done
  ip route add "$POD_NET.$i.0/24" via "$ip" # so that this machine can reach the pods
  # A reserved network that drops packets: the tests' unreachable target.
  ip -n "$ns" route add blackhole 192.0.2.0/24
  make_cgroup "$ns"
  "$HERE/part.sh" "node-n$i" start
done
ip route add "$SVC_CIDR" via "$NET.11" # and the Services, through the first node's kube-proxy

ready() { [ "$(kubectl get --raw /readyz)" = ok ]; }
until_true 300 ready || die "the API server did not start: see $RUN/logs/apiserver.log"
say "API server ready"
for part in controller-manager scheduler; do "$HERE/part.sh" $part start; done
kubectl apply -f "$HERE/coredns.yaml" >/dev/null
for i in $(seq "$NODES"); do until_true 300 kubectl get node "n$i" || die "node n$i did not register: see $RUN/n$i/log"; done
kubectl wait --for=condition=Ready node --all --timeout=120s >/dev/null
say "$NODES nodes Ready"
kubectl -n kube-system wait --for=condition=Available deployment/coredns --timeout=60s >/dev/null
say "up: export KUBECONFIG=$KUBECONFIG PATH=$BIN:\$PATH"
