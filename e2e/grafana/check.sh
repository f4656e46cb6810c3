#!/bin/bash
# check.sh: checks the dashboards against the types of Grafana's dashboard schema, of the npm package @grafana/schema.
# Grafana itself is in no package registry; draw.sh draws the panels with its library.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
REPO=$(cd "$HERE/../.." && pwd)
OUT=${CARGO_TARGET_DIR:-$REPO/target}/grafana

mkdir -p "$OUT"
cp "$HERE/package.json" "$HERE/package-lock.json" "$HERE/tsconfig.json" "$HERE/plain.ts" "$OUT/"
(cd "$OUT" && npm ci --silent --ignore-scripts --no-audit --no-fund)
for file in "$REPO"/charts/redisbench-operator/dashboards/*.json; do
  name=$(basename "$file" .json)
  {
    printf "import type { Dashboard } from './plain';\nimport { panels } from './plain';\n\n"
    printf 'export const dashboard: Dashboard = %s;\n\n' "$(cat "$file")"
    # The options of a panel are of its plugin.
    python3 - "$file" <<'PYTHON'
import json, sys
for panel in json.load(open(sys.argv[1], encoding="utf-8"))["panels"]:
    if panel["type"] != "row":
        print(f'panels.{panel["type"]}({json.dumps(panel["options"])});')
PYTHON
  } >"$OUT/$name.ts"
done
cd "$OUT" && npx --no-install tsc --project tsconfig.json
echo "the dashboards match Grafana's schema"
