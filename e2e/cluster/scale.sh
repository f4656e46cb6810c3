#!/bin/bash
# scale.sh COMMAND...: runs a command beside a control plane without machines: etcd, API server, controller manager,
# scheduler, and KWOK's nodes. All of it has its own network, mount and PID namespaces: it collides with nothing, can be
# reached from nowhere else, and ends with the command.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
if [ -z "${E2E_RUN:-}" ]; then
  [ "$(id -u)" = 0 ] || die "run as root, for namespaces"
  for f in stamp kwok-stamp; do [ -e "$BIN/$f" ] || die "no $BIN/$f: run build.sh and kwok.sh first"; done
  export E2E_RUN=/run/cluster
  exec unshare --net --mount --propagation private --pid --fork --kill-child --mount-proc "$0" "$@"
fi
# etcd's data too, so that no disk limits what is measured.
mount -t tmpfs -o mode=700 tmpfs /run
mkdir -p "$RUN"/{logs,etcd} "$STATE/pids"
ip link set lo up
ip addr add "$API/24" dev lo
"$HERE/pki.sh" 0 operator
export APISERVER_OPTIONS="--audit-policy-file $HERE/audit.yaml --audit-log-path $RUN/logs/audit.log"
trap '[ $? = 0 ] || tail -n 5 "$RUN"/logs/{etcd,apiserver,controller-manager,scheduler,kwok}.log >&2' EXIT
"$HERE/part.sh" etcd start
"$HERE/part.sh" apiserver start
ready() { [ "$(kubectl get --raw /readyz)" = ok ]; }
until_true 600 ready || die "the API server did not start"
for part in controller-manager scheduler kwok; do "$HERE/part.sh" $part start; done
for i in $(seq "${KWOK_NODES:-10}"); do
  echo "{apiVersion: v1, kind: Node, metadata: {name: kwok-$i, labels: {kubernetes.io/hostname: kwok-$i}}}"
  echo ---
done | kubectl apply -f - >/dev/null
kubectl wait --for=condition=Ready node --all --timeout=120s >/dev/null
kubectl apply -f "$REPO/crds" >/dev/null
# kubectl fails on a definition without any status yet.
until_true 300 kubectl wait --for=condition=Established crd --all --timeout=5s
kubectl create namespace redisbench-system >/dev/null
say "control plane without machines is up"
"$@"
