#!/bin/bash
# build.sh [DIRECTORY]: builds the newest Redis and Valkey of Debian's unstable release from source, into DIRECTORY/redis and
# DIRECTORY/valkey (target/servers), to be put before /usr/bin in PATH. Builds once; remove the directory to update.
set -euo pipefail
cd "$(dirname "$0")/.."
into=$(mkdir -p "${1:-target/servers}" && cd "${1:-target/servers}" && pwd)

say() { printf 'servers: %s\n' "$*" >&2; }

missing=
for package in redis valkey; do [ -x "$into/$package/redis-server" ] || missing="$missing $package"; done
[ -n "$missing" ] || exit 0
e2e/cluster/install.sh make:build-essential cc:build-essential g++:build-essential pkg-config:pkg-config \
  /usr/include/openssl/ssl.h:libssl-dev

# Own package lists and settings, so that the machine's packages stay those of its release.
apt=$into/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$into/sources"
echo 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian sid main' >"$apt/sources.list"
options=(-o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$apt/lists"
  -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none -qq)
apt-get "${options[@]}" update

for package in $missing; do
  (cd "$into/sources" && rm -rf "$package"* && apt-get "${options[@]}" source --download-only "$package")
  tarball=$(ls "$into/sources/${package}_"*.orig.tar.*z | grep -v '\.asc$')
  say "building ${tarball##*/}"
  mkdir -p "$into/sources/$package"
  # The upstream release with its bundled libraries.
  tar -xf "$tarball" -C "$into/sources/$package" --strip-components 1
  make -C "$into/sources/$package/src" -j"$(nproc)" MALLOC=libc BUILD_TLS=yes OPTIMIZATION=-O2 all >"$into/$package.log" 2>&1 ||
    { tail -n 30 "$into/$package.log" >&2; exit 1; }
  rm -rf "${into:?}/$package.new"
  mkdir "$into/$package.new"
  for program in server cli benchmark sentinel; do
    built=$into/sources/$package/src/$package-$program
    [ ! -x "$built" ] || cp "$built" "$into/$package.new/redis-$program"
  done
  rm -rf "${into:?}/$package" "$into/sources/$package"
  mv "$into/$package.new" "$into/$package"
  "$into/$package/redis-server" --version >&2
done
