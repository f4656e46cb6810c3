# Included by the Makefile of the repository.
E2E := e2e/cluster

# The most telling faults for their time; the others take too long for every change.
TELLING := \
  operator_killed::after_the_first_start_call \
  operator_killed::while_collecting \
  benchmark_deleted::created_again_while_the_old_one_runs \
  control_plane::api_server_restarted

.PHONY: bench-scale test-scale

# Its last line is one JSON object. SCALE has faults: --kill-operator running|collecting, --unreachable N, --slow-api MS,
# --abort, --delete background|foreground|orphan; and checks: --exact of the counts, --check also of the targets of
# docs/evidence/scale.md, on an otherwise idle machine. SCALE_PAGE=docs/evidence/scale.md replaces the row of this size or
# fault, and draws the plot.
bench-scale: ## measure the operator with SHARDS (200) computed shards in each of BENCHMARKS (1) for DURATION (20) seconds; needs root, Go, nftables, some GB of memory
	@$(E2E)/install.sh ip:iproute2 nft:nftables unshare:util-linux openssl:openssl redis-server:redis-server
	@for step in build kwok; do $(E2E)/$$step.sh; done
	$(PLAIN) build --release $(RELEASE) --bin redisbench-operator --bin redisbench-scale
	@$(E2E)/scale.sh $(abspath $(TARGET))/release/redisbench-scale --operator $(abspath $(TARGET))/release/redisbench-operator \
	  --shards $(or $(SHARDS),200) --benchmarks $(or $(BENCHMARKS),1) --duration $(or $(DURATION),20) $(addprefix --write ,$(abspath $(SCALE_PAGE))) $(SCALE)

# Asserts nothing about time.
test-scale: ## check that the result of 200 computed shards is exact; needs root, Go, nftables
	@$(MAKE) bench-scale SCALE=--exact

# Programs that are built from source only for these.
.PHONY: test-integrations test-monitoring
test-integrations: test-monitoring ## run the tests that need other projects' programs, such as Prometheus, built from source; needs what test-e2e needs, npm, chromium

test-monitoring: CACHED := $(abspath $(or $(E2E_CACHE),target/e2e-cluster))
test-monitoring: PROMTOOL = $(CACHED)/bin/promtool
test-monitoring: build ## check rules and dashboards, scrape the operator on a temporary cluster with a real Prometheus, and draw the dashboards
	@$(E2E)/install.sh chromium:chromium npm:npm
	$(E2E)/prometheus.sh
	$(PROMTOOL) check rules charts/redisbench-operator/rules.yaml
	$(PROMTOOL) test rules charts/tests/rules.test.yaml
	e2e/grafana/check.sh
	$(E2E)/with-cluster.sh cargo test --workspace --test prometheus
	e2e/grafana/draw.sh $(CACHED)/prometheus/answers

.PHONY: test-e2e e2e-steps test-faults faults-steps test-beyond-one-host cluster-up cluster-down cluster-reload

test-e2e: build ## run the tests on a temporary Kubernetes cluster of three nodes; needs root, Go, Debian, 4 GB of memory, 6 GB of disk
	$(E2E)/with-cluster.sh $(MAKE) e2e-steps

e2e-steps:
	cargo test --workspace --test kubernetes -- --test-threads=3
	@if [ -z "$${E2E_KUBECONFIG:-}" ]; then \
	  cargo test --workspace --test faults -- --test-threads=2 --exact $(TELLING); \
	else echo "fault tests skipped: they need the cluster that make starts, so unset E2E_KUBECONFIG"; fi

test-faults: build ## run all faults of docs/reliability.md on such a cluster, and a search for a known capacity; writes target/e2e-cluster/faults.md; needs what test-e2e needs
	rm -f $(or $(E2E_CACHE),target/e2e-cluster)/faults.md
	$(E2E)/with-cluster.sh $(MAKE) faults-steps

faults-steps:
	cargo test --workspace --test faults -- --test-threads=2
	$(E2E)/pods-first.sh
	cargo test --workspace --test kubernetes -- --ignored --test-threads=1

test-beyond-one-host: build ## run 1 to 16 pods of 20 Mbit/s each against one server; writes target/e2e-cluster/beyond-one-host.md; needs what test-e2e needs, tcpdump, tbf
	@$(E2E)/install.sh tc:iproute2 tcpdump:tcpdump
	$(E2E)/with-cluster.sh cargo test --workspace --test beyond_one_host -- --test-threads=1 --nocapture

cluster-up: ## start a Kubernetes cluster for development
	$(PLAIN) build --release $(RELEASE) --bin redisbench-operator --bin redisbench-loadgen --bin redisbench-clients
	for step in preflight install build images up; do $(E2E)/$$step.sh || exit 1; done

cluster-reload: ## load rebuilt programs into it
	$(PLAIN) build --release $(RELEASE) --bin redisbench-operator --bin redisbench-loadgen --bin redisbench-clients
	$(E2E)/images.sh project
	$(E2E)/load.sh

cluster-down: ## remove it
	$(E2E)/down.sh
