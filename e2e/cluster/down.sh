#!/bin/bash
# down.sh: stops what up.sh started, by pid, and removes everything. Idempotent, and
# safe after a crash. Keeps the logs of the last cluster in the cache.
. "$(dirname "$0")/lib.sh"
read_pid() { read -r pid born 2>/dev/null <"$1"; }
end() { # name...: in any order, because none of their data is kept
  local name
  for name; do
    read_pid "$STATE/pids/$name" && alive "$pid" "$born" && kill -KILL "$pid"
  done
  for name; do
    read_pid "$STATE/pids/$name" || continue
    for _ in $(seq 100); do
      alive "$pid" "$born" || break
      sleep 0.1
    done
  done
}
[ "$(id -u)" = 0 ] || die "run as root"
# Killing `unshare --kill-child` kills the node's pid 1, and with it the whole node.
end $(cd "$STATE/pids" 2>/dev/null && ls)
# Finds the rest by our prefix, also if up.sh failed midway.
for ns in $(ip netns list 2>/dev/null | awk -v p="^$PREFIX-n[0-9]+$" '$1 ~ p { print $1 }'); do
  for pid in $(ip netns pids "$ns"); do kill -KILL "$pid" 2>/dev/null; done
  ip netns del "$ns"
done
# Where ip kept them; it mounts the folder again when needed.
[ -n "$(ip netns list 2>/dev/null)" ] || { mountpoint -q /run/netns && umount /run/netns; }
for c in /sys/fs/cgroup/$PREFIX-n* /sys/fs/cgroup/*/$PREFIX-n*; do
  for _ in $(seq 50); do
    [ -d "$c" ] || break
    find "$c" -depth -type d -exec rmdir {} \; 2>/dev/null
    sleep 0.1
  done
done
ip link show "$BRIDGE" >/dev/null 2>&1 && ip link del "$BRIDGE"
[ -f "$STATE/sysctl.before" ] && while read -r setting; do sysctl -qw "$setting"; done <"$STATE/sysctl.before"
rm -rf "$STATE"
if [ -d "$RUN" ]; then
  rm -rf "$CACHE/logs"
  mv "$RUN/logs" "$CACHE/logs"
  for d in "$RUN"/n*/log; do [ -d "$d" ] && n=${d%/log} && mv "$d" "$CACHE/logs/${n##*/}"; done
  rm -rf "$RUN"
fi
