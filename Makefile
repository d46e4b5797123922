# Each of `run` and `test` makes the environment it needs; neither uses the other's, since a framework that is merely
# installed changes what others import, and so what is measured.
PYTHON ?= python3
RUN := .venv
NIGHT := .venv-night
TEST := .venv-test
# Each in a process of its own, as in a run: some frameworks abort where another one is loaded. The slowest come first.
BACKENDS := tensorflow torch iree tvm litert jax openvino iree-importers onnxruntime iree-torch numpy
PIP := -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Where it is set, every process compiles the suite anew, and pytest rewrites its plugins: two seconds of each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test lint bench site night clean

run: $(RUN)/.ready
	$(RUN)/bin/rnnbench run cases/lstm_streaming.yaml --backend=iree,tvm

test: lint
	$(TEST)/bin/python -m pytest --ignore=tests/backends -n 2 --dist loadfile
	printf '%s\n' $(BACKENDS) | xargs -P 2 -I{} env RNNBENCH_TEST_BACKEND={} $(TEST)/bin/python -m pytest -q tests/backends

lint: $(TEST)/.ready
	$(TEST)/bin/ruff check suite tests docs/hosts docs/questions
	$(TEST)/bin/ruff format --check suite tests docs/hosts docs/questions
	$(TEST)/bin/mypy
	$(TEST)/bin/lint-imports --no-logo
	$(TEST)/bin/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(TEST)/bin/zizmor --offline --quiet .github/workflows

bench: $(TEST)/.ready
	$(TEST)/bin/python -m pytest tests/benchmarks -s -p no:cacheprovider

# The newest releases of some backends, beside the last good ones. Give NIGHT_CASES and NIGHT_BACKENDS for others.
NIGHT_CASES ?= cases/backfill_gru_step.yaml
NIGHT_BACKENDS ?= onnxruntime,openvino,jax
night: $(NIGHT)/.ready
	$(NIGHT)/bin/rnnbench night $(NIGHT_CASES) --backend=$(NIGHT_BACKENDS) --check cases/conformance

# The committed site, from committed results alone.
site: $(TEST)/.ready
	$(TEST)/bin/rnnbench site scaling realtime --history results/releases -o reports/site

$(RUN)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(RUN)
	$(RUN)/bin/python $(PIP) -e '.[iree,tvm,floor,report]'
	touch $@

$(NIGHT)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(NIGHT)
	$(NIGHT)/bin/python $(PIP) -e '.[all]'
	touch $@

$(TEST)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(TEST)
	$(TEST)/bin/python $(PIP) -e '.[all,test]'
	touch $@

clean:
	rm -rf $(RUN) $(TEST) $(NIGHT)
