#!/bin/bash
# install.sh [COMMAND:PACKAGE...]: installs missing Debian packages, by default those
# of the cluster. Without root, sudo or apt, prints what to install.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# command or file:package
needs=${*:-containerd:containerd runc:runc /usr/lib/cni/bridge:containernetworking-plugins nft:nftables iptables:iptables
ip:iproute2 nsenter:util-linux mount:mount sysctl:procps openssl:openssl
redis-server:redis-server redis-cli:redis-tools haproxy:haproxy python3:python3}
missing=
for n in $needs; do
  command -v "${n%:*}" >/dev/null 2>&1 || [ -e "${n%:*}" ] || missing="$missing ${n#*:}"
done
[ -n "$missing" ] || exit 0
command -v apt-get >/dev/null || die "apt-get is missing; install these packages first:$missing"
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || die "run as root, or run first: apt-get install$missing"
  exec sudo "$0" "$@"
fi
# Several targets of the Makefile may install at once.
exec 9>"/run/lock/redisbench-install"
flock 9
say "installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# Only the programs are needed, so their services stay off.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod +x $policy
  trap 'rm -f $policy' EXIT
fi
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing >/dev/null
