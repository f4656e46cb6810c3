#!/bin/bash
# build.sh DIRECTORY: builds the drivers, and writes a command for each into DIRECTORY: DIRECTORY/go-redis and so on.
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")"
mkdir -p "$out"

command_of() { # NAME WORD...
  printf '#!/bin/sh\nexec %s "$@"\n' "${*:2}" >"$out/$1"
  chmod +x "$out/$1"
}

(cd go && go build -o "$out/go/" ./go-redis ./rueidis)
for name in go-redis rueidis; do command_of $name "$out/go/$name"; done

mvn --quiet --batch-mode --file java/pom.xml -DbuildDirectory="$out/java" package
command_of jedis java -cp "'$out/java/lib/*'" redisbench.JedisDriver
command_of lettuce java -cp "'$out/java/lib/*'" redisbench.LettuceDriver

[ -x "$out/python/bin/pip" ] || python3 -m venv "$out/python"
"$out/python/bin/pip" install --quiet --require-hashes --requirement python/requirements.txt
cp python/*.py "$out/python/"
command_of redis-py "$out/python/bin/python" "$out/python/redis_py.py"

mkdir -p "$out/node"
cp node/*.js node/package*.json "$out/node/"
npm ci --prefix "$out/node" --no-audit --no-fund --loglevel error
for name in ioredis node-redis; do command_of $name node "$out/node/$name.js"; done
