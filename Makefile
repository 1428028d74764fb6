# `make demo` and `make test` set everything up by themselves; they need Python 3.11 or newer and a network.

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3 || echo python3)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.made
SERVERS := .servers
IMAGE ?= edgeway:dev
export ORT_DISABLE_TELEMETRY = 1

.PHONY: help setup servers lint format test unit demo bench faults image constraints clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## the virtual environment, every package checked against its hash

$(STAMP): pyproject.toml constraints.txt deploy/venv.sh
	sh deploy/venv.sh "$(PYTHON)" "$(VENV)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

servers: $(SERVERS)/.made ## the real servers that tests talk to, in an environment of their own

$(SERVERS)/.made: tests/servers/constraints.txt tests/servers/tiny_gguf.py deploy/servers.sh deploy/venv.sh
	sh deploy/servers.sh "$(PYTHON)" "$(SERVERS)"

lint: setup ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict

format: setup ## rewrite the sources as ruff has them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint servers ## everything but the long fault tests; containers where Docker answers
	$(BIN)/python -m pytest -m "not slow" $(ARGS)

unit: setup ## the quick tests alone: no broker, no containers
	$(BIN)/python -m pytest -m "not slow and not integration and not containers and not faults" $(ARGS)

demo: setup ## 500 requests through an embedded Kafka and all roles, then a table
	$(BIN)/edgeway demo $(ARGS)

bench: setup ## throughput and latency beside three bare loops
	$(BIN)/python benchmarks/pipeline.py $(ARGS)

faults: setup servers ## the long fault tests: kills, pauses, lost brokers (about an hour)
	$(BIN)/python -m pytest -m slow $(ARGS)

image: ## the image of all roles
	docker build -t $(IMAGE) -f deploy/docker/Dockerfile .

# uv is asked only here, to look versions and hashes up; nothing else needs it.
constraints: setup ## look up versions and hashes anew, after a change to pyproject.toml
	$(BIN)/python -m venv $(VENV)/uv
	$(VENV)/uv/bin/python -m pip install --quiet uv
	sh deploy/constraints.sh $(VENV)/uv/bin/uv $(ARGS)

clean: ## remove what make has made
	rm -rf $(VENV) $(SERVERS) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
