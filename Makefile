# The two commands: `make demo` and `make test`. Each sets up all it needs, the first time it runs.
.DEFAULT_GOAL := help
.PHONY: help demo study test check lint format bench torture tables clean

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

# Made anew when the dependencies change; otherwise a second run starts at once. The variable pins
# the build backend too, which pip installs into an environment of its own.
$(READY): pyproject.toml study/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dkae needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip install --quiet \
	    --disable-pip-version-check --editable '.[dev]' --editable study
	@touch $@

demo: $(READY) ## the paper's model, three maps and the study's results: demo/index.html, in three minutes
	mkdir -p demo
	$(BIN)/dkae report study/results/laptop --out demo/study.html
	$(BIN)/dkae demo --out demo

study: $(READY) ## every table and figure of the paper at the scale laptop: hours, and it can be interrupted
	$(BIN)/dkae reproduce --scale laptop --out study/results/new
	$(BIN)/dkae report study/results/new

# Waiting threads of OpenMP sleep after a short spin, unless you have decided how they wait.
ifeq ($(GOMP_SPINCOUNT)$(OMP_WAIT_POLICY)$(OMP_NUM_THREADS),)
export GOMP_SPINCOUNT := 1000
export OPENBLAS_THREAD_TIMEOUT := 4
endif

# One process for each core, and one thread for each process: more would wait for each other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

test: $(READY) ## run the whole test suite
	$(PYTEST)

check: lint ## the inner loop, about a minute: linters, and the fast tests of the library
	$(PYTEST) -q -m "not slow" tests

lint: $(READY) ## ruff, mypy --strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## put the code into its standard form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## benchmarks; they write to benchmarks/results/
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/training_step.py
	$(BIN)/python benchmarks/step_memory.py
	$(BIN)/python benchmarks/alignment_measures.py
	$(BIN)/python benchmarks/cluster_kernel.py
	$(BIN)/python benchmarks/spectral.py
	$(BIN)/python benchmarks/baselines.py
	$(BIN)/python benchmarks/recipes.py
	$(BIN)/python benchmarks/mnist_recipes.py
	$(BIN)/python benchmarks/nystroem.py
	$(BIN)/python benchmarks/fit_trace.py
	$(BIN)/python benchmarks/quickstart.py
	$(BIN)/python benchmarks/choose_gamma.py
	$(BIN)/python benchmarks/processes.py
	$(BIN)/python benchmarks/busy.py
	$(BIN)/python benchmarks/million_rows.py
	$(BIN)/python benchmarks/out_of_sample.py
	$(BIN)/python benchmarks/partial_fit.py
	$(BIN)/python benchmarks/chunks.py

torture: $(READY) ## kill, damage and interrupt, by the thousand: ten minutes
	$(BIN)/python benchmarks/torture.py

tables: $(READY) ## write the tables of README and docs anew, from the result files
	$(BIN)/python -m scripts.tables

clean: ## remove everything that make has made
	rm -rf $(VENV) demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
