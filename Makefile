# Every target sets itself up: git, make and Python >= 3.11 are enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
UV     := $(shell command -v uv 2>/dev/null || echo $(BIN)/uv)
READY  := $(VENV)/.ready
RUN    := $(BIN)/python

.PHONY: help demo lint format test test-real test-all-pythons bench generate record docs real-control-plane soak fuzz clean

help:
	@echo "make demo    what Flyball does, in a terminal (KEEP=1: the cluster stays)"
	@echo "make test    the tests that need nothing but Python"
	@echo "others: lint format test-real test-all-pythons bench generate docs real-control-plane soak fuzz clean"

$(READY): pyproject.toml uv.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x "$(UV)" || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@UV_PROJECT_ENVIRONMENT=$(VENV) $(UV) sync --quiet --frozen --inexact --all-groups --python $(BIN)/python
	@touch $@

demo: $(READY)
	@PYTHONPATH=operators/simplejob/src KEEP=$(KEEP) $(RUN) examples/demo.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy
	$(BIN)/pyright
	$(RUN) -m tools.modelgen --check
	$(RUN) tools/wiregen.py --check
	$(RUN) tools/operators.py --check
	$(RUN) tools/capabilities.py --check
	$(RUN) -m tools.differential report --check

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: $(READY)
	$(BIN)/pytest -n auto

test-all-pythons: $(READY)
	tools/test_all_pythons

real-control-plane: $(READY)
	$(RUN) tools/real_control_plane.py

test-real: $(READY)
	$(RUN) tools/real_control_plane.py
	$(BIN)/pytest --real -m real -n 2 --dist loadfile

bench: $(READY)
	$(RUN) -m bench

generate: $(READY)
	$(RUN) -m tools.modelgen
	$(RUN) tools/operators.py
	$(RUN) tools/capabilities.py
	$(RUN) -m tools.differential report

record: $(READY)
	$(RUN) tools/real_control_plane.py
	$(RUN) -m tools.differential record

fuzz: $(READY)
	$(RUN) -m tests.fuzz.fsm_parse --count 100000
	$(RUN) -m tests.fuzz.fsm_regenerate --count 100000

soak: $(READY)
	$(RUN) -m tests.soak.apiserver --seconds 60
	$(RUN) -m tests.soak.cache --events 1000000

docs: $(READY)
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .cache
