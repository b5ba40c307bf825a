# Everything runs in .venv, made from nothing but python3 and the pinned versions of requirements.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check bench results soak clean

demo: $(VENV)/.installed  ## train four learners on ten tasks of rotated digits; table and report.html
	$(BIN)/lamaml demo --report report.html

test: check  ## every check and test
	$(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder

check: $(VENV)/.installed-dev  ## formatting, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed  ## ms per update, as a share of the machine's matrix-product rate
	$(BIN)/lamaml bench

results: $(VENV)/.installed  ## rewrite docs/results.md and README's tables from docs/results/*.json
	$(BIN)/python tools/results_documents.py

soak: $(VENV)/.installed-dev  ## kill runs 300 times, and compare their bits with those of uninterrupted runs
	LAMAML_SOAK_KILLS=300 $(BIN)/python -m pytest tests/test_survival.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Only what is imported is compiled, when it is: --no-compile.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c requirements.txt

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml requirements.txt
	$(PIP) -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml requirements.txt
	$(PIP) -e ".[dev]"
	touch $(VENV)/.installed $@

clean:  ## remove the environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
