# Needs Python 3.11 or newer with pip, make and git; everything else goes into .venv, and only when a lock changed.
PYTHON ?= python3
CONFIG ?= config.toml
TESTS ?= tests
SHELF ?=
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
SOURCES := adapters middleware tests
# Modules are compiled when they are first used: half the time, and a sixth less disk.
INSTALL := $(BIN)/python -m pip --disable-pip-version-check install --no-deps --no-compile
# The version of a Python that is new enough and has what is named, else nothing.
version = $(shell { $(1) -c 'import sys, $(2); sys.version_info < (3, 11) or sys.stdout.write("%d.%d" % sys.version_info[:2])'; } 2>/dev/null)
HAS := $(call version,$(BIN)/python,pip)
GIVEN := $(call version,$(PYTHON),venv)
# .venv stays unless its Python is gone, too old or half there, or another one is named.
STAYS := $(and $(HAS),$(or $(filter file,$(origin PYTHON)),$(filter $(HAS),$(GIVEN))))
VERIFY = $(BIN)/usetool cassette verify $(wildcard tests/replays/*.yaml)
COMPILE := build/lock/bin/python -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --override overrides.txt
JUDGE := --base-url http://127.0.0.1:8120/v1 --api-key K

.PHONY: run test test-real check verify format record conform bench lock

run: .venv/runtime
	$(BIN)/usetool serve --config $(CONFIG)

test: .venv/development
	$(BIN)/python -m pytest -q $(TESTS)

# Asks real models: the embedded one, and those of an Ollama if one runs here; minutes, not seconds.
test-real: .venv/development
	$(BIN)/python -m pytest -q -rs -m real $(TESTS)

check: .venv/development
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(VERIFY)
	$(BIN)/python -m pytest -q $(TESTS)

# Whether the gateway still sends and reads what it did; python -m tests.replays records anew.
verify: .venv/development
	$(VERIFY)

format: .venv/development
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

# The only target that talks to providers: make record case=claude/one_call
record: .venv/development
	$(BIN)/python -m tests.record $(case)

# Judges the gateway with the runners and recordings of another folder: make conform SHELF=path
conform: .venv/development
	@test -d "$(SHELF)/conform" || { echo "make conform SHELF=path: there are no runners in '$(SHELF)'"; exit 2; }
	mkdir -p build/conform && tar -xzf "$(SHELF)/corpus/dev.tar.gz" -C build/conform
	@$(BIN)/usetool serve --config "$(SHELF)/configs/conform.toml" & gateway=$$!; trap 'kill $$gateway' EXIT; sleep 3; \
	$(BIN)/python "$(SHELF)/conform/conform_replay.py" $(JUDGE) --data build/conform/dev/data --agg "$(SHELF)/conform/agg-dev.json" --side response,request,cut; replay=$$?; \
	$(BIN)/python "$(SHELF)/conform/conform_emulation.py" $(JUDGE) --corpus "$(SHELF)/emulation/corpus" --mutations 7:500,8:500 && exit $$replay

bench: .venv/development
	$(BIN)/python -m tests.bench

# Keeps the versions that are locked and still fit; options=--upgrade takes the newest.
lock:
	$(PYTHON) -m venv build/lock && build/lock/bin/python -m pip install --quiet uv
	$(COMPILE) runtime.in model.in --group build --output-file requirements.lock $(options)
	$(COMPILE) dev.in --constraints requirements.lock --output-file requirements-dev.lock $(options)

ifeq ($(STAYS),)
.PHONY: .venv/runtime
endif

FOUND = $(or $(filter 2.% 3.%,$(shell { $(PYTHON) --version || :; } 2>&1)),not there)
OTHERS = $(foreach minor,13 12 11 14,$(if $(call version,python3.$(minor),venv),python3.$(minor)))

.venv/runtime: requirements.lock pyproject.toml
	$(if $(STAYS)$(GIVEN),,$(error Usetool needs Python 3.11 or newer, and '$(PYTHON)' is $(FOUND). Write: make $(or $(MAKECMDGOALS),run) PYTHON=$(firstword $(OTHERS) python3.12)))
	$(if $(STAYS),,$(PYTHON) -m venv --clear .venv)
	@echo "Installing into .venv, once: 93 packages and a small model (230 MB to download, 550 MB of disk)."
	$(INSTALL) --require-hashes --requirement requirements.lock
	$(INSTALL) --no-build-isolation --editable .
	touch $@

.venv/development: .venv/runtime requirements-dev.lock
	$(INSTALL) --require-hashes --requirement requirements-dev.lock
	touch $@
