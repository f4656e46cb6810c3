#!/bin/bash
# draw.sh ANSWERS: draws the dashboards with Grafana's library @grafana/ui in headless Chromium, from the answers in this folder, which the
# test `prometheus` writes. Fails if a panel stays empty or if something is logged. UPDATE=1 writes the pictures of the docs.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
REPO=$(cd "$HERE/../.." && pwd)
ANSWERS=$(cd "$1" && pwd)
OUT=${CARGO_TARGET_DIR:-$REPO/target}/grafana
IMAGES=$OUT
[ -z "${UPDATE:-}" ] || IMAGES=$REPO/docs/images

mkdir -p "$OUT/draw"
cd "$OUT/draw"
cp "$HERE/draw.ts" "$HERE/page.css" .
../node_modules/.bin/esbuild draw.ts --bundle --minify --log-level=warning --define:process.env.NODE_ENV=\"production\" \
  --loader:.svg=dataurl --loader:.css=empty --outfile=draw.js
profile=$(mktemp -d)
trap 'rm -r "$profile"' EXIT
browser() { # argument page: what is logged goes to standard error
  chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --no-first-run --disable-background-networking \
    --disable-component-update --enable-logging=stderr --log-level=0 --user-data-dir="$profile" --virtual-time-budget=20000 "$@"
}
for answers in "$ANSWERS"/*.json; do
  name=$(basename "$answers" .json)
  {
    printf '<!doctype html><meta charset="utf-8"><title>%s</title><style>' "$name"
    cat ../node_modules/uplot/dist/uPlot.min.css page.css
    printf '</style><div id="page"></div><script>window.DRAWING='
    sed 's/</\\u003c/g' "$answers"
    printf '</script><script src="draw.js"></script>\n'
  } >"$name.html"
  browser --window-size=1440,1500 --dump-dom "file://$PWD/$name.html" >"$name.dom" 2>"$name.log"
  ! grep CONSOLE "$name.log"
  empty=$(sed -n 's/.*<pre id="empty">\(.*\)<\/pre>.*/\1/p' "$name.dom")
  [ "$empty" = "[]" ] || { echo "draw.sh: $name has empty panels: ${empty:-not drawn}" >&2; exit 1; }
  browser --window-size=1440,1500 --screenshot="$IMAGES/dashboard-$name.png" "file://$PWD/$name.html" 2>/dev/null
  echo "drew $IMAGES/dashboard-$name.png"
done
