#!/bin/bash
# with-cluster.sh COMMAND...: runs a command with its own cluster, and always removes
# the cluster afterwards. With E2E_KUBECONFIG set, starts none.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
export START
[ -z "${E2E_KUBECONFIG:-}" ] || exec "$@"
for step in preflight install build images; do "$HERE/$step.sh"; done
"$HERE/down.sh"
trap '"$HERE/down.sh"; say "cluster removed"' EXIT
trap 'exit 130' INT TERM
"$HERE/up.sh" "${E2E_NODES:-3}"
export E2E_CLUSTER_KUBECONFIG=$KUBECONFIG E2E_CLUSTER_BIN=$BIN
"$@"
