SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RELEASE := .venv-release
RELEASE_READY := $(RELEASE)/.ready
DEMO ?= .demo
OLDEST := .venv-oldest

##@ Use

.PHONY: demo
demo: $(READY) java ## Make real Delta tables with Spark and look at them with deltaproto
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python examples/demo.py --into $(DEMO)

##@ Develop

# The tests start hundreds of processes, and each would compile every module again.
export PYTHONDONTWRITEBYTECODE :=
PYTEST := -m pytest -p no:cacheprovider
# By another name: a recipe with the usual one runs even under `make -n`.
SUBMAKE = $(MAKE) --no-print-directory
PARALLEL := -n 2 --dist loadgroup --no-loadscope-reorder

# The fortieth of the recorded tests that runs live, and with it the fifth of the rotating ones
# that runs: of this commit, 1 to 40, or none live and all rotating ones.
SAMPLE ?= commit

# Recorded results of Spark, of which a fortieth is compared with a live Spark; one JVM.
.PHONY: test
test: $(READY) archive browser stores ## Lint, types and tests in less than ten minutes
	@SECONDS=0; checks=$$(mktemp); trap 'rm -f "$$checks"' EXIT; \
	  $(SUBMAKE) check > "$$checks" 2>&1 & beside=$$!; \
	  HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-quick} \
	  $(BIN)/python $(PYTEST) $(PARALLEL) -m "not slow and not packaging" --live-sample $(SAMPLE); \
	  status=$$?; wait $$beside; status=$$((status | $$?)); cat "$$checks"; \
	  echo "make test: $$((SECONDS / 60)) min $$((SECONDS % 60)) s without setup"; exit $$status

# Right after `make test`, WHICH=rest leaves out what would only run in the same way again, and three
# quarters of the recorded tests and of the heavy modules.
WHICH ?= all
ALL_OF_all := not replayed
ALL_OF_rest := (slow or rotating or recorded or packaging or hypothesis) and not replayed
WITHOUT_all := none
WITHOUT_rest := $(SAMPLE)

# The tests without Spark run beside the others: one or the other waits for a process, a network
# or a browser, and then a core would be idle. They start no Java, so a third one costs little.
ALL = -m "($(ALL_OF_$(WHICH))) and $(1)" --without-sample $(WITHOUT_$(WHICH)) --spark-results verify

.PHONY: test-all
test-all: $(READY) archive browser stores ## All tests, with live Spark, which must do what was recorded
	@SECONDS=0; other=$$(mktemp); trap 'kill $$beside 2> /dev/null; rm -f "$$other"' EXIT; \
	  { [ $(WHICH) = rest ] || $(SUBMAKE) check; } || exit; \
	  $(BIN)/python $(PYTEST) $(call ALL,not spark) > "$$other" 2>&1 & beside=$$!; \
	  $(BIN)/python $(PYTEST) $(PARALLEL) $(call ALL,spark); \
	  status=$$?; wait $$beside; status=$$((status | $$?)); cat "$$other"; \
	  echo "make test-all: $$((SECONDS / 60)) min $$((SECONDS % 60)) s without setup"; exit $$status

.PHONY: sweep
sweep: $(READY) archive ## The sweep of all table properties with live Spark, about an hour
	@$(BIN)/python $(PYTEST) -m replayed --spark-results verify

.PHONY: record
record: $(READY) archive ## Record what Spark does in the recorded tests (TESTS: only these)
	@$(BIN)/python $(PYTEST) -m recorded --spark-results record $(TESTS)

.PHONY: test-oldest
test-oldest: $(OLDEST)/.ready ## The Spark part of the suite on the oldest supported pair
	@$(OLDEST)/bin/python $(PYTEST) -m spark --spark-results live

.PHONY: check
check: $(READY) ## Lint, format, types and spelling
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@git ls-files -z | xargs -0 $(BIN)/codespell

.PHONY: fast
fast: $(READY) ## The tests that need neither Java nor an object store
	@$(BIN)/python $(PYTEST) $(PARALLEL) -m "not spark and not storage and not packaging and not slow"

.PHONY: fuzz
fuzz: $(READY) ## Ten thousand damaged documents for each of twelve targets
	@FUZZ_CASES=$${FUZZ_CASES:-10000} $(BIN)/python $(PYTEST) -s tests/fuzz

# The folders that bear on the three packages; the same few examples each time.
COVERING := $(addprefix tests/,protocol planning policy check conflicts inspection execution render/runbook fleet/test_forecast.py)

.PHONY: coverage
coverage: $(READY) ## Lines and branches of protocol/, planning/ and policy/ that tests without Spark reach
	@HYPOTHESIS_PROFILE=few $(BIN)/python -m coverage run $(PYTEST) -q -m "not spark and not packaging" $(COVERING)
	@for package in protocol planning policy; do echo "$$package/"; \
	  $(BIN)/python -m coverage report --include="deltaproto/$$package/*" || exit 1; done

.PHONY: mutation
mutation: $(READY) ## Mutants of four packages: all of them, or MUTANTS="--sample 500 --seed 1"
	@$(BIN)/python -m tools.mutation $(MUTANTS)

.PHONY: package
package: $(READY) java ## Build twice, install with pip, pipx and uv, and try what is installed
	@$(BIN)/python $(PYTEST) -m packaging tests/packaging

.PHONY: format
format: $(READY) ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

# BENCH=--quick tries it out, into .benchmarks/.
.PHONY: bench
bench: $(READY) ## Measure against deltalake, delta-kernel-rs and Spark: benchmarks/RESULTS.md
	@$(BIN)/python -m benchmarks $(BENCH)

.PHONY: bench-fleet
bench-fleet: $(READY) ## The same for fleets, which takes long: their part of the page
	@$(BIN)/python -m benchmarks --fleet $(BENCH)

.PHONY: certify
certify: $(READY) java ## Measure every client again: hours, and some gigabytes of clients
	@$(BIN)/python -m tools.certify

.PHONY: docs
docs: $(READY) ## Bring the documentation up to date, and make its site in site/
	@$(BIN)/python -m tools.docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

.PHONY: picture
picture: $(READY) browser ## Take the picture of a fleet report for README and the site
	@$(BIN)/python -m tools.picture

##@ Release

.PHONY: build
build: $(RELEASE_READY) ## Wheel and sdist in dist/
	@$(RELEASE)/bin/python -m build --outdir dist .

.PHONY: audit
audit: $(RELEASE_READY) ## Known vulnerabilities of everything that constraints.txt pins (AUDIT: more options)
	@$(RELEASE)/bin/pip-audit --strict --no-deps --disable-pip -r constraints.txt $(AUDIT)

# Of a fresh environment that holds the wheel and what it needs, and nothing of ours.
.PHONY: sbom
sbom: build ## What the wheel brings along, as CycloneDX, in dist/
	@rm -rf .venv-sbom && $(PYTHON) -m venv --without-pip .venv-sbom
	@version=$$($(PYTHON) -c 'import deltaproto; print(deltaproto.__version__)') && \
	  $(RELEASE)/bin/python -m pip --python .venv-sbom/bin/python install --quiet --disable-pip-version-check -c constraints.txt dist/deltaproto-$$version-*.whl && \
	  sed "s/^dynamic = .*/version = \"$$version\"/" pyproject.toml > .venv-sbom/pyproject.toml && \
	  $(RELEASE)/bin/cyclonedx-py environment --pyproject .venv-sbom/pyproject.toml --output-reproducible \
	    --output-file dist/deltaproto-$$version.cdx.json .venv-sbom
	@rm -rf .venv-sbom

##@ Keep up to date

.PHONY: lock
lock: ## Write constraints.txt from a fresh install of the newest allowed versions
	@rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	@.venv-lock/bin/python -m pip install --quiet -e ".[connect]" --group dev
	@{ grep "^# java==" constraints.txt; .venv-lock/bin/python -m pip freeze --exclude-editable; } > .venv-lock/pins
	@mv .venv-lock/pins constraints.txt
	@rm -rf .venv-lock

.PHONY: clean
clean: ## Remove the virtual environment and everything generated
	@rm -rf .cache .recordings $(VENV) $(OLDEST) .venv-lock .venv-sbom $(RELEASE) $(DEMO) .kit .clients .stores dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis mutants .coverage
	@rm -rf .benchmarks benchmarks/kernel_inspect/target

##@ Set up (each of the targets above does what it needs of this)

.PHONY: setup
setup: $(READY) ## Virtual environment with the proven set of versions

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "error: Python 3.11 or later is needed, this is " + sys.version.split()[0] + "\nhint: make PYTHON=python3.12 …")'
	@echo "setting up $(VENV) (a few minutes the first time: pyspark is large)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[connect]" --group dev
	@$(BIN)/python -m compileall -q deltaproto
	@touch $(READY)

$(RELEASE_READY): pyproject.toml
	@$(PYTHON) -m venv $(RELEASE)
	@$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check --group release
	@touch $(RELEASE_READY)

# The proven set, with the oldest pair and what it asks for in place of the newest.
$(OLDEST)/.ready: pyproject.toml constraints.txt constraints-oldest.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 12) else "error: Spark 3.5 is tried with Python 3.11, this is " + sys.version.split()[0] + "\nhint: make test-oldest PYTHON=python3.11")'
	@echo "setting up $(OLDEST) (a few minutes the first time: pyspark is large)"
	@$(PYTHON) -m venv $(OLDEST)
	@awk -F== 'NR == FNR {own[$$1]; print; next} !($$1 in own)' constraints-oldest.txt constraints.txt > $(OLDEST)/constraints.txt
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -c $(OLDEST)/constraints.txt -e ".[connect]" --group dev
	@$(OLDEST)/bin/python -m deltaproto.tables.java
	@touch $@

.PHONY: java
java: $(READY)
	@$(BIN)/python -m deltaproto.tables.java

# Spark's classes, so that each of the tests' many Javas starts faster.
.PHONY: archive
archive: java
	@$(BIN)/python -m tests.support.java_archive

# Chromium for the tests of HTML outputs; without it they are left out, and say so.
.PHONY: browser
browser: $(READY)
	@if ! $(BIN)/python -m tests.browser.chromium > /dev/null; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	    echo "installing chromium for the tests of HTML outputs"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium > /dev/null; \
	  else \
	    echo "no Chromium: the tests of HTML outputs are left out (install chromium, or set CHROMIUM)"; \
	  fi; \
	fi

# Azurite from npm, and with Go fake-gcs-server; what cannot be had is left out, and says so.
.PHONY: stores
stores: $(READY)
	@$(BIN)/python -m tests.support.emulators

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*##"; printf "make <target>\n"} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*##/ {printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
