# make demo   both gates for real, with a scripted model and the embedded store; needs Python 3.11+ alone
# make test   every test (needs node 20+, npm and jq besides; on Linux, bubblewrap for the sandbox tests)
# make lint   ruff and mypy

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
WORKERS ?= 2

.PHONY: demo test lint format npm env clean

demo: $(VENV)/.run
	$(BIN)/twogate demo

test: $(VENV)/.dev npm
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

npm: tests/real/npm/node_modules/.package-lock.json

env: $(VENV)/.dev

tests/real/npm/node_modules/.package-lock.json: tests/real/npm/package-lock.json
	cd tests/real/npm && npm ci --no-audit --no-fund --loglevel=error
	touch $@

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Twogate needs Python 3.11 or newer: make PYTHON=python3.11"'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@ $(VENV)/.run

clean:
	rm -rf $(VENV) tests/real/npm/node_modules .mypy_cache .ruff_cache .pytest_cache
