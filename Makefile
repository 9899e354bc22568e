# Dovetail. `make run` and `make test` are all a newcomer needs; both set everything up first.
PYTHON ?= python3
BIN := .venv/bin
REFERENCE := .venv-reference/bin
HOST ?= 127.0.0.1
PORT ?= 8778
DEMO_DATABASE ?= sqlite:///var/demo.db
KUBE_TESTS := tests/kube
MACHINE_TESTS := tests/kube/machines tests/kube/manifests/machines
INTENT_TESTS := tests/intents tests/cli/intents tests/ledger/intents tests/rest/intents tests/service/intents tests/kube/deploy tests/kube/mirror
NODE_TESTS := tests/node
KUBELET_TESTS := tests/node/kubelet
DIST_TESTS := tests/dist
CONSOLE_TESTS := tests/console
QUALITY_TESTS := tests/simulate/test_quality.py
# Every view opened, and a newcomer's first minutes: in `make test`, too.
FIRST_CONSOLE_TESTS := $(CONSOLE_TESTS)/test_newcomer.py $(CONSOLE_TESTS)/test_views.py
LATER_CONSOLE_TESTS := $(filter-out $(FIRST_CONSOLE_TESTS),$(wildcard $(CONSOLE_TESTS)/test_*.py))
export UV_PYTHON_DOWNLOADS = never
# Tests start hundreds of servers: compiling their modules anew each time would take minutes.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help setup reference console run run-agent test test-kube test-machines test-intents test-node test-kubelet test-console test-quality test-dist dist check format conformance client differential stress bench bench-ranking bench-agent bench-classes bench-machines bench-intents bench-console soak-kube kube kube-demo machines-demo test-numa man lock clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/' | expand -t 22

setup: .venv/.ready ## Prepare .venv with Dovetail and its development tools

.venv/.ready: pyproject.toml requirements/dev.txt requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Dovetail needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/uv.txt
	$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements/dev.txt
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

reference: .venv-reference/.ready ## Prepare .venv-reference with the real OpenStack Placement, to compare with

.venv-reference/.ready: requirements/reference.txt .venv/.ready
	$(PYTHON) -m venv --without-pip .venv-reference
	$(BIN)/uv pip install -q --python $(REFERENCE)/python --require-hashes -r requirements/reference.txt
	@touch $@

console: setup ## Build the console's bundle, if its sources changed (Node of this machine, or of a wheel in .venv)
	@$(BIN)/python packaging/build_console.py

# The server starts at once, with plain pages; the console is in them when it is built (var/console-build.log).
run: setup ## Serve a demo fleet on loopback and print the console's address and commands to try
	@$(BIN)/python packaging/build_console.py --background
	@$(BIN)/dovetail serve --demo --auth noauth2 --policy open --database $(DEMO_DATABASE) --host $(HOST) --port $(PORT)

run-agent: setup ## Start a demo node to try the node agent on, without root
	@$(BIN)/python -m tests.node.demo

kube: setup ## Build Kubernetes with its kubelet, etcd, kwok and Helm for the tests, once, into a cache outside the tree
	@$(BIN)/python -m tests.support.kube.assets

kube-demo: setup kube ## Start a cluster to try resource classes on
	@$(BIN)/python -m tests.kube.demo

machines-demo: setup kube ## Start a cluster to try machines on
	@$(BIN)/python -m tests.kube.machines.demo

# Coverage is of what runs in the tests' own processes: servers and daemons they start are not traced.
# It makes the suite about a seventh slower; tests/conftest.py keeps it at that.
test: setup reference console ## Run all tests but those of the other targets named test-, PostgreSQL and the conformance suites included; then the coverage
	$(BIN)/pytest -n 2 --dist loadfile --cov --cov-report= $(KUBE_TESTS:%=--ignore=%) $(INTENT_TESTS:%=--ignore=%) $(NODE_TESTS:%=--ignore=%) $(DIST_TESTS:%=--ignore=%) $(QUALITY_TESTS:%=--ignore=%) $(LATER_CONSOLE_TESTS:%=--ignore=%)
	@echo "Coverage: the modules with the least, and all of them"
	@$(BIN)/coverage report --sort=-cover | tail -n 23

test-kube: setup kube ## Run the tests of resource classes and schedulers on real control planes
	$(BIN)/pytest -n 2 --dist loadfile $(KUBE_TESTS) $(MACHINE_TESTS:%=--ignore=%) $(INTENT_TESTS:%=--ignore=%)

test-machines: setup kube ## Run the tests of machines on real clusters, with their operators, policies and webhooks
	$(BIN)/pytest -n 2 --dist loadfile $(MACHINE_TESTS)

test-intents: setup kube ## Run the tests of hardware intents, on two real clusters among others
	$(BIN)/pytest -n 2 --dist loadfile $(INTENT_TESTS)

test-node: setup ## Run the tests of the node agent, on a real containerd among others
	$(BIN)/pytest -n 2 --dist loadfile $(NODE_TESTS) $(KUBELET_TESTS:%=--ignore=%)

test-kubelet: setup kube ## Run the tests on real nodes: an unmodified kubelet, containerd and the agent, joined to a cluster
	$(BIN)/pytest -n 2 --dist loadfile $(KUBELET_TESTS)

test-console: setup console ## Run the tests of the console, in Debian's Chromium and a text browser
	@$(BIN)/python packaging/build_console.py --test
	$(BIN)/pytest -n 2 --dist loadfile $(CONSOLE_TESTS)

test-quality: setup ## Replay openb with every policy: where each of them loses, and that scarcity is nowhere below the others
	$(BIN)/pytest $(QUALITY_TESTS) || [ $$? -eq 5 ]  # 5: the data are not there, as the head of the report says

dist: setup console ## Build the wheel and the source archive, in dist/
	rm -f dist/dovetail-*.whl dist/dovetail-*.tar.gz
	$(BIN)/python -m hatchling build -d dist

test-dist: setup kube ## Install the wheel in an empty environment and start every daemon from it; build the container and run it
	$(BIN)/pytest $(DIST_TESTS)

check: setup ## Formatting, lint, types (TypeScript's too), layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(BIN)/python packaging/build_console.py --check

format: setup ## Format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

conformance: setup reference ## OpenStack Placement's own 1,316 API tests, on SQLite and on PostgreSQL
	$(BIN)/pytest tests/conformance

client: setup reference ## All 160 functional tests of osc-placement, the real `openstack` command
	$(REFERENCE)/python -m tests.conformance.client --all --jobs 2

differential: setup reference ## Random forests and queries, answers compared with the real Placement's (CASES=5000)
	$(BIN)/python -m tests.differential.run --cases $(or $(CASES),5000)

stress: setup ## A minute of claims on each database while servers are killed
	DOVETAIL_STRESS_SECONDS=60 $(BIN)/pytest -s tests/stress

bench: setup reference ## Time Dovetail and the real Placement side by side (PARTS=growth, FULL=1 for 100,000 hosts)
	$(BIN)/python -m bench $(if $(PARTS),--part $(PARTS)) $(if $(FULL),--scale-full)

bench-ranking: setup ## How well policies place openb, over the whole curve, for each trace and mix (SEEDS=42-51, ONLY="default cpu250")
	$(BIN)/python -m bench.curves --seeds $(or $(SEEDS),42-51) $(if $(ONLY),--only $(ONLY))

bench-agent: setup ## Time the node agent: pods let in, hints merged, calls passed on to a private containerd
	$(BIN)/python -m bench.agent

bench-classes: setup kube ## Time resource classes: accounting, and pods bound per second beside kube-scheduler
	$(BIN)/python -m bench.classes

bench-machines: setup kube ## Time machines: plans, units sold, and hand-over beside the reactive scheme (PARTS=planning,ledger,...)
	$(BIN)/python -m bench.machines $(if $(PARTS),--parts $(PARTS))

bench-intents: setup kube ## Time hardware intents: candidates combined and picked, packing, the mirror (PARTS=pick,packing,mirror)
	$(BIN)/python -m bench.intents $(if $(PARTS),--parts $(PARTS))

bench-console: setup console ## Time the console in Chromium: bytes, first paint, updates; what a hundred open ones cost the server (HOSTS=10000)
	@$(BIN)/python packaging/build_console.py --sizes
	$(BIN)/python -m bench.console $(if $(PARTS),--parts $(PARTS)) $(if $(HOSTS),--hosts $(HOSTS))

soak-kube: setup kube ## 1,000 nodes and 20,000 pods while watches, servers and leaders are cut off; then schedulers killed mid-claim (MINUTES=3)
	$(BIN)/python -m tests.kube.soak --nodes 1000 --pods 20000 --minutes $(or $(MINUTES),3)
	$(BIN)/python -m tests.kube.scheduler.chaos
	$(BIN)/python -m tests.kube.scheduler.chaos --racing

test-numa: setup ## Pin a container in a QEMU guest with two NUMA nodes, and look where its pages are
	$(BIN)/python -m tests.node.numa_guest

man: setup ## Manual pages of every command, in dist/man
	@$(BIN)/python -m dovetail.cli.manual dist/man

lock: setup ## Refresh the hashed requirements
	for name in uv reference node; do \
	  $(BIN)/uv pip compile -q --upgrade --generate-hashes --no-header --no-emit-index-url --python-version 3.11 \
	    requirements/$$name.in -o requirements/$$name.txt; done
	$(BIN)/uv pip compile -q --upgrade --generate-hashes --no-header --no-emit-index-url --python-version 3.11 \
	  pyproject.toml -o requirements/runtime.txt
	$(BIN)/uv pip compile -q --upgrade --generate-hashes --no-header --no-emit-index-url --python-version 3.11 \
	  --group dev pyproject.toml -o requirements/dev.txt

clean: ## Remove everything that was made here
	rm -rf .venv .venv-reference .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache var dist console/node_modules src/dovetail/rest/console/static
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
