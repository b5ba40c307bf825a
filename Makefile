# Everything runs in .venv, made from nothing but python3 and the pinned versions of requirements.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check bench panel results docs soak clean

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

panel: $(VENV)/.installed-dev  ## our estimators beside their rivals on streams of many kinds; panel/panel.html
	$(BIN)/lamaml panel

results: $(VENV)/.installed  ## rewrite docs/results.md, docs/panel.md and README's tables from stored JSON
	$(BIN)/python tools/results_documents.py
	$(BIN)/python tools/panel_document.py

docs: $(VENV)/.installed-docs  ## the documentation site, in site/; nothing is fetched to build it
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

soak: $(VENV)/.installed-dev  ## kill runs 300 times, servers 50 times and a study of 20 trials; compare with others never killed
	LAMAML_SOAK_KILLS=300 $(BIN)/python -m pytest tests/test_survival.py
	LAMAML_SERVE_KILLS=50 $(BIN)/python -m pytest tests/serving/test_serve_kills.py
	LAMAML_TUNE_TRIALS=20 $(BIN)/python -m pytest tests/experiments/running/test_tuning.py -k killed

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

$(VENV)/.installed-docs: $(VENV)/bin/python pyproject.toml requirements.txt
	$(PIP) -e ".[docs]"
	touch $@

clean:  ## remove the environment and every cache
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
