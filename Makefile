# Two commands do everything on a fresh machine with Python 3.11+: make demo, make test.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUN := fixtures/simulated_resnet18_ddp
OUT := demo-output
TORCH_VENV ?= .venv-torch
TORCH ?= torch==2.13.0
REPEAT ?= 0
SECONDS ?= 600
STATE ?= fuzz-state
MUTANTS ?= mutants-state
CAPTURES ?= 750
COMPARISONS ?= 2000
LOWEST_VENV ?= .venv-lowest
LOWEST_PYTHON ?= python3.11

# Tests start many processes: each would compile the whole package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: docs-site demo test test-slow durations test-captures test-long test-workloads test-launchers test-browser test-mutants test-lowest test-view confusion check-rates new-view hooks fuzz lint docs notebooks screenshot bench clean
.DELETE_ON_ERROR:

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "nsightlens needs Python 3.11 or later: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.core: $(VENV)/.python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable . --config-settings editable_mode=compat
	touch $@

$(VENV)/.test: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --editable '.[test]' --config-settings editable_mode=compat
	@$(BIN)/python -m pip install --quiet --editable '.[dask,mpi,engines]' --config-settings editable_mode=compat || echo "Not all of Dask, MPI and Polars could be installed: tests with them are skipped"
	touch $@

$(VENV)/.mutants: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --editable '.[mutants]' --config-settings editable_mode=compat
	touch $@

$(VENV)/.browser: $(VENV)/.test
	@$(BIN)/python -m pip install --quiet --editable '.[browser]' --config-settings editable_mode=compat || echo "playwright could not be installed: tests in a browser are skipped"
	touch $@

$(VENV)/.docs: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --editable '.[docs]' --config-settings editable_mode=compat
	@$(BIN)/python -m pip install --quiet --editable '.[browser]' --config-settings editable_mode=compat || echo "playwright could not be installed: the gallery has no pictures of the report's tabs"
	touch $@

$(VENV)/.bench: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --editable '.[bench]' --config-settings editable_mode=compat
	touch $@

## Ingest the bundled (simulated) 2-rank run, print its summary, draw its true roofline.
demo: $(VENV)/.core
	@rm -rf $(OUT)
	@mkdir -p $(OUT)
	$(BIN)/nsightlens ingest $(RUN) --store $(OUT)/store
	$(BIN)/nsightlens summary --store $(OUT)/store
	$(BIN)/nsightlens compare ranks --store $(OUT)/store
	$(BIN)/nsightlens roofline --kernel ampere_bf16_s16816gemm --time nsys --store $(OUT)/store --output $(OUT)/roofline.png
	$(BIN)/nsightlens report --store $(OUT)/store --output $(OUT)/report.html
	@echo
	@echo "This run is simulated (fixtures/README.md). The store is $(OUT)/store, the picture $(OUT)/roofline.png."
	@echo "Open $(OUT)/report.html in a browser."
	@echo "Try next:"
	@echo "  $(BIN)/nsightlens views"
	@echo "  $(BIN)/nsightlens show headroom --store $(OUT)/store"
	@echo "  $(BIN)/nsightlens plot step_breakdown --output $(OUT)/steps.png --store $(OUT)/store"
	@echo "  $(BIN)/nsightlens sql 'SELECT tool, rank, family, sum(duration_ns) FROM kernels GROUP BY ALL' --store $(OUT)/store"
	@echo "  $(BIN)/nsightlens ingest YOUR_RUN_DIR"

## Lint, types and the quick tests: what each of the others takes is in CONTRIBUTING.md.
test: lint
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not captures and not long and not slow"

## Tests that take over half a second of CPU each, listed in tests/slow.txt.
test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "slow and not captures and not long"

## Measure the tests of both, and list the slow ones again.
durations: $(VENV)/.test
	$(BIN)/python -m tests.durations

## Every figure against real captures and what other tools print for them; skipped where these are not at hand.
test-captures: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal -m captures

## What is said of CAPTURES simulated captures with known faults: the table in docs/limits.md, and above it what is read wrongly.
confusion: $(VENV)/.test
	$(BIN)/python -m tests.diagnosis.confusion --captures $(CAPTURES)

## How often nsightlens check errs and decides, by COMPARISONS simulated for each figure: the table in docs/ci.md.
check-rates: $(VENV)/.test
	$(BIN)/python -m tests.gate.rates --comparisons $(COMPARISONS) --write

## Tests that take long: clusters, notebooks, random jobs, killed ingests, full disks, upgrades, the suite without the roofline,
## the wheel in an empty venv.
test-long: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "long and not captures"
	$(BIN)/python -m pytest -n auto --dist worksteal tests/long --override-ini testpaths=tests/long

## 100 changes in each room that its tests should see; those that they do not are listed in tests/mutants/survivors.md. Then 200 of
## all rooms: the shares that quick tests and all tests kill go to tests/mutants/shares.md. What is known of them stays in MUTANTS.
test-mutants: $(VENV)/.mutants
	$(BIN)/python -m tests.mutants.shares --state $(MUTANTS)
	$(BIN)/python -m tests.mutants.run

## Tests of the Python wrappers and workloads with a real PyTorch (CPU is enough), in a venv of their own.
test-workloads: $(TORCH_VENV)/.torch
	OMP_NUM_THREADS=1 $(TORCH_VENV)/bin/python -m pytest tests/workloads --override-ini testpaths=tests/workloads

## The wrappers under the real launchers of this machine, with stand-ins for nsys and ncu: docs/capture.md. Installs none of them.
## make test-launchers REPEAT=200 counts the exit codes that signals leave; SHELLS='--shell /opt/bash-4.2/bin/bash' names other shells.
test-launchers: $(VENV)/.test
	PATH="$$PATH:$(CURDIR)/$(TORCH_VENV)/bin" $(BIN)/python -m tests.launchers --repeat $(REPEAT) $(SHELLS)

## The report in a real browser (Debian's chromium, or google-chrome); skipped where there is none.
test-browser: $(VENV)/.browser
	$(BIN)/python -m pytest tests/browser --override-ini testpaths=tests/browser -rs

$(TORCH_VENV)/.torch: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "nsightlens needs Python 3.11 or later: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(TORCH_VENV)
	@$(TORCH_VENV)/bin/python -m pip install --quiet '$(TORCH)' numpy || { echo "No $(TORCH) for this Python and machine: the workloads cannot be tested here. Try make test-workloads TORCH='torch>=2.4'"; exit 1; }
	$(TORCH_VENV)/bin/python -m pip install --quiet --editable . pytest nvtx
	touch $@

## Mutated captures of all formats against independent readers; goes on where it stopped: make fuzz SECONDS=3600 STATE=folder
fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --state $(STATE)

## Lay out a view with its test: make new-view NAME=slow_copies [TOPIC=memory]. It says what to fill in, and how to check it.
new-view: $(VENV)/.test
	$(BIN)/python -m tests.new_view $(NAME) $(TOPIC)

## The tests of one view, and of the pages that show it: make test-view NAME=slow_copies.
test-view: $(VENV)/.test
	$(BIN)/python -m pytest tests/views tests/test_limits.py -k "$(NAME) or test_headers or public_view_has_a_test or test_limits or page_of_views"

## All tests but those of real captures under the lowest versions that pyproject.toml allows, in a venv of their own.
test-lowest: $(LOWEST_VENV)/.lowest
	$(LOWEST_VENV)/bin/python -m pytest -n auto --dist worksteal -m "not captures and not long"

$(LOWEST_VENV)/.lowest: pyproject.toml tests/lower_bounds.py
	@command -v $(LOWEST_PYTHON) >/dev/null || { echo "the lowest versions are for Python 3.11: make test-lowest LOWEST_PYTHON=/path/to/python3.11"; exit 1; }
	$(LOWEST_PYTHON) -m venv $(LOWEST_VENV)
	$(LOWEST_VENV)/bin/python -m tests.lower_bounds > $(LOWEST_VENV)/pins.txt
	$(LOWEST_VENV)/bin/python -m pip install --quiet --editable '.[test]' --constraint $(LOWEST_VENV)/pins.txt --config-settings editable_mode=compat
	touch $@

## Check changed files before each commit (.pre-commit-config.yaml).
hooks: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --editable '.[dev]' --config-settings editable_mode=compat
	$(BIN)/pre-commit install

lint: $(VENV)/.test
	$(BIN)/ruff check .
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/mypy

## Write the generated pages.
docs: $(VENV)/.core
	$(BIN)/python -m nsightlens.views.tables_page > docs/schema.md
	$(BIN)/python -m nsightlens.views.registry > docs/views.md
	$(BIN)/python -m nsightlens.views.stubs > nsightlens/store/view_queries.pyi

## Build the documentation site in site-output/site: docs/, the notebooks, a page per view, a gallery (of the report where chromium is).
## A dead link stops it.
docs-site: $(VENV)/.docs
	$(BIN)/python -m docs.site.build site-output

## Run the notebooks and store what they print.
notebooks: $(VENV)/.test
	$(BIN)/python -m tests.notebooks

## Draw docs/report.png again; needs chromium.
screenshot: $(VENV)/.browser
	$(BIN)/python -m tests.browser.screenshot

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.run

clean:
	rm -rf $(VENV) $(TORCH_VENV) $(LOWEST_VENV) $(OUT) site-output build *.egg-info
