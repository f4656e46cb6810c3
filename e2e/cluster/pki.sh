#!/bin/bash
# pki.sh NODES [NAME...]: certificates and kubeconfigs, everything signed by one CA. Each NAME is another administrator.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
NODES=${1:?number of nodes}
shift
umask 077
mkdir -p "$PKI"
cd "$PKI"
key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key" 2>/dev/null; }
cert() { # name subject [subjectAltName]
  key "$1"
  {
    echo "keyUsage=critical,digitalSignature,keyEncipherment"
    echo "extendedKeyUsage=clientAuth,serverAuth"
    [ -z "${3:-}" ] || echo "subjectAltName=$3"
  } >"$1.ext"
  openssl req -new -key "$1.key" -subj "$2" 2>/dev/null |
    openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile "$1.ext" -out "$1.crt" 2>/dev/null
}
config() { # name: its kubeconfig
  cat >"$RUN/$1.conf" <<Y
apiVersion: v1
kind: Config
clusters: [{name: e2e, cluster: {server: "https://$API:$API_PORT", certificate-authority-data: $(base64 -w0 ca.crt)}}]
users: [{name: $1, user: {client-certificate-data: $(base64 -w0 "$1.crt"), client-key-data: $(base64 -w0 "$1.key")}}]
contexts: [{name: e2e, context: {cluster: e2e, user: $1}}]
current-context: e2e
Y
}
key ca
openssl req -x509 -new -key ca.key -days 30 -subj /CN=e2e-ca -out ca.crt 2>/dev/null
openssl genrsa -out service-account.key 2048 2>/dev/null
openssl rsa -in service-account.key -pubout -out service-account.pub 2>/dev/null
names=DNS:localhost,IP:127.0.0.1,IP:$API,IP:${SVC_CIDR%.*}.1
for n in kubernetes kubernetes.default kubernetes.default.svc kubernetes.default.svc.cluster.local; do names=$names,DNS:$n; done
cert apiserver /CN=kube-apiserver "$names"
cert kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
for c in admin "$@"; do cert "$c" "/O=system:masters/CN=$c"; done
cert controller-manager /CN=system:kube-controller-manager
cert scheduler /CN=system:kube-scheduler
cert proxy /CN=system:kube-proxy
for i in $(seq "$NODES"); do cert "n$i" "/O=system:nodes/CN=system:node:n$i" "DNS:n$i,IP:$NET.$((10 + i))"; done
for c in admin "$@" controller-manager scheduler proxy $(seq -f n%g "$NODES"); do config "$c"; done
