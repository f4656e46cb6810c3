#!/bin/bash
# down.sh: ends what up.sh started, by pid, and takes everything away; also after
# a crash, and again. The logs of the last cluster stay in the cache.
. "$(dirname "$0")/lib.sh"
read_pid() { read -r pid born 2>/dev/null <"$1"; }
end() { # name...: nothing of theirs is kept, so they need not end in order
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
# Killing `unshare --kill-child` kills the node's pid 1, and all of the node with it.
end $(cd "$STATE/pids" 2>/dev/null && ls)
# What is left is found by our prefix, also if up.sh broke off.
for ns in $(ip netns list 2>/dev/null | awk -v p="^$PREFIX-n[0-9]+$" '$1 ~ p { print $1 }'); do
  for pid in $(ip netns pids "$ns"); do kill -KILL "$pid" 2>/dev/null; done
  ip netns del "$ns"
done
# Where ip kept them; it mounts the folder again when it needs it.
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
