# `make demo` and `make test` set everything up by themselves; they need Python 3.11 or newer and a network.

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3 || echo python3)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.made
SERVERS := .servers
IMAGE ?= edgeway:dev
JOBS ?= 2
QUICK := "(not slow and not integration and not containers and not faults)"
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

# Two calls: the quick tests share the cores; what starts brokers and kills processes has the machine to itself.
# Both run whatever comes of the other. pytest ends with 5 where it finds no test, which ARGS may mean.
test: lint servers ## everything but the long fault tests; containers where Docker answers
	@quick=0; rest=0; \
	$(BIN)/python -m pytest -m $(QUICK) -n $(JOBS) $(ARGS) || quick=$$?; \
	$(BIN)/python -m pytest -m "not slow and not "$(QUICK) $(ARGS) || rest=$$?; \
	test "$$quick" = 0 -o "$$quick" = 5 && test "$$rest" = 0 -o "$$rest" = 5

unit: setup ## the quick tests alone: no broker, no containers
	$(BIN)/python -m pytest -m $(QUICK) -n $(JOBS) $(ARGS)

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
