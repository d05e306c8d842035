# The commands for working on the project. Each target first installs what it needs in this folder, once.

PYTHON ?=
VENV   := .venv
BIN    := $(VENV)/bin
RUNS   := $(VENV)/.runs
STAMP  := $(VENV)/.installed
SHARED := $(VENV)/.class-archive
CONNECT := $(VENV)/connect.log
WORKERS ?= 2

export PIP_NO_CACHE_DIR := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export DBT_SEND_ANONYMOUS_USAGE_STATS := false
export PYTHON
# Tests start many processes, and each would compile all of its imports again.
unexport PYTHONDONTWRITEBYTECODE

# Runs a command with the Java that Spark uses.
WITH_JAVA = JAVA_HOME="$$(cat $(VENV)/java-home)"

IN_PARALLEL = -m "not long" -n $(WORKERS) --dist loadscope --no-loadscope-reorder
OF_SHARD = $(if $(SHARD),--shard $(SHARD))

# The engine's tests that run Spark.
ENGINE_ON_SPARK = tests/unit/engine tests/corpus --ignore tests/unit/engine/kernel --ignore tests/unit/engine/sql --ignore tests/unit/engine/catalog

# Those that a plain client runs by SQL alone.
STATEMENTS = tests/unit/engine/statements
ENGINE_BY_SQL = tests/unit/engine/test_sql.py $(STATEMENTS)/test_collations.py $(STATEMENTS)/transactions/test_transaction_names.py \
	$(patsubst %,$(STATEMENTS)/execute/test_%.py,alter_view change_of_kind computed_values conditions constraints create_like \
	enforced_keys foreign_keys functions)

.PHONY: help setup java demo test test-rest test-all test-changed test-long test-environment test-connect test-endpoint test-kept coverage test-cloud test-projects test-dbt-spark check bench simulate processes processes-spark chaos places cluster-faults race mutants docs clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

setup: $(SHARED) ## create the virtual environment .venv, and install Java if it is missing

demo: $(RUNS) java ## build two months of the sample project on flights, then repeat a run
	@cd sample_project && $(subst $(VENV),../$(VENV),$(WITH_JAVA)) ../$(BIN)/python demo.py

test: check $(SHARED) ## run check and the fast set, the tests that find most in ten minutes: tests/gate/fast.json
	@$(WITH_JAVA) $(BIN)/python -m pytest --fast $(IN_PARALLEL) $(addprefix --ignore=,$(CHECKED)) --durations 10 --durations-min 5

test-rest: $(SHARED) ## run tests beyond the fast set for MINUTES (35): first those that the change since BASE reaches; list what is left out
	@$(WITH_JAVA) $(BIN)/python -m tests.gate.rest --minutes $(or $(MINUTES),35) --workers $(WORKERS)

test-all: $(if $(SHARD),,check) $(SHARED) ## run check, all tests except the long tests, and a few tests over Spark Connect; SHARD=2/4: the second of four parts, without check
	@export $(WITH_JAVA); \
	$(BIN)/python -m pytest --connect -m "connect(gate=True)" $(OF_SHARD) >$(CONNECT) 2>&1 & \
	connect=$$!; trap "kill $$connect" INT TERM; ended=0; \
	$(BIN)/python -m pytest $(IN_PARALLEL) $(OF_SHARD) $(addprefix --ignore=,$(CHECKED)) --durations 20 --durations-min 1 || ended=1; \
	wait $$connect || ended=1; \
	echo; echo "over Spark Connect:"; cat $(CONNECT); exit $$ended

test-changed: $(SHARED) ## run the tests that the changes since BASE (HEAD) reach, nearest first, for MINUTES (5), and a smoke test of dbt
	@$(WITH_JAVA) $(BIN)/python -m tests.changed --base $(or $(BASE),HEAD) --minutes $(or $(MINUTES),5) --workers $(WORKERS)

test-long: $(SHARED) ## run the tests marked long, which include the wheel, the coverage of the kernel, and each lane of versions in a separate environment; LANE: one lane; WITHOUT_LANES=yes: no lanes
	@export $(WITH_JAVA); ended=0; \
	$(if $(LANE),,$(BIN)/python -m pytest -m long -n $(WORKERS) --dist loadscope --no-loadscope-reorder || ended=1;) \
	$(if $(LANE),,SILT_EXAMPLES=all $(BIN)/python -m pytest -m "hypothesis and not long" -n $(WORKERS) --dist loadscope || ended=1;) \
	$(if $(LANE),,$(MAKE) coverage || ended=1;) \
	$(if $(LANE),,$(BIN)/python -m pytest --kept -m "kept or connect" || ended=1;) \
	$(if $(LANE),,$(BIN)/python -m pytest --cluster -m "kept or connect" tests/functional || ended=1;) \
	$(if $(LANE),,$(BIN)/python -m pytest --cluster $(ENGINE_ON_SPARK) || ended=1;) \
	$(if $(LANE),,$(MAKE) test-connect || ended=1;) \
	$(if $(LANE),,$(BIN)/python -m pytest --connect -m connect tests/functional tests/security tests/unit/session || ended=1;) \
	$(if $(LANE),,$(BIN)/python -m pytest --kept --silt-dbt -m kept tests/functional || ended=1;) \
	$(if $(WITHOUT_LANES),,$(BIN)/python -m tests.lanes --workers $(WORKERS) $(LANE) || ended=1;) \
	exit $$ended

coverage: $(STAMP) ## measure how much of engine/kernel its unit tests run, and fail below the floor in pyproject.toml
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run -m pytest --without-spark -m "not long" -n $(WORKERS) --dist loadscope tests/unit/engine/kernel
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report --skip-covered

test-environment: $(SHARED) ## run the unit tests that use no Spark under unusual umasks, time zones, locales and home folders
	@export $(WITH_JAVA); ended=0; \
	(umask 077; TZ=Asia/Kathmandu LANG=C HOME=/proc/missing $(WITHOUT_SPARK)) || ended=1; \
	(umask 000; TZ=America/St_Johns LANG=tr_TR.UTF-8 HOME=/proc $(WITHOUT_SPARK)) || ended=1; \
	exit $$ended

WITHOUT_SPARK = $(BIN)/python -m pytest --without-spark -m "not long" -n $(WORKERS) --dist loadscope tests/unit

test-connect: $(SHARED) ## run the engine's tests that use Spark over Spark Connect
	@$(WITH_JAVA) $(BIN)/python -m pytest --connect -n $(WORKERS) --dist loadscope $(ENGINE_ON_SPARK)

test-endpoint: $(SHARED) ## run the engine's tests of SQL through the Connect door of `silt endpoint`, by a plain client of PySpark
	@$(WITH_JAVA) $(BIN)/python -m pytest --connect --endpoint -n $(WORKERS) --dist loadscope $(ENGINE_BY_SQL)

test-kept: $(SHARED) ## run the same tests and a part of dbt's suite on a kept Spark (keep_alive)
	@$(WITH_JAVA) $(BIN)/python -m pytest --kept -n $(WORKERS) --dist loadscope tests/functional/suite $(ENGINE_ON_SPARK)

test-projects: $(SHARED) ## build the public projects that are unpacked in the folder PROJECTS, or the project ONLY; list missing projects
	@$(WITH_JAVA) $(BIN)/python -m tests.projects "$(PROJECTS)" $(if $(ONLY),--only "$(ONLY)")

test-dbt-spark: $(SHARED) ## run dbt-spark's own functional tests at each door of the endpoint, or at the DOOR thrift or connect; SUITE: the folder dbt-spark of a clone of dbt-adapters
	@$(WITH_JAVA) $(BIN)/python -m tests.dbt_spark "$(SUITE)" $(if $(DOOR),--door $(DOOR))

check: $(STAMP) ## check style, types, the size of each room, imports between layers, the architecture page, decisions and words
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { echo "run: $(BIN)/ruff format ." >&2; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python -m pytest --quiet $(CHECKED)

# The tests that `check` runs, so that `test` does not run them again.
CHECKED = $(addprefix tests/unit/test_,budget.py layers.py architecture.py decisions.py words.py)

test-cloud: $(SHARED) ## run the tests on object stores: S3 (versitygw) and Azure (Azurite), installed once with go and npm
	@export $(WITH_JAVA); $(BIN)/python -m tests.cloud.install; ended=0; \
	$(BIN)/python -m pytest --cloud s3 $(ON_STORAGE) tests/corpus tests/functional || ended=1; \
	$(BIN)/python -m pytest --cloud azure tests/cloud tests/unit/engine/kernel || ended=1; \
	$(BIN)/python -m pytest --cloud azure -m "connect or kept" tests/unit/engine tests/functional || ended=1; \
	for spark in cluster connect kept; do \
		$(BIN)/python -m pytest --cloud s3 --$$spark -m "connect or kept" tests/unit/engine tests/functional || ended=1; \
	done; \
	for cloud in s3 azure; do $(BIN)/python -m tests.cloud.race $$cloud || ended=1; done; exit $$ended

# --cloud runs the tests that use the server: all of them on S3, and on Azurite only a part of the tests of Spark and dbt.
ON_STORAGE = tests/cloud tests/unit/engine --ignore tests/unit/engine/sql --ignore tests/unit/engine/catalog

bench: $(SHARED) ## run the benchmarks against bare Spark
	@$(WITH_JAVA) $(BIN)/python -m benchmarks

simulate: $(STAMP) ## simulate SEEDS histories (1000) OF folders, objects or the catalog, or show the history of SEED with its schedule
	@$(BIN)/python -m tests.simulation --of $(or $(OF),folders) --seeds $(or $(SEEDS),1000) $(if $(SEED),--seed $(SEED))

processes: $(STAMP) ## write one table from threads, processes and killed processes, 200 commits each
	@$(BIN)/python -m tests.simulation.processes

processes-spark: $(SHARED) ## the same with Spark: appends, merges and deletes
	@$(WITH_JAVA) $(BIN)/python -m tests.simulation.spark_processes

chaos: $(SHARED) ## kill and continue dbt processes: KILLS (300), JOBS at a time, from SEED; KILL: up to that kill; SERVER=yes: over one server; CLOUD=s3: in an object store; PUBLISH=after_tests
	@$(WITH_JAVA) $(BIN)/python -m tests.chaos --kills $(or $(KILLS),300) --seed $(or $(SEED),1) --jobs $(or $(JOBS),1) \
		$(if $(FROM),--from $(FROM)) $(if $(KILL),--kill $(KILL)) $(if $(FIGURES),--figures $(FIGURES)) $(if $(SERVER),--server) $(if $(PUBLISH),--publish $(PUBLISH)) $(if $(CLOUD),--cloud $(CLOUD))

places: $(SHARED) ## run the sample project embedded, on a cluster and over Spark Connect, in a folder and in S3; compare times and results
	@$(WITH_JAVA) $(BIN)/python -m tests.clusters.places

cluster-faults: $(SHARED) ## run ROUNDS statements (100) on a standalone cluster whose executors are killed and stopped, from SEED
	@$(WITH_JAVA) $(BIN)/python -m tests.clusters.faults --rounds $(or $(ROUNDS),100) --seed $(or $(SEED),1)

race: $(STAMP) ## write one table with the kernel and delta-rs, 100 commits each
	@$(BIN)/python -m tests.interop.race

mutants: $(STAMP) ## change the safety core in small ways and list the changes that no test notices; PLACES: folders and modules below the package; JOBS at a time; SAMPLE mutants of SEED; FAST=yes: how many of the killed mutants `make test` kills
	@$(BIN)/python -m tests.mutants $(PLACES) --jobs $(or $(JOBS),$(WORKERS)) $(if $(FAST),--fast) $(if $(SAMPLE),--sample $(SAMPLE)) --seed $(or $(SEED),1)

docs: $(STAMP) ## build the documentation as a site in site/
	@$(BIN)/python -m docs.generate
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

clean: ## remove everything that the other targets have created here, including .venv
	@rm -rf $(VENV) .lanes .projects dist build site .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse logs target
	@rm -rf sample_project/landing sample_project/warehouse sample_project/target sample_project/logs
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUNS): pyproject.toml .ci/python .ci/constraints.txt
	@.ci/python $(VENV) demo
	@touch $@

$(STAMP): $(RUNS)
	@.ci/python $(VENV) dev
	@touch $@

java: $(RUNS)
	@.ci/java $(VENV)/java-home

$(SHARED): $(STAMP) | java
	@$(WITH_JAVA) $(BIN)/python -m dbt.adapters.silt.session.class_archive
	@touch $@
