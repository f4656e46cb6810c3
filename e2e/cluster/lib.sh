# Names and helpers shared by the scripts of this folder.
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
REPO=$(cd "$HERE/../.." && pwd)
# All build and runtime files; nothing is written beside the sources.
CACHE=${E2E_CACHE:-$REPO/target/e2e-cluster}
BIN=$CACHE/bin
IMAGES=$CACHE/images
RUN=${E2E_RUN:-$CACHE/run} # files of the running cluster, removed by down.sh
PKI=$RUN/pki
PREFIX=rbe2e             # of the bridge, the network namespaces and the cgroups
STATE=/run/$PREFIX       # what down.sh must undo; not in the cache, which may be deleted
BRIDGE=${PREFIX}0
NET=10.240.0             # the "wire" between the nodes; .1 is this machine
API=$NET.1
API_PORT=6443
SVC_CIDR=10.96.0.0/16
DNS_IP=10.96.0.10
POD_NET=10.244           # node i has $POD_NET.i.0/24
PATH=$BIN:$PATH:/usr/local/go/bin:/usr/sbin:/sbin
KUBECONFIG=$RUN/admin.conf
export KUBECONFIG PATH

START=${START:-$EPOCHREALTIME}
say() { awk -v a="$START" -v b="$EPOCHREALTIME" -v m="$*" 'BEGIN { printf "[%6.1fs] %s\n", b - a, m }'; }
die() { echo "${0##*/}: $*" >&2; exit 1; }

# Detects reused pids by the start time. A zombie has ended, even if it is not reaped, when none of its threads is left to hold its ports.
birth() { awk '{ sub(/.*\) /, ""); if ($1 != "Z" || $18 > 1) print $20 }' "/proc/$1/stat" 2>/dev/null; }
alive() { # pid birth
  [ -n "$2" ] && [ "$(birth "$1")" = "$2" ]
}
until_true() { # tries command...: every 0.2 s
  local tries=$1
  shift
  while ! "$@" >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || return 1
    sleep 0.2
  done
}
