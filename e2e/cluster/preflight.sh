#!/bin/bash
# preflight.sh [MIB]: prints in one line why this machine cannot host a cluster. MIB of disk are required, and at least 6000.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
no() {
  echo "This machine cannot host the end-to-end cluster: $*." >&2
  echo "Run 'make test-unit' instead, or 'E2E_KUBECONFIG=<file> make test-e2e' with an existing cluster." >&2
  exit 1
}
at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -1)" = "$1" ]; }

[ "$(uname -s)" = Linux ] || no "it runs $(uname -s), but Linux is required"
[ "$(id -u)" = 0 ] || no "root is required, for namespaces, cgroups and containerd"
command -v go >/dev/null || no "Go is not installed (Kubernetes is built from its Go modules)"
need=$(awk '$1 == "go" { print $2 }' "$HERE/src/go.mod")
have=$(GOTOOLCHAIN=local go env GOVERSION); have=${have#go}
at_least "$need" "$have" || no "Go is $have, but Kubernetes requires $need or newer"
unshare --net --mount --pid --uts --fork true 2>/dev/null || no "creating namespaces is not permitted (an unprivileged container?)"
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  probe=/sys/fs/cgroup/rbe2e-probe
else
  probe=/sys/fs/cgroup/memory/rbe2e-probe
fi
mkdir "$probe" 2>/dev/null && rmdir "$probe" || no "cgroups are read-only or absent (mkdir $probe failed)"
if command -v ip >/dev/null; then
  unshare --net ip link add probe0 type veth peer name probe1 2>/dev/null || no "the kernel does not support veth pairs"
  unshare --net ip link add probe0 type bridge 2>/dev/null || no "the kernel does not support bridges"
fi
if command -v nft >/dev/null; then
  unshare --net nft add table ip probe 2>/dev/null || no "the kernel does not support nftables, which kube-proxy requires"
fi
mkdir -p "$CACHE"
memory=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
[ "$memory" -ge 4000 ] || no "$memory MiB of memory are available, but 4000 are required"
space=$(df -Pm "$CACHE" | awk 'END { print $4 }')
required=${1:-0}
[ "$required" -ge 6000 ] || required=6000
[ "$space" -ge "$required" ] || no "$space MiB are free in $CACHE, but $required are required"
