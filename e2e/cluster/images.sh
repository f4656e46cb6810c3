#!/bin/bash
# images.sh [base|project|all]: builds image archives from files of this machine,
# without a registry. The project's own use the release binaries in BIN_DIR; the
# base has a driver too, built from its Go modules.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
what=${1:-all}
BIN_DIR=${BIN_DIR:-${CARGO_TARGET_DIR:-$REPO/target}/release}
mkdir -p "$IMAGES"
image() { # file name arguments...
  local out=$IMAGES/$1.tar name=$2
  shift 2
  python3 "$HERE/mkimage.py" --name "$name" --out "$out" "$@"
}
stale() { # archive source: true if the archive must be rebuilt
  [ ! -e "$IMAGES/$1.tar" ] || [ "$2" -nt "$IMAGES/$1.tar" ] || [ "$HERE/mkimage.py" -nt "$IMAGES/$1.tar" ]
}
if [ "$what" != project ]; then
  ! stale pause "$BIN/pause" || image pause localhost/pause:1 --entry /pause "$BIN/pause:/pause"
  ! stale coredns "$BIN/coredns" || image coredns localhost/coredns:1 --entry /coredns "$BIN/coredns:/coredns"
  # With the official image's name, and without protected mode, like that image.
  ! stale redis "$(command -v redis-server)" || image redis docker.io/library/redis:7.0.15 \
    --entry /usr/bin/redis-server --entry=--protected-mode --entry no --dir /data --workdir /data \
    --elf /usr/bin/redis-server --elf /usr/bin/redis-cli --elf /usr/bin/redis-benchmark
  # With the official image's name, regardless of Debian's patch level.
  ! stale haproxy "$(command -v haproxy)" || image haproxy docker.io/library/haproxy:2.6 --user 99:99 \
    --entry /usr/sbin/haproxy --elf /usr/sbin/haproxy
  # Like drivers/Dockerfile.
  (cd "$REPO/drivers/go" && GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -trimpath -o "$BIN/" ./go-redis)
  ! stale go-redis "$BIN/go-redis" || image go-redis docker.io/redisbench/go-redis:e2e --user 65532:65532 \
    --entry /driver "$BIN/go-redis:/driver"
fi
if [ "$what" != base ]; then
  for p in operator loadgen clients; do
    b=$BIN_DIR/redisbench-$p
    [ -x "$b" ] || die "no $b: run 'make build', or set BIN_DIR to its folder"
    ! stale $p "$b" || image $p docker.io/redisbench/$p:e2e --user 65532:65532 \
      --entry /usr/local/bin/redisbench-$p --elf "$b:/usr/local/bin/redisbench-$p"
  done
fi
