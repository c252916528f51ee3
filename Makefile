# `make demo` and `make test` need nothing but Python 3.11 or newer, git and make; the environment is .venv.
PYTHON ?= python3
BIN := .venv/bin
# One BLAS thread a process: the tests run on every core already, and results do not depend on the machine.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test test-all coverage-tests mutants test-minimum test-newest lint bench accuracy cost two-batch-cost coverage noise plan certificate curve studies readings gallery gauntlet gauntlet-report gauntlet-truths ablation peers docs clean

demo: .venv/installed
	$(ONE_THREAD) $(BIN)/zhat demo

# All that is worth running at every change. The long statistical tests are for changes of what they are about.
test: .venv/installed
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

test-all: .venv/installed
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist worksteal

# Branches of the package that `make test` takes; not to be mixed up with `make coverage`, which is about intervals.
coverage-tests: .venv/installed
	mkdir -p build/coverage
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow" --cov --cov-report=term

# Some hundred changes of the package's code, each of which a test should notice; this takes an hour.
mutants: .venv/installed
	$(ONE_THREAD) $(BIN)/python scripts/mutants.py

# With the oldest releases that pyproject.toml allows. That these are deprecated by newer ones of what they stand on is
# no fault of ours.
test-minimum: build/minimum/installed
	$(ONE_THREAD) build/minimum/bin/python -m pytest -n auto --dist worksteal -W ignore::DeprecationWarning tests/unit

build/minimum/installed: pyproject.toml scripts/minimum.py
	$(PYTHON) -m venv --clear build/minimum
	$(PYTHON) scripts/minimum.py > build/minimum/constraints.txt
	build/minimum/bin/python -m pip install --quiet --disable-pip-version-check \
	    --constraint build/minimum/constraints.txt --editable '.[dev]'
	touch $@

# With the newest releases of today, in an environment that is made anew each time.
test-newest:
	rm -rf build/newest
	scripts/environment $(PYTHON) build/newest
	$(ONE_THREAD) build/newest/bin/python -m pytest -n auto --dist worksteal tests/unit

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/installed
	$(ONE_THREAD) $(BIN)/python benchmarks/speed.py

accuracy: .venv/installed
	$(ONE_THREAD) $(BIN)/python benchmarks/accuracy.py

cost: .venv/installed
	$(ONE_THREAD) $(BIN)/python benchmarks/auto_cost.py

two-batch-cost: .venv/installed
	$(ONE_THREAD) $(BIN)/python benchmarks/two_batch_cost.py

coverage: .venv/installed
	$(ONE_THREAD) $(BIN)/python benchmarks/coverage.py

noise: .venv/installed
	$(ONE_THREAD) $(BIN)/python benchmarks/noise.py

plan: .venv/installed
	$(ONE_THREAD) $(BIN)/python benchmarks/plan.py

certificate: .venv/installed
	$(ONE_THREAD) $(BIN)/python benchmarks/certificate.py

curve: .venv/installed
	$(ONE_THREAD) $(BIN)/python benchmarks/curve.py

studies: .venv/installed
	$(ONE_THREAD) $(BIN)/python benchmarks/studies.py

readings: .venv/installed
	$(ONE_THREAD) $(BIN)/python benchmarks/readings.py

gallery: .venv/installed
	$(ONE_THREAD) $(BIN)/python benchmarks/gallery.py

# Problems that are drawn anew; this seed is for development, and nothing of it is published.
gauntlet: .venv/installed
	$(BIN)/python -m benchmarks.gauntlet --seed 7 --problems 200 --budget 50

# What may be published: the seed is that of the commit. An hour for the smaller budget, several for the larger one.
gauntlet-report: .venv/installed
	$(BIN)/python -m benchmarks.gauntlet --report --problems 200 --budget 50 --budget 200

gauntlet-truths: .venv/installed build/peers/installed
	$(BIN)/python -m benchmarks.gauntlet.check_truths

# What each rule of auto is for, without it and with twice of it: many hours, which may be interrupted.
ablation: .venv/installed
	$(BIN)/python -m benchmarks.gauntlet.ablation --seed 12 --problems 100 --budget 50

# An environment with the packages that the gauntlet compares with, at releases that go together.
peers: build/peers/installed

build/peers/installed: pyproject.toml benchmarks/gauntlet/peers-requirements.txt
	$(PYTHON) -m venv --clear build/peers
	build/peers/bin/python -m pip install --quiet --disable-pip-version-check \
	    --requirement benchmarks/gauntlet/peers-requirements.txt --editable .
	touch $@

docs: .venv/installed
	$(BIN)/python scripts/docs_gallery.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo build/site/index.html

.venv/installed: pyproject.toml scripts/environment
	scripts/environment $(PYTHON)
	touch $@

clean:
	rm -rf .venv build dist zhat-demo.png
	find . -name __pycache__ -prune -exec rm -rf {} +
