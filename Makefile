# `make` alone lists what there is. Everything runs from the virtual environment in .venv.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# An option, if its variable was given to make; one of that name in the environment means nothing.
given = $(if $(filter command,$(origin $(1))),$(2) '$($(1))')

# An option without a value, if its variable is 1, yes or true; the environment counts here.
switched = $(if $(filter 1 yes true,$($(1))),$(2))

TESTS := --ignore=tests/e2e --ignore=tests/packaging --ignore=tests/charts --ignore=tests/browser \
  --dist=loadfile --no-loadscope-reorder --durations=15

NEW_ENOUGH = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
  || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3"; exit 1; }

# Finding and building programs takes nothing but Python, so it need not wait for the virtual environment.
PROGRAMS = PYTHONPATH=dev $(if $(wildcard $(STAMP)),$(BIN)/python,$(PYTHON)) -m asyncjob_dev.binaries

PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile

# uv takes seconds where pip takes minutes, but reads no pip.conf, which may be the only way to packages.
install = $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r $(1) \
  || { echo "uv could not install the packages; pip does, which takes longer"; $(PIP) --require-hashes -r $(1); }

# Makes the virtual environment and the target, at the same time.
beside_venv = @$(MAKE) --no-print-directory -j2 venv $(1) QUIET=1

# Hundreds of processes are started, and each would compile the project again in an environment that
# forbids to keep byte code.
export PYTHONDONTWRITEBYTECODE :=

GENERATED := $(BIN)/python -m asyncjob.schema \
  && cp dev/manifests/rbac.yaml charts/asyncjob/files/ \
  && $(BIN)/python -m asyncjob_dev.reference \
  && $(BIN)/python -m asyncjob_bench page

BENCH := $(BIN)/python -m asyncjob_bench

# No target but the virtual environment is a file.
.PHONY: $(shell grep -hoE '^[a-z0-9-]+:' $(MAKEFILE_LIST) | tr -d :)

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-19s %s\n", $$1, $$2}'

venv: $(STAMP) ## the virtual environment, with everything pinned
	@:

$(STAMP): requirements/dev.txt requirements/uv.txt pyproject.toml sdk/pyproject.toml operator/pyproject.toml worker-image/pyproject.toml dev/pyproject.toml
	@$(NEW_ENOUGH)
	@$(PYTHON) -m venv $(VENV) || { echo "python3-venv is needed (Debian: apt-get install python3-venv)"; exit 1; }
	$(PIP) --require-hashes -r requirements/uv.txt
	$(call install,requirements/dev.txt)
	$(PIP) --no-deps --no-build-isolation -e sdk -e operator -e worker-image -e dev -e .
	@touch $@

lock: ## pin requirements again, with hashes; dev comes first, the others take its versions
	@for part in dev uv build docs worker operator; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    requirements/$$part.in -o requirements/$$part.txt || exit 1; \
	done

tools: ## find, download or build all programs of a control plane, which tests need, and say where they are
	@$(NEW_ENOUGH)
	@$(PROGRAMS) $(if $(QUIET),--quiet)

server-tools: ## find, download or build what demo, up and `asyncjob dev` need: all of `make tools` but kube-controller-manager
	@$(NEW_ENOUGH)
	@$(PROGRAMS) --server $(if $(QUIET),--quiet)

node-tools: ## find, download or build what a node needs besides: kubelet, containerd, helm and others
	@$(NEW_ENOUGH)
	@$(PROGRAMS) --node

monitoring-tools: ## find, download or build prometheus and promtool, which only tests need
	@$(NEW_ENOUGH)
	@$(PROGRAMS) --monitoring

chart-tools: ## find, download or build helm, which tests of the chart and of rights need
	@$(NEW_ENOUGH)
	@$(PROGRAMS) helm

demo: ## the main job on a real API server: set up, shown, checked, torn down
	$(call beside_venv,server-tools)
	@$(BIN)/python -m asyncjob_dev demo

up: ## keep control plane, operator, gateway and workers running (APP=module:app QUEUES=a,b WORKERS=n SLOTS=n PORT=n GATEWAY_PORT=n)
	$(call beside_venv,server-tools)
	@$(BIN)/python -m asyncjob_dev up $(call given,APP,--app) $(call given,WORKERS,--workers) \
	  $(call given,SLOTS,--slots) $(call given,QUEUES,--queues) $(call given,PORT,--port) \
	  $(call given,GATEWAY_PORT,--gateway-port)

down: $(STAMP) ## stop what `make up` started; jobs are kept (WIPE=1 forgets them)
	@$(BIN)/python -m asyncjob_dev down $(call switched,WIPE,--wipe)

status: $(STAMP) ## say what `make up` keeps running
	@$(BIN)/python -m asyncjob_dev status

generate: $(STAMP) ## regenerate crds/ and the generated parts of docs/
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
# Tests start processes that need a processor as well: three files at a time keep two cores busy.
test: $(STAMP) tools chart-tools monitoring-tools ## all tests but the long ones and those that need pods, images or a browser: about half an hour on two processors
	$(BIN)/pytest tests -m "not soak and not alone" $(TESTS) --numprocesses=3

test-kubernetes: $(STAMP) chart-tools monitoring-tools ## the tests with an API server on another Kubernetes; its programs are built first (KUBERNETES=1.32)
	@assets=$$($(PROGRAMS) --kubernetes $(or $(KUBERNETES),1.32)) || exit; \
	  KUBEBUILDER_ASSETS=$$assets $(BIN)/pytest tests/contract tests/integration \
	  -m "not soak and not alone" $(TESTS) --numprocesses=3

prove: $(STAMP) ## prove that the rules keep every promise and are all needed, and search the protocol's states (ONLY=rules|protocol|model WORLD=name LONG=1)
	@$(BIN)/python -m asyncjob_dev.proofs $(call given,ONLY,--only) $(call given,WORLD,--world) $(call switched,LONG,--long)

soak: soak-shared soak-alone ## the long ones: demo and environment as a whole, thousands of jobs, many kills, random lives; about an hour

soak-shared: $(STAMP) tools ## those of them that bear others beside them; about 40 minutes
	$(BIN)/pytest tests -m "soak and not alone" $(TESTS) --numprocesses=2

soak-alone: $(STAMP) tools ## those that measure time or memory, and so run one at a time; 19 minutes
	$(BIN)/pytest tests -m alone $(TESTS) --numprocesses=0

simulate: $(STAMP) ## operator, workers and gateway under seeded faults in virtual time; a failing seed tells its story (SEED=n PROFILE=jobs|waits|arrays|children MINUTES=n LIVES=n)
	@$(BIN)/python -m asyncjob_simulation $(call given,SEED,--seed) $(call given,PROFILE,--profile) $(call given,MINUTES,--minutes) \
	  $(call given,LIVES,--lives)

simulate-mutations: $(STAMP) ## plant each of the known bugs and search for it twice, ten CPU minutes at most (BUG='lost wakeup' SEED=n MINUTES=n WRITE=1)
	@$(BIN)/python -m asyncjob_simulation.mutations $(call given,SEED,--seed) $(call given,MINUTES,--minutes) \
	  $(call switched,WRITE,--write) $(call given,BUG,--)

simulate-resources: $(STAMP) ## generated changes of queues, schedules, arrays and control fields come to what their last spec comes to when made fresh (SEED=n MINUTES=n LIVES=n)
	@$(BIN)/python -m asyncjob_simulation.resource_lives $(call given,SEED,--seed) $(call given,MINUTES,--minutes) \
	  $(call given,LIVES,--lives)

perturb: $(STAMP) tools ## interfere with operator, worker and gateway at each of their requests on a real API server, and compare the ends (SCENARIO=name PART=name CALL=n|name WHEN=moment AT=writes|reads|events MINUTES=n SEED=n JOURNAL=file)
	@$(BIN)/python -m asyncjob_perturbation $(call given,SCENARIO,--scenario) $(call given,PART,--part) \
	  $(call given,CALL,--call) $(call given,WHEN,--when) $(call given,AT,--at) $(call given,MINUTES,--minutes) \
	  $(call given,SEED,--seed) $(call given,JOURNAL,--journal)

mutants: $(STAMP) ## change the pure code in one place at a time; a test has to fail (MODULE=part-of-path MINUTES=n SEED=n JOBS=n SMALL=1 AGAIN=1)
	@$(BIN)/python -m asyncjob_dev.mutants $(call given,MODULE,--module) $(call given,MINUTES,--minutes) \
	  $(call given,SEED,--seed) $(call given,JOBS,--jobs) $(call switched,SMALL,--small) $(call switched,AGAIN,--again)

fuzz: $(STAMP) ## give parsers what nobody would write, with fresh seeds (SEED=n MINUTES=n EXAMPLES=n)
	@$(BIN)/python -m asyncjob_dev.fuzz $(call given,SEED,--seed) $(call given,MINUTES,--minutes) \
	  $(call given,EXAMPLES,--examples)

chaos: $(STAMP) tools ## faults on real processes under load, the whole matrix; an hour (CELLS=a/plain,b SMALL=1 MINUTES=n SEED=n BURST=n OUT=file MERGE=1)
	@$(BIN)/python -m asyncjob_chaos $(call given,CELLS,--cells) $(call given,MINUTES,--minutes) \
	  $(call switched,SMALL,--small) $(call given,SEED,--seed) $(call given,BURST,--burst) $(call given,OUT,--out) \
	  $(call switched,MERGE,--merge)

array-kills: $(STAMP) tools ## an array while workers, leader, gateway and API server are killed; each item counts once; minutes (ITEMS=n ROUNDS=n)
	@$(BIN)/python -m asyncjob_chaos.array_kills $(call given,ITEMS,--items) $(call given,ROUNDS,--rounds)

bench: $(STAMP) ## measure, beside the API server's limit and others; a quiet hour (PARTS=a,b SCALE=small REPORT_ONLY=1)
	@$(BENCH) run $(call given,PARTS,--parts) $(call given,SCALE,--scale) $(call switched,REPORT_ONLY,--report-only)

bench-curves: $(STAMP) ## how it scales, with objects, workers, payloads, long jobs and items; half an hour (CURVES=a,b SCALE=small)
	@$(BENCH) curves $(call given,CURVES,--curves) $(call given,SCALE,--scale)

bench-check: $(STAMP) ## compare what was measured last with the limits
	@$(BENCH) check

bench-profile: $(STAMP) ## where operator, worker and API server spend their time while jobs flow (SCALE=small)
	@$(BENCH) profile $(call given,SCALE,--scale)

bench-prices: $(STAMP) ## what schema and rules cost the API server, one by one; four minutes (SCALE=small ONLY=variant)
	@$(BENCH) prices $(call given,SCALE,--scale) $(call given,ONLY,--only)

bench-versions: $(STAMP) ## what a job costs on other versions of Kubernetes and etcd, which are built first (KUBERNETES=1.37 SCALE=small)
	@$(BENCH) versions $(call given,KUBERNETES,--kubernetes) $(call given,SCALE,--scale)

bench-page: $(STAMP) ## show what was measured last on the page about performance
	@$(BENCH) page --publish

image: $(STAMP) ## build the worker's image with docker, podman or buildah (IMAGE=name BASE=image)
	@$(BIN)/python -m asyncjob_dev.images $(call given,IMAGE,--tag) $(call given,BASE,--base)

operator-image: $(STAMP) ## build the image of operator and gateway, with the same tools as `make image` (IMAGE=name BASE=image)
	@$(BIN)/python -m asyncjob_dev.images --file operator/Dockerfile --tag asyncjob-operator \
	  $(call given,IMAGE,--tag) $(call given,BASE,--base)

image-test: $(STAMP) tools ## build the worker's image and run jobs in it (root; buildah, debootstrap, runc)
	$(BIN)/pytest tests/packaging

node-up: $(STAMP) ## keep a real node with real pods running (root on Linux; NAME=name)
	@$(BIN)/python -m asyncjob_dev node up $(call given,NAME,--name)

node-down: $(STAMP) ## end what `make node-up` started (NAME=name)
	@$(BIN)/python -m asyncjob_dev node down $(call given,NAME,--name)

e2e: $(STAMP) tools node-tools ## the suite on real pods (TARGET=kind|node|existing; kind where Docker runs, else node)
	ASYNCJOB_E2E_TARGET=$(if $(filter command,$(origin TARGET)),'$(TARGET)',"$$ASYNCJOB_E2E_TARGET") $(BIN)/pytest tests/e2e

chart-test: $(STAMP) tools chart-tools ## the Helm chart: lint, every value, every scenario on a real API server; a minute
	$(BIN)/pytest tests/charts

browser-test: $(VENV)/.docs-installed tools ## drive the dashboard and the documentation's site in Chromium (Debian: apt-get install chromium)
	$(BIN)/pytest tests/browser

$(VENV)/.docs-installed: $(STAMP) requirements/docs.txt
	$(call install,requirements/docs.txt)
	@touch $@

docs: $(VENV)/.docs-installed ## render the documentation as a site, into dist/docs (VERSION=name)
	@$(BIN)/python -m asyncjob_dev.site build $(call given,VERSION,--version)

docs-serve: $(VENV)/.docs-installed ## show the documentation on this machine, and render it again when a page changes (PORT=n)
	@$(BIN)/python -m asyncjob_dev.site serve $(call given,PORT,--port)

verify: generate lint types ## regenerate, lint, check types, and demand a clean tree
	@changed=$$(git status --porcelain); [ -z "$$changed" ] \
	  || { echo "the tree is not clean (regenerated files have to be committed):"; echo "$$changed"; exit 1; }

dist: $(STAMP) chart-tools ## build wheels and source archives of the four distributions, and package the chart, into dist
	@$(BIN)/python -m asyncjob_dev.rehearsal --steps wheels,chart

controlplane-wheel: $(STAMP) ## build the wheel of etcd, kube-apiserver and kubectl, with all licences, into dist/controlplane (PLATFORM=linux-arm64)
	@$(BIN)/python -m asyncjob_dev.programs_wheel $(call given,PLATFORM,--platform)

workflows-lint: $(STAMP) ## check the workflows with actionlint, built once from its pinned source
	@$$($(BIN)/python -m asyncjob_dev.binaries actionlint | awk '$$1 == "actionlint" {print $$NF}') -color .github/workflows/*.yaml

sbom: $(STAMP) ## a bill of materials (CycloneDX) of each image, into dist/sbom
	@$(BIN)/python -m asyncjob_dev.supply sbom

audit: $(STAMP) ## look up known vulnerabilities of all that is pinned (SERVICE=pypi|osv); fails where it cannot look
	@$(BIN)/python -m asyncjob_dev.supply audit $(call given,SERVICE,--service)

release-fixtures: $(STAMP) ## store chart and writes of this version, for the next one to be tested on
	@$(BIN)/python -m asyncjob_dev.release store

release-check: $(STAMP) ## say what keeps the tree from being released (TAG=v0.1.0 BASE=image@sha256:…)
	@$(BIN)/python -m asyncjob_dev.release check $(call given,BASE,--base) $(if $(filter command,$(origin TAG)),'$(TAG)')

release-rehearsal: $(STAMP) tools chart-tools ## all that a release builds, built, checked, installed and run here (STEPS=wheels,install)
	@$(BIN)/python -m asyncjob_dev.rehearsal $(call given,STEPS,--steps)

clean: ## remove what can be made again
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
