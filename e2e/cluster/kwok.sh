#!/bin/bash
# kwok.sh: KWOK, which plays nodes and their pods, from its Go module. Does nothing if this version is there.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
VERSION=v0.8.0

mkdir -p "$BIN"
stamp=$({ cat "$0"; go version; } | sha256sum)
[ "$(cat "$BIN/kwok-stamp" 2>/dev/null)" != "$stamp" ] || { say "KWOK is up to date"; exit 0; }

say "building KWOK $VERSION"
export GOBIN=$BIN GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=-buildvcs=false
# See build.sh for the flags.
go install -trimpath -gcflags 'all=-l -dwarf=false' -ldflags "-s -w" sigs.k8s.io/kwok/cmd/kwok@"$VERSION"
printf '%s\n' "$stamp" >"$BIN/kwok-stamp"
say "KWOK built"
