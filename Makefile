# Everything a checkout needs, from a bare machine: set-up is part of each target and printed as it happens.
#   make demo ARGS="--keep"     make test ARGS="tests/unit -k accountant"     make PYTHON=/usr/bin/python3.11 test
PYTHON ?= /usr/bin/python3
ARGS ?=
NAME ?= accuracy
# One worker per core, each with a private server of its own; ARGS="-n 0" runs everything in one process (for a debugger, say).
WORKERS = -n auto --maxprocesses 4 --dist worksteal
BOOTSTRAP = $(PYTHON) -m dbext.control.bootstrap

.PHONY: help demo test test-bi test-crash test-versions benchmark lint clean

help:
	@echo "make demo   install what is missing, then replay a real year of data and publish private releases of it"
	@echo "make test   install what is missing, then run all tests (ARGS are given to pytest)"
	@echo "make test-crash   kill the server two hundred times at random moments, and hold what is stored against what was acknowledged"
	@echo "make test-versions   try the whole way, from installing to dropping, on each major version of PostgreSQL"
	@echo "make test-bi   read releases as psql, pandas, JDBC, DuckDB, dbt and Superset in a browser do (installs those)"
	@echo "make benchmark NAME=accuracy ARGS=--quick   measure anew what the pages on accuracy and costs say (NAME: a file of benchmarks/)"
	@echo "make lint   check the style of all sources"
	@echo "make clean  remove what the others made outside this folder"

demo:
	@$(BOOTSTRAP) -- -m dbext.control demo $(ARGS)

test:
	@$(BOOTSTRAP) --extra test -- -m pytest $(WORKERS) $(ARGS)

test-bi:
	@$(BOOTSTRAP) --extra test -- -m pytest -n 0 tests/bi $(ARGS)

test-crash:
	@DBEXT_CRASHES=200 $(BOOTSTRAP) --extra test -- -m pytest tests/integration/test_crashes.py $(ARGS)

test-versions:
	@$(BOOTSTRAP) --extra test -- tests/versions.py

benchmark:
	@$(BOOTSTRAP) --extra test -- -m benchmarks.$(NAME) $(ARGS)

lint:
	@$(BOOTSTRAP) --extra test --no-server -- -m ruff check .

clean:
	@$(BOOTSTRAP) --clean
