# Every target makes what it needs: on a fresh machine `make demo` or `make test` is the first thing to type.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNNING := $(VENV)/.running
STAMP := $(VENV)/.installed

.PHONY: help venv demo up test coverage check format bench simulate fuzz mutants lock kubernetes kubernetes-1.36 image wheels krew sbom deploy pictures clean

help: ## List the targets
	@grep -hE '^[a-z0-9.-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

# The dependencies to run are installed in seconds; those to develop in minutes.
$(RUNNING): requirements/run.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "Everynode needs Python 3.11 or newer, and $(PYTHON) is missing or older: make venv PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "This Python cannot make virtual environments: apt-get install python3-venv (Debian, Ubuntu)"; exit 1; }
	@[ -w . ] || { echo "This folder cannot be written to, and $(VENV) belongs into it: clone the repository where you may write"; exit 1; }
	@echo "Installing what Everynode needs into $(VENV): once, about half a minute"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt || { echo "pip cannot install; its reason is above. Behind a proxy set HTTPS_PROXY, with a mirror of PyPI set PIP_INDEX_URL, and try again"; exit 1; }
	@echo "../../../../src" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/everynode.pth"
	@printf '%s\n' '#!/bin/sh' 'here=$$(dirname "$$(readlink -f "$$0")")' \
		'[ -x "$$here/python" ] || { echo "everynode: the Python of $$here is gone: make clean, then make venv" >&2; exit 1; }' \
		'exec "$$here/python" -P -m everynode "$$@"' > $(BIN)/everynode && chmod +x $(BIN)/everynode
	@touch $@

$(STAMP): $(RUNNING) requirements/dev.txt pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

venv: $(RUNNING) ## Install the dependencies to run into .venv

demo: $(RUNNING) ## Watch a canary, a silent node, a bad version and the way back; ends by itself
	@$(BIN)/everynode demo

up: $(RUNNING) ## Start an embedded cluster of 6 nodes for kubectl; Ctrl-C stops it
	@$(BIN)/everynode up --nodes 6 --speed 20

# ONLY narrows it down: `make test ONLY=kubernetes` runs the tests that compare with real Kubernetes, `ONLY="not kubernetes"` all the rest.
# Tests wait for clusters far more than they compute, so that there are two processes for each core.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(2 * os.cpu_count())')
test: $(STAMP) ## Run the tests; those that compare with real Kubernetes too, where `make kubernetes` has been run
	$(BIN)/pytest -q -n $(WORKERS) --dist loadgroup $(if $(ONLY),-m "$(ONLY)")

# Branch coverage of src, also by the programs that tests start. COVERED_TESTS narrows it down: `make coverage COVERED_TESTS=tests/api`.
# Fuzzing is left out: it takes long and covers what other tests cover. After COVERAGE_SECONDS it ends, and the figures are of the tests
# that have run by then.
COVERED_TESTS ?= tests
COVERAGE_SECONDS ?= 2700
coverage: $(STAMP) ## Print the branch coverage of the tests that need no Kubernetes
	rm -f .coverage .coverage.*
	@timeout --signal=INT --kill-after=60 $(COVERAGE_SECONDS) $(BIN)/coverage run -m pytest -q -n $(WORKERS) --dist loadgroup \
		-m "not kubernetes and not node" --ignore tests/fuzz --timeout 300 $(COVERED_TESTS); ended=$$?; \
	$(BIN)/coverage combine -q && $(BIN)/coverage report --skip-covered --sort cover; \
	[ $$ended != 124 ] || echo "It was ended after $(COVERAGE_SECONDS) seconds: the figures are of the tests that have run." >&2; exit $$ended

# As many pods of the large fleet are updated as of the small one: the others cost the same.
bench: $(STAMP) ## Measure beside kube-controller-manager 1.37 and 1.36, 1,000 and 5,000 nodes: 25 minutes on two cores
	@[ -n "$$KUBEBUILDER_ASSETS" ] || hack/kubernetes/build
	@hack/kubernetes-1.36/build kube-controller-manager
	$(BIN)/python -m bench.rollout --nodes 1000 --nodes 5000 --updated 1000

simulate: $(STAMP) ## Search for broken promises: 2,000 random worlds, every crash point, lagging watches
	$(BIN)/everynode simulate --seeds 2000
	$(BIN)/everynode simulate --crash-points --stale

# RUNS is how many seeds each test tries, SEED the first of them: `make fuzz RUNS=1 SEED=4711` plays one again.
fuzz: $(STAMP) ## Send odd requests and objects to the API server and the controller: a few minutes
	EVERYNODE_FUZZ_RUNS=$(or $(RUNS),150) EVERYNODE_FUZZ_SEED=$(or $(SEED),1) $(BIN)/pytest -q tests/fuzz

mutants: $(STAMP) ## Plant deliberate bugs and see whether the simulator catches every one
	$(BIN)/python -m mutants --write

PYTHON_FILES := src tests bench mutants hack/pictures
check: $(STAMP) ## Format, lint, types and import contracts
	$(BIN)/ruff format --check $(PYTHON_FILES)
	$(BIN)/ruff check $(PYTHON_FILES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(STAMP) ## Format the code
	$(BIN)/ruff format $(PYTHON_FILES)
	$(BIN)/ruff check --fix $(PYTHON_FILES)

kubernetes: ## Build the real Kubernetes binaries once per machine
	hack/kubernetes/build
	hack/kubectl-old/build
	hack/suites/build
	hack/gitops/build

kubernetes-1.36: ## Build the API server of the release before, which tests/agreement asks as well
	hack/kubernetes-1.36/build kube-apiserver

# Fails if a dependency has no wheel for a platform, or one whose hash is not in the lock file.
wheels: $(RUNNING) ## Download the locked dependencies as wheels for Linux on amd64 and arm64
	@$(BIN)/python hack/wheels linux/amd64 linux/arm64

sbom: $(STAMP) ## Generate deploy/sbom.cdx.json, the bill of materials of the image
	$(BIN)/python hack/sbom

krew: $(STAMP) ## Write the archives and the manifest for krew into dist/krew; URL is where they will be published
	$(BIN)/python hack/krew/build --url "$(URL)" dist/krew

image: $(RUNNING) ## Build the Containerfile without a registry, as root on Debian; prints the archive
	@PYTHON=$(BIN)/python hack/image/build

deploy: $(STAMP) ## Generate deploy/ from what `everynode install` applies
	$(BIN)/everynode install --print --image everynode:$$($(BIN)/everynode --version | awk '{print $$NF}') > deploy/everynode.yaml.new
	mv deploy/everynode.yaml.new deploy/everynode.yaml
	$(BIN)/python hack/chart

pictures: $(STAMP) ## Draw the pictures of the documentation, from runs of the program and from bench/results
	$(BIN)/python -m hack.pictures

lock: $(STAMP) ## Generate the hashed requirements files
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --group dev pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate pyproject.toml -o requirements/run.txt

clean: ## Remove what was made here
	rm -rf $(VENV) .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
