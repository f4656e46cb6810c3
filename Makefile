SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
WRITE ?= $(if $(ONLY),,docs/evidence/benchmarks.md)

# rustup's directory, for shells without it in PATH.
export PATH := $(PATH):$(HOME)/.cargo/bin
TARGET := $(or $(CARGO_TARGET_DIR),target)
LOGS := $(TARGET)/test-logs

# Clippy compiles our own crates, so linting compiles nothing twice. It leaves out optimisations of rustc, so programs that are
# measured or installed are compiled without it.
export RUSTC_WORKSPACE_WRAPPER := clippy-driver
export CLIPPY_ARGS := -Dwarnings
PLAIN := RUSTC_WORKSPACE_WRAPPER= cargo

# Tests with servers mostly wait, so more of them run at once than there are processors.
WAITING := RUST_TEST_THREADS=8

# Tests that need root, but no idle machine.
ROOT := processors::a_quota_shows_as_throttled_time names::a_name_that_moves_is_followed \
	names::a_pool_has_all_addresses_of_a_name names::a_pool_follows_its_name

# The programs with unit tests; `--bins` would compile tests of the others, too. benchmark/tests/edges.rs checks the list.
UNIT := --lib --bin kubectl-redisbench --bin redisbench-floor --bin redisbench-perf --bin redisbench-scale --bin redisbench-soak

# Programs that the measurements need besides our own.
TOOLS := $(TARGET)/tools
INFERNO := 0.12.8
RESP_BENCHMARK := 0.2.5
DRIVERS := $(TARGET)/drivers
READERS := $(TOOLS)/readers
HDRHISTOGRAM := 0.10.8
PYARROW := 26.0.1
JUNITPARSER := 5.0.3
CMARKGFM := 2025.10.22
MDBOOK := 0.5.4

# Files that pages of the documentation link to, beside the pages.
LINKED := examples charts/redisbench-operator/values.yaml charts/redisbench-operator/rules.yaml charts/redisbench-operator/dashboards

# Cargo resolves the features of dependencies for the selected packages. Every command of a profile therefore selects the
# same ones, and names its programs by --bin; benchmark/tests/edges.rs checks it.
RELEASE := -p redisbench-operator -p redisbench-loadgen -p redisbench-clients -p kubectl-redisbench -p redisbench-perf -p redisbench-scale
MEASURED := $(RELEASE) --bin redisbench-loadgen --bin redisbench-drive --bin redisbench-slices --bin redisbench-perf --bin redisbench-floor

include e2e/cluster/cluster.mk

.PHONY: help run build simulate soak fuzz bench profile bench-stall bench-storm bench-aa bench-clients bench-seeds verdict servers test-servers test-drivers record-evidence record test test-steps test-unit test-selfcheck test-exports test-report test-examples test-timing test-nodes test-cost test-chart lint fmt deny crds docs images packages clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: packages ## load a throwaway Redis from two local shards, or run `local` with ARGS, and print the merged result
	$(PLAIN) build --profile local -p redisbench-loadgen -p kubectl-redisbench --no-default-features \
	  --bin redisbench-loadgen --bin kubectl-redisbench
	$(TARGET)/local/kubectl-redisbench local $(or $(ARGS),-f examples/quickstart.yaml --with-redis --shards 2)

build: packages ## build the four programs, optimised; `redisbench` is the plugin without kubectl
	$(PLAIN) build --release $(RELEASE) --bin redisbench-operator --bin redisbench-loadgen --bin redisbench-clients --bin kubectl-redisbench
	ln -sf kubectl-redisbench $(TARGET)/release/redisbench
	cp cli/kubectl_complete-redisbench $(TARGET)/release/

# Uses the build of the tests, to build nothing twice.
simulate: packages ## run the simulation with SEEDS=1..20000; prints the trace of the lowest failing seed
	cargo build --workspace --bin redisbench-simulate
	$(TARGET)/debug/redisbench-simulate --seeds $(or $(SEEDS),1..20000)

soak: packages ## local runs with random faults for MINUTES (10); SEED (1) determines the faults
	@$(E2E)/install.sh ip:iproute2 nft:nftables unshare:util-linux
	cargo build --workspace --bin redisbench-loadgen --bin kubectl-redisbench --bin redisbench-soak
	$(TARGET)/debug/redisbench-soak --minutes $(or $(MINUTES),10) --seed $(or $(SEED),1)

# A fifth of the time for each crate that reads input of a shard, a server, the API server or a user.
fuzz: packages ## fuzz all decoders for MINUTES (10); FUZZ_SEED=n sets the first seed
	FUZZ_SECONDS=$$(( $(or $(MINUTES),10) * 60 / 5 )) cargo test --workspace $(UNIT) -- \
	  hostile_input --nocapture --test-threads 1

# A real measurement needs an idle machine and takes less than half an hour. LENGTH=0.02 PAIRS=1 is a smoke test;
# WRITE= keeps docs/evidence/benchmarks.md as it is, and ONLY=text measures some rows.
bench: packages ## check the load generator's cost against its limits, in PAIRS (5) of runs; writes docs/evidence/benchmarks.md; needs strace, valgrind, an otherwise idle machine
	@$(E2E)/install.sh strace:strace valgrind:valgrind taskset:util-linux
	$(PLAIN) build --release $(MEASURED)
	$(TARGET)/release/redisbench-perf --pairs $(or $(PAIRS),5) --length $(or $(LENGTH),1) --only "$(ONLY)" \
	  $(addprefix --write ,$(WRITE))

# The flame graph shows our load generator at P=16, GET. inferno is not a dependency of the workspace.
profile: packages ## profile the load generator's CPU time and compare it with bare system calls; writes docs/evidence/profile.md and docs/evidence/flame.svg; needs perf, binutils, crates.io, root or perf_event_paranoid below 2
	@$(E2E)/install.sh perf:linux-perf addr2line:binutils taskset:util-linux
	[ -x $(TOOLS)/bin/inferno-flamegraph ] || $(PLAIN) install --quiet --locked --root $(TOOLS) --no-default-features --features cli,nameattr inferno@$(INFERNO)
	$(PLAIN) build --profile profiling $(MEASURED)
	$(TARGET)/profiling/redisbench-perf profile --pairs $(or $(PAIRS),5) --length $(or $(LENGTH),1) --stacks $(TOOLS)/stacks.txt --write docs/evidence/profile.md
	$(TOOLS)/bin/inferno-flamegraph --deterministic --colors rust --minwidth 0.5 --title 'One worker, 50 connections, P=16, GET, null server' \
	  --countname samples $(TOOLS)/stacks.txt >docs/evidence/flame.svg

bench-stall: packages ## compare load generators on a server that stalls for half a second; writes docs/evidence/stall.md; needs python3, PyPI
	@$(E2E)/install.sh taskset:util-linux python3:python3
	@python3 -c 'import ensurepip' 2>/dev/null || $(E2E)/install.sh ensurepip:python3-venv
	[ -x $(TOOLS)/venv/bin/resp-benchmark ] || \
	  { python3 -m venv $(TOOLS)/venv && $(TOOLS)/venv/bin/pip install --quiet resp-benchmark==$(RESP_BENCHMARK); }
	$(PLAIN) build --release $(MEASURED) --bin redisbench-clients --bin kubectl-redisbench
	$(TARGET)/release/redisbench-perf stall --resp-benchmark $(TOOLS)/venv/bin/resp-benchmark --write docs/evidence/stall.md

# Counts all connections that the machine opens, so nothing else may open many. WRITE= keeps the page as it is.
bench-storm: WRITE = docs/evidence/storm.md
bench-storm: packages ## check reconnects of SHARDS (200) shards on a server that stops for ten seconds; writes docs/evidence/storm.md; needs an otherwise idle machine
	@$(E2E)/install.sh taskset:util-linux
	$(PLAIN) build --release $(MEASURED) --bin kubectl-redisbench
	$(TARGET)/release/redisbench-perf storm --shards $(or $(SHARDS),200) $(addprefix --write ,$(WRITE))

# They mostly wait for the starts of trials, so ten run at a time: a quarter of an hour for 200. WRITE= keeps the page as it is.
bench-aa: WRITE = docs/evidence/clients.md
bench-aa: packages ## compare client libraries with themselves, AA (200) times, and count false differences; writes its part of docs/evidence/clients.md
	@$(E2E)/install.sh taskset:util-linux
	$(PLAIN) build --release $(MEASURED) --bin redisbench-clients --bin kubectl-redisbench
	$(TARGET)/release/redisbench-perf itself --comparisons $(or $(AA),200) $(addprefix --write ,$(WRITE))

# Takes a quarter of an hour of an idle machine. PAIRS and LENGTH are those of the plain program.
bench-clients: WRITE = docs/evidence/clients.md
bench-clients: packages ## compare the clients of examples/clients.yaml and of fred's document, and two of them with a plain program; writes its part of docs/evidence/clients.md
	@$(E2E)/install.sh taskset:util-linux
	$(PLAIN) build --release $(MEASURED) --bin redisbench-clients --bin redisbench-plain --bin kubectl-redisbench
	$(TARGET)/release/redisbench-perf libraries --pairs $(or $(PAIRS),5) --length $(or $(LENGTH),1) $(addprefix --write ,$(WRITE))

# Takes half an hour of an idle machine. ONLY selects documents by a part of their name: redis-client, fred, RedisHappy.
bench-seeds: WRITE = docs/evidence/seeds.md
bench-seeds: packages ## remake the tables of three documents of examples/seeds, ONLY=text of some, beside their own figures; writes its parts of docs/evidence/seeds.md; needs haproxy, an otherwise idle machine
	@$(E2E)/install.sh taskset:util-linux haproxy:haproxy
	$(PLAIN) build --release $(MEASURED) --bin redisbench-clients --bin kubectl-redisbench
	$(TARGET)/release/redisbench-perf seeds --only "$(ONLY)" $(addprefix --write ,$(WRITE))

# The last lines name what failed, because the log of a cluster is long, and sum the results of all steps. A step that failed
# before its tests counts as one failure.
test: ## run all tests, the last ones on a Kubernetes cluster of three nodes that it builds and starts
	@mkdir -p $(LOGS)
	@status=0; $(MAKE) test-steps 2>&1 | tee $(LOGS)/test.log || status=$$?; \
	awk -v status=$$status \
	  'panicked { print substr(panicked " " $$0, 1, 900); panicked = "" } \
	  /^thread .* panicked at / { panicked = $$0 } \
	  /^test result: / { passed += $$4; failed += $$6 } \
	  /^Ran [0-9]+ tests? in / { passed += $$2 } \
	  /^FAILED \(/ { bad = 0; count = split($$0, part, /[=,)]/); for (i = 2; i <= count; i += 2) bad += part[i]; passed -= bad; failed += bad } \
	  END { if (status && !failed) failed = 1; printf "%d passed, %d failed\n", passed, failed }' $(LOGS)/test.log; \
	exit $$status

# Kubernetes takes longest to build on a fresh machine, so it is built beside the Rust code, and the release programs beside the
# tests, many of which wait. What is built takes 6 GB of disk, which must be free besides what the cluster needs after it.
test-steps:
	@[ -n "$${E2E_KUBECONFIG:-}" ] || { \
	  built=$$(du -sm --exclude=e2e-cluster $(TARGET) 2>/dev/null | cut -f1 || true); \
	  $(E2E)/preflight.sh $$((12000 - $${built:-0})) && $(E2E)/install.sh; \
	}
	@started=; trap 'for job in $$started; do kill -- -$$job 2>/dev/null || true; done' EXIT; \
	beside() { setsid "$${@:2}" >$(LOGS)/$$1.log 2>&1 & started+=" $$!"; }; \
	finish() { \
	  echo "waiting for the build of $$1 ($(LOGS)/$$1.log)"; \
	  wait $$2 || { cat $(LOGS)/$$1.log; exit 1; }; \
	}; \
	cluster=; [ -n "$${E2E_KUBECONFIG:-}" ] || { beside kubernetes $(SHELL) -c '$(E2E)/build.sh && $(E2E)/kwok.sh'; cluster=$$!; }; \
	$(MAKE) lint; \
	beside release nice -n 5 $(SHELL) -c '$(MAKE) build && $(PLAIN) build --release $(MEASURED) --bin redisbench-scale'; release=$$!; \
	$(MAKE) test-unit; $(MAKE) test-exports; $(MAKE) test-report; $(MAKE) test-selfcheck; \
	finish release $$release; \
	$(MAKE) test-cost; \
	[ -z "$$cluster" ] || finish kubernetes $$cluster; \
	trap - EXIT
	@$(MAKE) test-chart
	@[ -n "$${E2E_KUBECONFIG:-}" ] || $(MAKE) test-scale
	@$(MAKE) test-e2e

# Builds first, because tests start the programs of other crates.
test-unit: packages ## run the tests that need no Kubernetes; needs redis-server and haproxy
	@$(E2E)/install.sh haproxy:haproxy script:bsdutils jq:jq
	cargo build --workspace --bins --tests
	cargo test --workspace --exclude redisbench-simulate $(UNIT)
	$(WAITING) cargo test --workspace --exclude redisbench-e2e --test '*'

# The other tests of these binaries are among the unit tests.
test-selfcheck: packages ## run the tests that create cgroups or namespaces; needs root
	@$(E2E)/install.sh unshare:util-linux mount:mount
	cargo test --workspace --test selfcheck --test shard -- --ignored --exact $(ROOT)

# promtool comes from Debian. Python's readers come from PyPI, into target/tools.
test-exports: packages ## read exports of a real run with promtool, Python's hdrhistogram, pyarrow and junitparser, and GitHub's Markdown; needs python3, PyPI, prometheus
	@$(E2E)/install.sh promtool:prometheus python3:python3
	@python3 -c 'import ensurepip' 2>/dev/null || $(E2E)/install.sh ensurepip:python3-venv
	[ -x $(READERS)/bin/pip ] || python3 -m venv $(READERS)
	$(READERS)/bin/pip install --quiet hdrhistogram==$(HDRHISTOGRAM) pyarrow==$(PYARROW) \
	  junitparser==$(JUNITPARSER) cmarkgfm==$(CMARKGFM)
	cargo build --workspace --bin redisbench-loadgen --bin kubectl-redisbench
	READERS_PYTHON=$(abspath $(READERS))/bin/python3 \
	  cargo test --workspace --test suite -- --ignored --exact exports::other_readers_agree

test-report: packages ## draw a report in Chromium; UPDATE=1 writes the pictures of the docs, and those of the live view; needs chromium
	@$(E2E)/install.sh chromium:chromium
	cargo test --workspace --bin kubectl-redisbench -- --exact progress::picture::the_pictures_of_the_docs_are_fresh
	cargo test --workspace --bin kubectl-redisbench -- --ignored --exact report::browser::a_browser_draws_every_plot_and_fetches_nothing

# One after the other, for two hours. `make test-unit` runs all of them shortened.
test-examples: packages ## run the files of examples/ unchanged, except those of more than ten minutes; needs an otherwise idle machine, two hours
	cargo build --workspace --bin redisbench-loadgen --bin redisbench-clients --bin kubectl-redisbench
	cargo test --workspace --test suite -- --ignored --exact examples::every_example_runs_unchanged --nocapture

test-nodes: packages ## 20 shards on 100 Redis primaries: each node's account is exact; needs 1 GB of memory
	cargo test --workspace --test engine -- --ignored --exact cluster::a_hundred_primaries_are_divided_among_twenty_shards

# Checks latencies, rates and times against theory, clocks and logs. `make test` runs the part that does not depend on the
# machine's speed.
test-timing: packages ## run the tests that depend on timing; needs root, a kernel with tbf, an otherwise idle machine
	@$(E2E)/install.sh ip:iproute2 tc:iproute2 unshare:util-linux
	cargo build --workspace --bin redisbench-loadgen --bin kubectl-redisbench
	cargo test --workspace --test engine -- --ignored --test-threads 1 stall::
	cargo test --workspace --test selfcheck -- --ignored --test-threads 1
	REDISBENCH_TIMING=1 cargo test --workspace --test shard -- --test-threads 1 changes:: sentinel:: servers::
	cargo test --workspace --test suite -- --ignored --test-threads 1 --skip exports:: --skip examples::
	REDISBENCH_TIMING=1 cargo test --workspace --test suite -- --test-threads 1 windows:: experiments::

# The situations run one by one for some seconds each: an hour for RUNS=10. ONLY=text selects some.
verdict: servers ## run every situation RUNS (10) times and check its verdict; writes docs/evidence/verdict.md; needs root, a kernel with tbf, an otherwise idle machine, an hour
	@$(E2E)/install.sh ip:iproute2 tc:iproute2 unshare:util-linux mkfs.ext4:e2fsprogs mount:mount taskset:util-linux
	cargo build --workspace --bin redisbench-loadgen --bin redisbench-clients --bin kubectl-redisbench
	RUNS="$(or $(RUNS),10)" ONLY="$(ONLY)" WRITE="$(if $(ONLY),,docs/evidence/verdict.md)" \
	  cargo test --workspace --test classifier -- --ignored --exact every_situation --nocapture

# Optimised, because debug builds cost more per request.
test-cost: packages ## check the system calls and instructions per request against their limits; needs strace with ptrace, valgrind
	@$(E2E)/install.sh strace:strace valgrind:valgrind taskset:util-linux
	$(PLAIN) build --release $(MEASURED)
	$(TARGET)/release/redisbench-perf --exact

# Servers other than Debian's redis-server, from Debian unstable: built once, some minutes each. The versions are those that it has on that
# day; to update, remove target/servers.
servers: packages ## build the newest Redis and Valkey from Debian's sources into target/servers
	servers/build.sh $(TARGET)/servers

# The tests that depend on the server, so without those of the null server.
test-servers: servers ## test the engine, clusters, sentinels, verification, presets and server statistics with each of them; needs Debian, a C++ compiler
	cargo build --workspace --bin redisbench-loadgen --bin kubectl-redisbench
	for server in redis valkey; do \
	  export PATH="$(abspath $(TARGET))/servers/$$server:$$PATH"; redis-server --version; \
	  $(WAITING) cargo test --workspace --test engine --test shard -- --skip null_server:: --skip rate::; \
	  $(WAITING) cargo test --workspace --test suite -- presets:: seeds:: experiments::; \
	  cargo test --workspace --test presets; \
	done

# Each against a redis-server of its own: its conformance, with and without its library, and a short benchmark.
test-drivers: packages ## build the drivers of client libraries in Go, Java, Python and Node.js, and check each; needs Go 1.26, JDK 17, Maven, Node.js 20.15, npm, python3, and their registries
	@$(E2E)/install.sh go:golang javac:default-jdk-headless mvn:maven python3:python3 node:nodejs npm:npm
	@python3 -c 'import ensurepip' 2>/dev/null || $(E2E)/install.sh ensurepip:python3-venv
	drivers/build.sh $(DRIVERS)
	cargo build --workspace --bin redisbench-loadgen --bin redisbench-clients --bin kubectl-redisbench
	@for driver in go-redis rueidis jedis lettuce redis-py ioredis node-redis; do for option in "" --noop; do \
	  echo "$$driver $$option"; $(TARGET)/debug/redisbench-clients conformance $$option -- $(DRIVERS)/$$driver; \
	done; done
	DRIVERS=$(abspath $(DRIVERS)) cargo test --workspace --test suite -- --ignored --exact drivers::every_driver_runs_a_benchmark

# On the idle machine, and with another process that is always busy. Takes 90 minutes for RUNS=3 of each.
record-evidence: servers ## record the verdict's input for each situation, RUNS (3) times idle and busy, for the tests of the verdict; needs what verdict needs, and stress-ng
	@$(E2E)/install.sh ip:iproute2 tc:iproute2 unshare:util-linux mkfs.ext4:e2fsprogs mount:mount taskset:util-linux stress-ng:stress-ng
	cargo build --workspace --bin redisbench-loadgen --bin redisbench-clients --bin kubectl-redisbench
	cargo test --workspace --test classifier --no-run
	$(MAKE) record RECORD=idle
	stress-ng --quiet --cpu 1 & busy=$$!; trap 'kill $$busy' EXIT; $(MAKE) record RECORD=busy

record:
	RUNS="$(or $(RUNS),3)" ONLY="$(ONLY)" RECORD=$(RECORD) \
	  cargo test --workspace --test classifier -- --ignored --exact every_situation --nocapture

test-chart: ## test the chart's rendering; needs Helm, kubectl, python3
	@export PATH="$(abspath $(or $(E2E_CACHE),target/e2e-cluster))/bin:$$PATH"; \
	{ command -v helm && command -v kubectl; } >/dev/null || $(E2E)/build.sh; \
	charts/tests/render.py

lint: packages ## check formatting, and compile all programs and tests with clippy, as required for a merge
	cargo fmt --all --check
	cargo build --workspace --no-default-features --features kubectl-redisbench/parquet --bin kubectl-redisbench
	cargo build --workspace --all-targets

fmt: ## format the Rust code
	cargo fmt --all

deny: ## check advisories, licences and bans; needs crates.io, GitHub, and cargo-deny, whose build takes minutes
	command -v cargo-deny >/dev/null || $(PLAIN) install cargo-deny --locked
	cargo deny --workspace check

crds: ## write crds/, the chart's copy, and the generated pages and tables of docs/ from the Rust code
	UPDATE=1 cargo test --workspace --test documents $(UNIT) fresh

# The site keeps the folders of the repository, so links are the same in both. `test-unit` checks them.
docs: ## build the documentation as a site in target/book; needs crates.io
	[ -x $(TOOLS)/bin/mdbook ] || $(PLAIN) install --quiet --locked --root $(TOOLS) --no-default-features --features search mdbook@$(MDBOOK)
	rm -rf $(TARGET)/book
	$(TOOLS)/bin/mdbook build --dest-dir $(abspath $(TARGET)/book/docs)
	cp --parents -r $(LINKED) $(TARGET)/book/
	echo '<meta http-equiv="refresh" content="0; url=docs/index.html">' >$(TARGET)/book/index.html

images: build ## build image archives of the programs, without a registry
	$(E2E)/images.sh project

packages:
	@$(E2E)/install.sh cc:build-essential redis-server:redis-server redis-cli:redis-tools

clean: ## remove everything that was built
	cargo clean
