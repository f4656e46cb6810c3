#!/bin/bash
# build.sh: every program of the cluster from its Go modules, in one `go build`
# so that the packages they share are compiled once. Does nothing when the
# sources are those of the last build.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
KUBERNETES=v1.36.3
HELM=v3.21.4

mkdir -p "$BIN"
stamp=$({ cat "$0"; cd "$HERE/src"; find . -type f | LC_ALL=C sort | xargs sha256sum; go version; } | sha256sum)
[ "$(cat "$BIN/stamp" 2>/dev/null)" != "$stamp" ] || { say "cluster programs are up to date"; exit 0; }

say "building Kubernetes $KUBERNETES, CoreDNS and Helm $HELM (5 to 10 minutes on two cores the first time)"
# Unset, nodes would call themselves v0.0.0.
flags="-s -w -X helm.sh/helm/v3/internal/version.version=$HELM"
for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags="$flags -X $p.gitVersion=$KUBERNETES -X $p.gitMajor=1 -X $p.gitMinor=36 -X $p.gitTreeState=clean -X $p.gitCommit=module -X $p.buildDate=2026-01-01T00:00:00Z"
done
cd "$HERE/src"
export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=-buildvcs=false
# Without inlining and debug information, the compiler needs two thirds of the time.
go build -trimpath -gcflags 'all=-l -dwarf=false' -ldflags "$flags" -o "$BIN/" ./hyperkube ./coredns ./pause helm.sh/helm/v3/cmd/helm
ln -sf hyperkube "$BIN/kubectl"
printf '%s\n' "$stamp" >"$BIN/stamp"
say "cluster programs built"
