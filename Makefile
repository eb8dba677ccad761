# Every target sets up what it needs in .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Solvers are single-threaded by design; tests run one process per core instead.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-browser lint docs bench reproduce clean

$(VENV)/.base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -e ".[cli,plots]"
	touch $@

$(VENV)/.test: $(VENV)/.base
	$(BIN)/pip install -q -e ".[test]"
	touch $@

$(VENV)/.docs: $(VENV)/.base
	$(BIN)/pip install -q -e ".[docs]"
	touch $@

demo: $(VENV)/.base  ## compare the methods on breast cancer data with 10% of the training labels flipped
	$(BIN)/psilearn compare

test: $(VENV)/.test  ## run all tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

# The pages are tested in Debian's Chromium; PSILEARN_CHROMIUM names another one.
$(VENV)/.browser: $(VENV)/.test
	$(BIN)/pip install -q -e ".[browser]"
	test -x "$${PSILEARN_CHROMIUM:-/usr/bin/chromium}" || { apt-get update -q && apt-get install -y -q chromium; }
	touch $@

test-browser: $(VENV)/.browser  ## test the report and the explorer in a headless browser
	$(BIN)/python -m pytest tests_browser

lint: $(VENV)/.test  ## ruff, mypy and vulture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/vulture

docs: $(VENV)/.docs  ## build the documentation into docs/_build
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build

$(VENV)/.bench: $(VENV)/.test
	$(BIN)/pip install -q -e ".[audit,bench]"
	touch $@

bench: $(VENV)/.bench  ## every benchmark in its short form, under 20 minutes; all options: python -m benchmarks --help
	$(BIN)/python -m benchmarks --quick --json benchmarks.json

reproduce: $(VENV)/.base  ## regenerate the papers' tables and figures in a small, honest version
	$(BIN)/psilearn reproduce --all --small

clean:
	find psilearn -name '*.nb[ic]' -delete
	rm -rf $(VENV) build docs/_build
