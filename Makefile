# `make run` and `make test` set up everything that they need: see scripts/setup.sh.
SHELL := /bin/bash
BIN := .venv/bin
# With CI set, pytest prints the last line of a failure whole.
PYTEST := CI=true $(BIN)/python -m pytest -n auto --dist loadfile
export PATH := $(CURDIR)/$(BIN):$(PATH)
SOURCES := $(shell find src -type f -not -name '*.pyc') pyproject.toml README.md

.PHONY: run test test-slow check fmt soak release bench lock docs screenshots clean

run: .venv/.run ## Run the service with the sandbox messenger and the demo.
	$(BIN)/taproof serve --sandbox $(ARGS)

test: check ## Check everything and run the tests, except those of tests/slow, on the built wheel.
	$(PYTEST) tests --ignore=tests/slow --ignore=tests/docs $(ARGS)

test-slow: .venv/.slow build/relying-parties-venv/requirements.txt build/release-venv/requirements.txt ## Run the tests that take minutes: long kills and floods, the programs of the docs, builds.
	$(PYTEST) tests/slow $(ARGS)

check: .venv/.test ## Check style, types, imports and the documentation.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) tests/docs

soak: .venv/.slow build/relying-parties-venv/requirements.txt build/release-venv/requirements.txt ## Run the tests with the long property and fault tests.
	$(BIN)/python -m pytest --hypothesis-profile=soak $(ARGS)

release: build/release-venv/requirements.txt ## Build the wheel, the source distribution, the npm package and their SBOMs in build/release.
	scripts/build_release.sh build/release

bench: .venv/.bench ## Run the benchmarks: see benchmarks/README.md.
	$(BIN)/python -m benchmarks.all $(ARGS)

docs: .venv/.docs ## Serve the documentation locally and reload it on each change.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve $(ARGS)

screenshots: .venv/.test ## Take the screenshots of the README and the docs again.
	$(BIN)/python -m scripts.screenshots $(ARGS)

fmt: .venv/.test ## Format the code and fix what ruff can fix.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: .venv/.test ## Lock the newest compatible versions with their hashes.
	scripts/lock.sh

clean: ## Delete the environment and all caches.
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/.run: requirements/run.txt $(SOURCES) scripts/setup.sh
	scripts/setup.sh run

.venv/.docs: requirements/docs.txt scripts/setup.sh
	scripts/setup.sh docs

.venv/.test: requirements/test.txt tests/npm/package-lock.json sdk/js/package-lock.json $(SOURCES) scripts/setup.sh
	scripts/setup.sh test

build/relying-parties-venv/requirements.txt: .venv/.test requirements/relying-parties.txt tests/slow/relying_parties/npm/package-lock.json scripts/setup.sh
	scripts/setup.sh relying-parties

build/release-venv/requirements.txt: requirements/release.txt scripts/setup.sh
	scripts/setup.sh release

.venv/.slow: .venv/.test
	scripts/setup.sh slow

.venv/.bench: .venv/.test requirements/bench.txt
	scripts/setup.sh bench
