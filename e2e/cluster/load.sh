#!/bin/bash
# load.sh [ARCHIVE...]: loads image archives (by default the project's own) into
# every node of the running cluster. New pods use them.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
[ -e "$STATE/nodes" ] || die "no cluster is running: run up.sh first"
[ $# -gt 0 ] || set -- "$IMAGES/operator.tar" "$IMAGES/loadgen.tar" "$IMAGES/clients.tar"
for i in $(seq "$(cat "$STATE/nodes")"); do
  for archive; do "$HERE/nctl" "n$i" /usr/bin/ctr -n k8s.io images import "$(realpath "$archive")"; done
done
