#!/bin/bash
# preflight.sh: says in one line why this machine can host no cluster.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
no() {
  echo "This machine cannot host the end-to-end cluster: $*." >&2
  echo "Still possible: 'make test-unit', or 'E2E_KUBECONFIG=<file> make test-e2e' for a cluster you have." >&2
  exit 1
}
at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -1)" = "$1" ]; }

[ "$(uname -s)" = Linux ] || no "it needs Linux, this is $(uname -s)"
[ "$(id -u)" = 0 ] || no "it needs root, for namespaces, cgroups and containerd"
command -v go >/dev/null || no "Go is not installed (Kubernetes is built from its Go modules)"
need=$(awk '$1 == "go" { print $2 }' "$HERE/src/go.mod")
have=$(GOTOOLCHAIN=local go env GOVERSION); have=${have#go}
at_least "$need" "$have" || no "Go is $have, Kubernetes needs $need or newer"
unshare --net --mount --pid --uts --fork true 2>/dev/null || no "it may not create namespaces (a container without privileges?)"
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  probe=/sys/fs/cgroup/rbe2e-probe
else
  probe=/sys/fs/cgroup/memory/rbe2e-probe
fi
mkdir "$probe" 2>/dev/null && rmdir "$probe" || no "cgroups are read-only or absent (mkdir $probe failed)"
if command -v ip >/dev/null; then
  unshare --net ip link add probe0 type veth peer name probe1 2>/dev/null || no "the kernel makes no veth pairs"
  unshare --net ip link add probe0 type bridge 2>/dev/null || no "the kernel makes no bridges"
fi
if command -v nft >/dev/null; then
  unshare --net nft add table ip probe 2>/dev/null || no "the kernel has no nftables, which kube-proxy uses"
fi
mkdir -p "$CACHE"
memory=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
[ "$memory" -ge 4000 ] || no "$memory MiB of memory are free, it needs 4000"
space=$(df -Pm "$CACHE" | awk 'END { print $4 }')
[ "$space" -ge 6000 ] || no "$space MiB are free in $CACHE, it needs 6000"
