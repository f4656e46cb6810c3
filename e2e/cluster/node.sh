#!/bin/bash
# node.sh NAME IP PODCIDR: pid 1 of one node, in namespaces created by up.sh.
# All paths are the usual ones, in this node's own mount namespace.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
NAME=$1 IP=$2 CIDR=$3
N=$RUN/$NAME
hostname "$NAME"
mkdir -p "$N"/{cgroup,etc,log} /var/lib/{containerd,kubelet,cni} /opt/cni/bin /etc/cni/net.d /var/log/{pods,containers}
mount --make-rshared /
# A /sys of this network namespace, with the same cgroups.
mount --rbind /sys/fs/cgroup "$N/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$N/cgroup" /sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/containerd /run/netns
own() { mkdir -p "$N/own$1"; mount --bind "$N/own$1" "$1"; } # a folder private to this node
for d in /var/lib/{containerd,kubelet,cni} /opt/cni/bin /etc/cni/net.d /var/log/{pods,containers}; do own "$d"; done
# An overlay cannot lie on an overlay (a container's root).
[ "$(stat -f -c %T /var/lib/containerd)" != overlayfs ] || mount -t tmpfs tmpfs /var/lib/containerd
ln -sf /usr/lib/cni/* /opt/cni/bin
ln -sf "$HERE/shape.py" /opt/cni/bin/shape
sysctl -qw net.ipv4.ip_forward=1
[ ! -e /proc/sys/net/bridge/bridge-nf-call-iptables ] || sysctl -qw net.bridge.bridge-nf-call-iptables=1

cat >/etc/cni/net.d/10-e2e.conflist <<J
{"cniVersion": "1.0.0", "name": "e2e", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$CIDR"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}},
  {"type": "shape", "capabilities": {"bandwidth": true}}
]}
J
echo "nameserver 127.0.0.1" >"$N/etc/resolv.conf"
# restrict_oom_score_adj: the machine may lack CAP_SYS_RESOURCE.
cat >"$N/etc/containerd.toml" <<T
version = 2
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
T
cat >"$N/etc/kubelet.yaml" <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /$PREFIX-$NAME
oomScoreAdj: 0
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
address: $IP
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $PKI/$NAME.crt
tlsPrivateKeyFile: $PKI/$NAME.key
clusterDNS: [$DNS_IP]
clusterDomain: cluster.local
resolvConf: $N/etc/resolv.conf
healthzBindAddress: 127.0.0.1
maxPods: 250
registryPullQPS: 0
evictionHard: {memory.available: 100Mi, nodefs.available: 500Mi, imagefs.available: 500Mi, nodefs.inodesFree: "1%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
nodeStatusUpdateFrequency: 5s
Y
# Leaves conntrack's settings alone: they apply to the whole machine.
cat >"$N/etc/proxy.yaml" <<Y
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: $POD_NET.0.0/16
hostnameOverride: $NAME
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
clientConnection: {kubeconfig: $RUN/proxy.conf}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
Y
containerd --config "$N/etc/containerd.toml" >"$N/log/containerd.log" 2>&1 &
until_true 100 ctr version
for archive in "$IMAGES"/*.tar; do ctr -n k8s.io images import "$archive" >>"$N/log/import.log" 2>&1; done
hyperkube kubelet --config "$N/etc/kubelet.yaml" --kubeconfig "$RUN/$NAME.conf" \
  --hostname-override "$NAME" --node-ip "$IP" -v=2 >"$N/log/kubelet.log" 2>&1 &
hyperkube kube-proxy --config "$N/etc/proxy.yaml" >"$N/log/proxy.log" 2>&1 &
# pid 1 reaps what containers leave behind.
trap 'exit 0' TERM
while :; do wait -n || sleep 1; done
