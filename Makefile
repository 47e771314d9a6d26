# Every target makes what it needs: on a fresh machine `make demo` or `make test` is the first thing to type.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNNING := $(VENV)/.running
STAMP := $(VENV)/.installed

.PHONY: help venv demo up test check format bench simulate mutants lock kubernetes deploy clean

help: ## What can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

# What it takes to run is installed in seconds; what it takes to work on it, in minutes.
$(RUNNING): requirements/run.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Everynode needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "This Python cannot make virtual environments: apt-get install python3-venv (Debian, Ubuntu)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	@echo "$(CURDIR)/src" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/everynode.pth"
	@printf '#!/bin/sh\nexec "%s/$(BIN)/python" -P -m everynode "$$@"\n' "$(CURDIR)" > $(BIN)/everynode && chmod +x $(BIN)/everynode
	@touch $@

$(STAMP): $(RUNNING) requirements/dev.txt pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

venv: $(RUNNING) ## Install what it takes to run, into .venv

demo: $(RUNNING) ## Watch a canary rollout over 20 simulated nodes; ends by itself
	@$(BIN)/everynode demo

up: $(RUNNING) ## Start an embedded cluster of 20 nodes for kubectl; Ctrl-C stops it
	@$(BIN)/everynode up --nodes 20

# ONLY narrows it down: `make test ONLY=kubernetes` is what real Kubernetes judges, `ONLY="not kubernetes"` all the rest.
test: $(STAMP) ## Run the tests; those that real Kubernetes judges too, where `make kubernetes` has been run
	$(BIN)/pytest -q -n auto --dist loadgroup $(if $(ONLY),-m "$(ONLY)")

# As many pods of the large fleet are updated as of the small one: the others cost the same.
bench: $(STAMP) ## Measure beside kube-controller-manager, 1,000 and 5,000 nodes: half an hour on two cores
	@[ -n "$$KUBEBUILDER_ASSETS" ] || hack/kubernetes/build
	$(BIN)/python -m bench.rollout --nodes 1000 --nodes 5000 --updated 1000

simulate: $(STAMP) ## Look for broken promises: 2,000 random worlds, every crash point, lagging watches
	$(BIN)/everynode simulate --seeds 2000
	$(BIN)/everynode simulate --crash-points --stale

mutants: $(STAMP) ## Plant deliberate bugs and see whether the simulator catches every one
	$(BIN)/python -m mutants --write

check: $(STAMP) ## Format, lint, types and import contracts
	$(BIN)/ruff format --check src tests bench mutants
	$(BIN)/ruff check src tests bench mutants
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(STAMP) ## Format the code
	$(BIN)/ruff format src tests bench mutants
	$(BIN)/ruff check --fix src tests bench mutants

kubernetes: ## Build the real Kubernetes binaries once per machine
	hack/kubernetes/build
	hack/kubectl-old/build
	hack/suites/build

deploy: $(STAMP) ## Write deploy/ anew from what `everynode install` applies
	$(BIN)/everynode install --print --image everynode:$$($(BIN)/everynode --version | awk '{print $$NF}') > deploy/everynode.yaml.new
	mv deploy/everynode.yaml.new deploy/everynode.yaml

lock: $(STAMP) ## Write the hashed requirements files anew
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --group dev pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate pyproject.toml -o requirements/run.txt

clean: ## Remove what was made here
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
