# Every target makes what it needs: on a fresh machine `make demo` or `make test` is the first thing to type.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo up test judge check format bench mutants lock kubernetes deploy clean

help: ## What can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Everynode needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "This Python cannot make virtual environments: apt-get install python3-venv (Debian, Ubuntu)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

demo: $(STAMP) ## Watch a canary rollout over 20 simulated nodes; ends by itself
	@$(BIN)/everynode demo

up: $(STAMP) ## Start an embedded cluster of 20 nodes for kubectl; Ctrl-C stops it
	@$(BIN)/everynode up --nodes 20

test: $(STAMP) ## Run the tests
	$(BIN)/pytest -q -n auto --dist loadgroup -m "not judge"

judge: $(STAMP) ## Play every scenario and type every kubectl command on real Kubernetes too, and compare
	EVERYNODE_REQUIRE_KUBERNETES=1 $(BIN)/pytest -q -n auto --dist loadgroup -m judge

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

deploy: $(STAMP) ## Write deploy/ anew from what `everynode install` applies
	$(BIN)/everynode install --print --image everynode:$$($(BIN)/everynode --version | awk '{print $$NF}') > deploy/everynode.yaml.new
	mv deploy/everynode.yaml.new deploy/everynode.yaml

lock: $(STAMP) ## Write the hashed requirements files anew
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --group dev pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate pyproject.toml -o requirements/run.txt

clean: ## Remove what was made here
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
