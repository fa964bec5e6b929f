# `make` alone lists what there is. Everything runs from the virtual environment in .venv.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# An option, if its variable was given to make; one of that name in the environment means nothing.
given = $(if $(filter command,$(origin $(1))),$(2) '$($(1))')

GENERATED := $(BIN)/python -m asyncjob.schema && $(BIN)/python -m asyncjob_dev.reference

.PHONY: help venv lock generate format lint types test unit verify clean tools demo up down status image image-test browser-test

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

venv: $(STAMP) ## the virtual environment, with everything pinned

$(STAMP): requirements/dev.txt pyproject.toml sdk/pyproject.toml operator/pyproject.toml worker-image/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "python3-venv is needed (Debian: apt-get install python3-venv)"; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e sdk -e operator -e worker-image -e .
	@touch $@

lock: ## pin requirements again, with hashes; dev comes first, the others take its versions
	@for part in dev build worker; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header requirements/$$part.in -o requirements/$$part.txt || exit 1; \
	done

tools: $(STAMP) ## find, download or build the control plane's programs, and say where they are
	@$(BIN)/python -m asyncjob_dev.binaries

demo: $(STAMP) ## the main job on a real API server: set up, shown, checked, torn down
	@$(BIN)/python -m asyncjob_dev demo

up: $(STAMP) ## keep control plane, operator, gateway and workers running (APP=module:app QUEUES=a,b WORKERS=n SLOTS=n PORT=n GATEWAY_PORT=n)
	@$(BIN)/python -m asyncjob_dev up $(call given,APP,--app) $(call given,WORKERS,--workers) $(call given,SLOTS,--slots) $(call given,QUEUES,--queues) $(call given,PORT,--port) $(call given,GATEWAY_PORT,--gateway-port)

down: $(STAMP) ## stop what `make up` started; jobs are kept (WIPE=1 forgets them)
	@$(BIN)/python -m asyncjob_dev down $(if $(filter 1 yes true,$(WIPE)),--wipe)

status: $(STAMP) ## say what `make up` keeps running
	@$(BIN)/python -m asyncjob_dev status

generate: $(STAMP) ## make crds/ and the generated parts of docs/ anew from the models
	@$(GENERATED)

format: $(STAMP) ## format the code
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --quiet --fix .

lint: $(STAMP) ## style, and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache

types: $(STAMP) ## strict type checks
	$(BIN)/mypy

unit: $(STAMP) ## tests that need no API server: seconds
	$(BIN)/pytest tests/unit tests/properties

# In the order of the folders, so that the long ones do not come last, when one process has them alone.
test: $(STAMP) ## all tests but those that need pods, images or a browser, on real API servers: about ten minutes
	$(BIN)/pytest tests --ignore=tests/e2e --ignore=tests/packaging --ignore=tests/browser --numprocesses=2 --dist=loadfile --no-loadscope-reorder

image: $(STAMP) ## build the worker's image with docker, podman or buildah (IMAGE=name BASE=image)
	@$(BIN)/python -m asyncjob_dev.images $(call given,IMAGE,--tag) $(call given,BASE,--base)

image-test: $(STAMP) ## build the worker's image and run jobs in it (root; buildah, debootstrap, runc)
	$(BIN)/pytest tests/packaging

browser-test: $(STAMP) ## drive the dashboard in Chromium (Debian: apt-get install chromium)
	$(BIN)/pytest tests/browser

verify: generate lint types ## regenerate, lint, check types, and demand a clean tree
	@changed=$$(git status --porcelain); [ -z "$$changed" ] || { echo "the tree is not clean (regenerated files have to be committed):"; echo "$$changed"; exit 1; }

clean: ## remove what can be made again
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
