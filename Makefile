# Two commands do everything on a fresh machine with Python 3.11+: make demo, make test.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUN := fixtures/simulated_resnet18_ddp
OUT := demo-output
TORCH_VENV ?= .venv-torch
TORCH ?= torch==2.13.0

.PHONY: demo test test-captures test-long test-workloads lint docs notebooks bench clean
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
	@echo
	@echo "This run is simulated (fixtures/README.md). The store is $(OUT)/store, the picture $(OUT)/roofline.png."
	@echo "Try next:"
	@echo "  $(BIN)/nsightlens views"
	@echo "  $(BIN)/nsightlens show headroom --store $(OUT)/store"
	@echo "  $(BIN)/nsightlens plot step_breakdown --output $(OUT)/steps.png --store $(OUT)/store"
	@echo "  $(BIN)/nsightlens sql 'SELECT tool, rank, family, sum(duration_ns) FROM kernels GROUP BY ALL' --store $(OUT)/store"
	@echo "  $(BIN)/nsightlens ingest YOUR_RUN_DIR"

## Lint, types and all tests but those of the targets below.
test: lint
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not captures"

## Every figure against real captures and what other tools print for them; skipped where these are not at hand.
test-captures: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist loadfile -m captures

## Tests that take minutes: 200 killed ingests.
test-long: $(VENV)/.test
	$(BIN)/python -m pytest tests/long --override-ini testpaths=tests/long

## Tests of the Python wrappers and workloads with a real PyTorch (CPU is enough), in a venv of their own.
test-workloads: $(TORCH_VENV)/.torch
	OMP_NUM_THREADS=1 $(TORCH_VENV)/bin/python -m pytest tests/workloads --override-ini testpaths=tests/workloads

$(TORCH_VENV)/.torch: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "nsightlens needs Python 3.11 or later: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(TORCH_VENV)
	@$(TORCH_VENV)/bin/python -m pip install --quiet '$(TORCH)' numpy || { echo "No $(TORCH) for this Python and machine: the workloads cannot be tested here. Try make test-workloads TORCH='torch>=2.4'"; exit 1; }
	$(TORCH_VENV)/bin/python -m pip install --quiet --editable . pytest nvtx
	touch $@

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/mypy

## Write the generated pages.
docs: $(VENV)/.core
	$(BIN)/python -m nsightlens.schema > docs/schema.md
	$(BIN)/python -m nsightlens.views > docs/views.md

## Run the notebooks and store what they print.
notebooks: $(VENV)/.test
	$(BIN)/python -m tests.notebooks

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.run

clean:
	rm -rf $(VENV) $(TORCH_VENV) $(OUT) build *.egg-info
