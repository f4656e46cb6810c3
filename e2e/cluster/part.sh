#!/bin/bash
# part.sh PART start|keep|stop|continue|kill: controls one part of the cluster. `up.sh`
# starts all; fault tests stop (SIGSTOP), kill and restart some. `keep` starts a part
# that has exited, as a kubelet does with a control plane's pods, and prints its log's end.
# Parts: etcd, apiserver (with APISERVER_OPTIONS), controller-manager, scheduler, kwok, node-n1, node-n2, ...
# Killing a node disconnects its network first, like a power failure.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
PART=${1:?part} DEED=${2:?start, keep, stop, continue or kill}
[ -d "$STATE/pids" ] || die "no cluster is running: run up.sh first"
node= # its name, if it is a node
case $PART in node-n*) node=${PART#node-} ns=$PREFIX-$node i=${node#n} ;; esac

command_of() { # part: sets `run`
  case $1 in
    etcd) run=(hyperkube etcd --name e2e --data-dir "$RUN/etcd" --unsafe-no-fsync --log-level warn
      --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379
      --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380
      --initial-cluster e2e=http://127.0.0.1:2380) ;;
    apiserver) run=(hyperkube kube-apiserver
      --etcd-servers http://127.0.0.1:2379 --bind-address "$API" --advertise-address "$API" --secure-port "$API_PORT"
      --service-cluster-ip-range "$SVC_CIDR" --allow-privileged --authorization-mode Node,RBAC
      --enable-admission-plugins NodeRestriction
      --client-ca-file "$PKI/ca.crt" --tls-cert-file "$PKI/apiserver.crt" --tls-private-key-file "$PKI/apiserver.key"
      --kubelet-client-certificate "$PKI/kubelet-client.crt" --kubelet-client-key "$PKI/kubelet-client.key"
      --kubelet-certificate-authority "$PKI/ca.crt" --kubelet-preferred-address-types InternalIP
      --service-account-issuer https://kubernetes.default.svc.cluster.local
      --service-account-key-file "$PKI/service-account.pub" --service-account-signing-key-file "$PKI/service-account.key"
      ${APISERVER_OPTIONS:-}) ;;
    controller-manager) run=(hyperkube kube-controller-manager --kubeconfig "$RUN/controller-manager.conf"
      --bind-address 127.0.0.1 --leader-elect=false --use-service-account-credentials
      --root-ca-file "$PKI/ca.crt" --service-account-private-key-file "$PKI/service-account.key"
      --cluster-signing-cert-file "$PKI/ca.crt" --cluster-signing-key-file "$PKI/ca.key"
      --kube-api-qps 300 --kube-api-burst 600 --allocate-node-cidrs=false) ;;
    scheduler) run=(hyperkube kube-scheduler --kubeconfig "$RUN/scheduler.conf" --bind-address 127.0.0.1 --leader-elect=false
      --kube-api-qps 300 --kube-api-burst 600) ;;
    # Nodes without machines. Their pods run at once, at loopback addresses.
    kwok) run=(kwok --kubeconfig "$RUN/admin.conf" --config "$HERE/kwok.yaml" --manage-all-nodes
      --node-ip "$API" --cidr 127.64.0.0/16 --node-lease-duration-seconds 40) ;;
    # nsenter, because `ip netns exec` hides the cgroups. Killing unshare kills the whole node.
    node-n*) run=(nsenter --net="/run/netns/$ns" unshare --mount --propagation private --pid --fork --kill-child --uts
      --mount-proc "$HERE/node.sh" "n$i" "$NET.$((10 + i))" "$POD_NET.$i.0/24") ;;
    *) die "no part $1" ;;
  esac
}
running() { read -r pid born 2>/dev/null <"$STATE/pids/$PART" && alive "$pid" "$born"; }

if [ "$DEED" = keep ]; then
  ! running || exit 0
  { echo "$PART exited and is started again; its log ended with:"; tail -n 10 "$RUN/logs/$PART.log"; } >&2
  DEED=start
fi
if [ "$DEED" = start ]; then
  ! running || die "$PART is already running"
  command_of "$PART"
  [ -z "$node" ] || ip link set "$ns" up
  (
    # Close the caller's files, such as locks: the part outlives the caller.
    for fd in /proc/self/fd/*; do [ "${fd##*/}" -le 2 ] || eval "exec ${fd##*/}>&-"; done
    exec setsid "${run[@]}" >>"$RUN/logs/$PART.log" 2>&1 </dev/null
  ) &
  echo "$! $(birth $!)" >"$STATE/pids/$PART"
  exit 0
fi
running || die "$PART is not running"
case $DEED in
  stop) kill -STOP "$pid" ;;
  continue) kill -CONT "$pid" ;;
  kill)
    [ -z "$node" ] || ip link set "$ns" down
    kill -KILL "$pid"
    # A node has ended when its network has no process left but the one that pins it.
    gone() { ! running && { [ -z "$node" ] || [ -z "$(ip netns pids "$ns")" ]; }; }
    until_true 50 gone || die "$PART did not exit"
    ;;
  *) die "$DEED: must be start, keep, stop, continue or kill" ;;
esac
