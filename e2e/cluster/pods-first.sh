#!/bin/bash
# pods-first.sh: lets the pods of a running cluster precede its control plane, which shares their processors. A server that a search is to
# saturate needs a whole one; by default, all pods of a node together weigh as much as one thread of the control plane.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
shopt -s nullglob
shares=(/sys/fs/cgroup/cpu/"$PREFIX"-n*/cpu.shares)
weights=(/sys/fs/cgroup/"$PREFIX"-n*/cpu.weight)
[ $((${#shares[@]} + ${#weights[@]})) -gt 0 ] || die "no node of this cluster has a cgroup for processors"
for file in "${shares[@]}"; do echo 102400 >"$file"; done
for file in "${weights[@]}"; do echo 10000 >"$file"; done
