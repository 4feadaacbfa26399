# Everything runs in .venv, which is built on first use and refreshed when the pinned requirements change.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo docs engines env test fuzz test-lowest perf format clean

demo: $(VENV)/.demo  ## fill a real table and draw pictures into demo-output/
	$(BIN)/python examples/demo.py

docs: $(VENV)/.docs  ## the guide, the gallery and the API as pages: docs/_build/html/index.html
	$(BIN)/sphinx-build -W --keep-going --quiet -d docs/_build/doctrees docs docs/_build/html

env: $(VENV)/.env  ## .venv with all extras and the developers' tools

test: $(VENV)/.env  ## lint, types, layers, tests, doctests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2 -m "not slow"

engines: $(VENV)/.engines  ## the tests on a local Ray, Spark and Dask; Spark needs a Java runtime (17 or later)
	$(BIN)/python -m pytest -m "engines and not slow" tests

fuzz: $(VENV)/.env  ## the property tests on examples never tried before
	$(BIN)/python -m pytest -n 2 -m "not slow" tests --hypothesis-profile=fuzz

test-lowest: .venv-lowest/.env  ## the same tests on the oldest supported versions
	.venv-lowest/bin/python -m pytest -n 2 -m "not slow" tests

perf: $(VENV)/.env  ## speed and quality, side by side with the peers
	$(BIN)/python perf/run.py

format: $(VENV)/.env
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .venv-lowest .cache demo-output docs/_build docs/_api docs/auto_examples

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e '.[cli,bench]'
	touch $@

$(VENV)/.docs: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e '.[docs]'
	touch $@ $(VENV)/.demo

$(VENV)/.env: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e '.[all,dev,peers]'
	touch $@ $(VENV)/.demo

$(VENV)/.engines: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e '.[all,dev,peers,ray,spark,dask]'
	touch $@ $(VENV)/.env $(VENV)/.demo

.venv-lowest/.env: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip --disable-pip-version-check --quiet install -c constraints-lowest.txt -e '.[dev]'
	touch $@
