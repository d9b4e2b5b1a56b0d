# Two commands matter: `make demo` shows what holdfast does, `make test` checks that it does it.

SHELL  := /bin/bash
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
ONLY   ?=
# A third of the time the tests wait, for processes and disks: one more than there are cores.
WORKERS ?= 3

# Tests start a hundred processes: each would compile all of the code for itself.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo cluster-demo test check unit soak bench docs clean

help: ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

# A stamp says what is installed; it is older than pyproject.toml when something has to be installed again.
$(VENV)/made:
	@echo "· creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/runtime: $(VENV)/made pyproject.toml constraints.txt
	@echo "· installing holdfast and what it needs (once; about half a minute)"
	@$(PIP) install --quiet --quiet --constraint constraints.txt --editable '.[uvloop]'
	@touch $@

$(VENV)/pipeline: $(VENV)/runtime
	@echo "· installing Spark, for the tables and reports (once; about a minute)"
	@$(PIP) install --quiet --quiet --constraint constraints.txt --editable '.[pipeline,uvloop]'
	@touch $@

$(VENV)/development: $(VENV)/runtime
	@echo "· installing the checks, the test runner and the benchmarks' tools (once; about a minute)"
	@$(PIP) install --quiet --quiet --constraint constraints.txt --editable '.[dev,bench,cluster,kafka,otel,pipeline,postgres,uvloop]'
	@touch $@

# An environment of its own: botocore wants an older python-dateutil than everything else here.
$(VENV)/moto/made: $(VENV)/made tests/contract/moto.txt
	@echo "· installing an S3 server for the tests (once)"
	@$(PYTHON) -m venv $(VENV)/moto
	@$(VENV)/moto/bin/python -m pip --disable-pip-version-check install --quiet --quiet --requirement tests/contract/moto.txt
	@touch $@

# pytest compiles tests with their assertions rewritten: each of its workers would do all of it.
$(VENV)/compiled: $(VENV)/development
	@echo "· compiling the tests (once; about half a minute)"
	@mkdir -p build && $(BIN)/python -m pytest --collect-only --quiet > build/compiled.log || (tail -n 40 build/compiled.log; exit 1)
	@touch $@

demo: $(VENV)/pipeline ## the main job on a fresh folder: work, a killed worker, nothing lost, nothing doubled, tables of it
	@$(BIN)/holdfast demo

cluster-demo: $(VENV)/development ## a cluster of three on this machine: load, killed members, nothing lost, a picture of the gaps
	@mkdir -p build && $(BIN)/holdfast cluster demo --picture build/cluster-demo.png

# The checks take one core, and not for long: they run beside the tests.
test: $(VENV)/development ## all checks and tests
	@$(MAKE) --no-print-directory --jobs=2 check unit

check: $(VENV)/development
	@echo "· style (ruff)"
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	@echo "· the order of the packages (import-linter)"
	@mkdir -p build && $(BIN)/lint-imports --no-cache > build/imports.log 2>&1 || (cat build/imports.log; exit 1)
	@echo "· types (basedpyright)"
	@$(BIN)/basedpyright --level error | tail -n 20; exit $${PIPESTATUS[0]}

unit: $(VENV)/development $(VENV)/moto/made $(VENV)/compiled
	@echo "· tests (pytest, $(WORKERS) at a time)"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not soak" --durations=30

soak: $(VENV)/development $(VENV)/moto/made ## the tests that take minutes
	@$(BIN)/python -m pytest -m soak -s

bench: $(VENV)/development ## measure against limits and peers; ONLY=name for one, STRICT=1 fails
	@$(BIN)/python -m bench $(if $(ONLY),--only $(ONLY)) $(if $(STRICT),--strict)

docs: $(VENV)/development ## writes docs/reference anew
	@$(BIN)/python docs/generate.py

clean: ## remove everything that was made
	rm -rf $(VENV) build dist src/*.egg-info .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
