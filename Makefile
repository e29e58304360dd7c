# Two commands do everything on a fresh machine: `make demo` and `make test`.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# One thread per library: the platform's own workers are what runs in parallel.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
# Anonymous usage reports of libraries stay off.
export DO_NOT_TRACK ?= 1
# Lets the installer see wheels that this machine already holds, as pip does.
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)

.PHONY: help setup data demo test test-all bench bench-peers lint types docs lock proto clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: $(STAMP)  ## create the environment from the lock

$(STAMP): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet 'uv>=0.9'
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

data:  ## install the larger picture set with written and spoken captions (Debian, needs root)
	@if [ -d /usr/share/tuxpaint/stamps ]; then echo "picture set: installed"; \
	else apt-get update -qq && apt-get install -y -qq --no-install-recommends tuxpaint-stamps-default; fi

demo: setup  ## release the reference service, ask it things, show the table (KEEP=1 leaves it running)
	$(BIN)/modalgate demo $(if $(KEEP),--keep)

test: setup  ## the tests that every change must pass
	$(BIN)/python -m pytest -m "not heavy and not gpu" --cov --cov-report= $(ARGS)
	@echo "coverage: $$($(BIN)/coverage report --format=total) %"

test-all: setup  ## everything, the long ones too
	$(BIN)/python -m pytest $(ARGS)

bench: setup  ## every benchmark, against its baseline in the same run
	$(BIN)/python -m tests.benchmarks all

bench-peers: setup  ## environments of the peers that benchmarks compare with
	$(BIN)/python -m tests.benchmarks peers

lint: setup  ## style and the arrows between packages
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: setup  ## strict typing
	$(BIN)/mypy

docs: setup  ## check that the docs say what the code does
	$(BIN)/python -m pytest -q tests/docs

lock: setup  ## resolve pyproject.toml into requirements.lock again
	UV=$(BIN)/uv .ci/lock --upgrade

proto: setup  ## generate the gRPC code from the .proto files
	$(BIN)/python -m services.gateway.grpc.generate

clean:  ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
