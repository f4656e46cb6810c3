# Included by the Makefile of the repository.
E2E := e2e/cluster

.PHONY: test-e2e cluster-up cluster-down cluster-reload

# Every end-to-end test, on a cluster that lives as long as they do.
test-e2e:
	cargo build --release -p redisbench-operator -p redisbench-loadgen
	$(E2E)/with-cluster.sh cargo test -p redisbench-e2e -- --test-threads=2

# For a developer: a cluster that stays, and fresh binaries into it.
cluster-up:
	cargo build --release -p redisbench-operator -p redisbench-loadgen
	for step in preflight install build images up; do $(E2E)/$$step.sh || exit 1; done

cluster-reload:
	cargo build --release -p redisbench-operator -p redisbench-loadgen
	$(E2E)/images.sh project
	$(E2E)/load.sh

cluster-down:
	$(E2E)/down.sh
