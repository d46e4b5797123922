# Each of `run` and `test` makes the environment it needs; neither uses the other's, since a framework that is merely
# installed changes what others import, and so what is measured.
PYTHON ?= python3
RUN := .venv
NIGHT := .venv-night
TEST := .venv-test
# The jobs of `make test`, the longest first, so that none is left alone at the end. Five run side by side, more
# than two cores have room for: many tests wait, for a limit or for another process. Give AT_ONCE for more cores.
# Backends have processes of their own, as in a run: some frameworks abort where another one is loaded. Those with a
# comma between them share one, and so do rooms: each start of a process and each import of a framework takes seconds of
# the processor.
LONG := room-history,night,reports others room-pipeline room-cli backend-tensorflow,litert room-rnn,model_files backend-torch
LONG += backend-tvm backend-iree room-worker room-conformance room-site room-sampling backend-onnxruntime,openvino,numpy room-fleet
ROOMS := pipeline cli conformance fleet sampling worker site history,night,reports rnn,model_files
BACKENDS := tvm torch tensorflow,litert iree iree-vulkan jax onnxruntime,openvino,numpy iree-torch iree-tensorflow
comma := ,
OTHER_ROOMS := $(filter-out $(subst $(comma), ,$(ROOMS)) backends benchmarks fake __pycache__,$(patsubst tests/%/,%,$(wildcard tests/*/)))
JOBS := lint $(LONG) $(filter-out $(LONG),$(ROOMS:%=room-%) $(BACKENDS:%=backend-%))
AT_ONCE ?= 5
AT_MOST ?= 2400
# A test that waits for ten minutes shows where each thread stands, and ends its job: the next jobs still have their time.
PYTEST := $(TEST)/bin/python -m pytest -q -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true
LOGS := $(JOBS:%=$(TEST)/%.log)
PIP := -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Where it is set, every process compiles the suite anew, and pytest rewrites its plugins: two seconds of each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-all test-gpu lint others bench site night clean

run: $(RUN)/.ready
	$(RUN)/bin/rnnbench run cases/lstm_streaming.yaml --backend=iree,tvm

# What a job prints is shown when it has ended, and the last line of each once more at the end. Where lint fails, no
# further job begins. A job of more than AT_MOST seconds is ended, and its log is shown like the others'.
test: $(TEST)/.ready
	@rm -f $(LOGS)
	@printf '%s\n' $(JOBS) | xargs -P $(AT_ONCE) --process-slot-var=RNNBENCH_TEST_SLOT -I{} sh -c '\
	  echo "== {}" > $(TEST)/{}.log; \
	  timeout --foreground --kill-after=30 $(AT_MOST) $(MAKE) --no-print-directory {} >> $(TEST)/{}.log 2>&1; status=$$?; \
	  if [ $$status = 124 ]; then echo "error: {} was ended after $(AT_MOST) s" >> $(TEST)/{}.log; fi; \
	  cat $(TEST)/{}.log; if [ {} = lint ] && [ $$status != 0 ]; then exit 255; fi; exit $$status'; \
	status=$$?; for log in $(LOGS); do printf '%s: ' "$$(basename $$log .log)"; \
	  grep -hE '[0-9]+ (passed|failed)|[Ee]rror' $$log | tail -n 1 | grep . || echo 'no errors'; done; exit $$status

# Also the tests that `make test` leaves out, since quicker ones show their class (tests/fake/quick_tests.py).
test-all: export RNNBENCH_TEST_ALL = 1
test-all: test

# With as many threads, and processes of Inductor's, as a worker has: those of idle pools take the cores of other jobs.
# Each process that uses Inductor would compile a program, and load it in another one, to see whether the C++ compiler
# knows the processor's vectors.
WORKER := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 TORCHINDUCTOR_COMPILE_THREADS=1 TORCHINDUCTOR_VEC_ISA_OK=1
# Very rarely a Vulkan device is lost, and with it its process (docs/devices.md): 75 says so, and the job runs once more.
backend-%: export RNNBENCH_TEST_BACKEND = $*
backend-%: $(TEST)/.ready
	$(WORKER) $(PYTEST) tests/backends || { test $$? = 75 && echo "the Vulkan device was lost: once more" && \
	  $(WORKER) $(PYTEST) tests/backends; }

room-%: $(TEST)/.ready
	$(PYTEST) $(addprefix tests/,$(subst $(comma), ,$*))

others: $(TEST)/.ready
	$(PYTEST) $(OTHER_ROOMS:%=tests/%) tests/test_*.py

# The tests that need an NVIDIA GPU, and all checks of a small case on it. Frameworks for CUDA are other packages than those
# of `make test`, and do not all fit into one environment: PYTHON is an interpreter that has them (docs/devices.md).
GPU := .venv-gpu
GPU_BACKENDS ?= torch jax tensorflow onnxruntime iree tvm
GPU_CASES ?= cases/smoke.yaml
test-gpu: $(GPU)/.ready
	RNNBENCH_TEST_GPU=1 $(GPU)/bin/python -m pytest -q -rs tests/devices
	for backend in $(GPU_BACKENDS); do \
	  RNNBENCH_TEST_BACKEND=$$backend $(GPU)/bin/python -m pytest -q -rs tests/backends/$$backend/test_cuda*.py -k test_a_gpu_gives; status=$$?; \
	  if [ $$status = 5 ]; then echo "$$backend has no test here: its packages are not installed"; \
	  elif [ $$status != 0 ]; then failed="$$failed $$backend"; fi; \
	done; \
	if [ -n "$$failed" ]; then echo "error: wrong on this GPU:$$failed"; exit 1; fi
	$(GPU)/bin/rnnbench check $(GPU_CASES) --set target.device=cuda --set 'strategy.launch=[stream,graph]' --set limits.memory=16GiB

lint: $(TEST)/.ready
	$(TEST)/bin/ruff check
	$(TEST)/bin/ruff format --check
	$(TEST)/bin/mypy
	$(TEST)/bin/lint-imports --no-logo
	$(TEST)/bin/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(TEST)/bin/zizmor --offline --quiet .github/workflows

# The proofs, in this order: what no machine changes, what is timed, what installs packages, and what takes hours. Each has
# a process of its own, since some frameworks abort where another one is loaded, and ends after PROOF_AT_MOST seconds.
# `make bench-verdicts` is one of them: tests/benchmarks/test_verdicts.py, or one in tests/benchmarks/questions.
PROOFS := rounding_law history_branch verdict_rules change_points verdicts large site suite sampled
PROOFS += x_plus_3_to_memref counter_and_stateful_lstm init_and_step_in_my_own_host one_sample_or_several
PROOFS += stateful_or_stitched unroll_loop_or_recursion useless_loop tensorflow_lstm_to_iree when_a_compile_pays_off
PROOFS += sizes_people_know tvm_floor overheads fidelity fleet
PROOFS += upstream anchors night releases ab_versions
PROOFS += cluster kills soak fuzz interruptions ways_of_dying_everywhere
PROOF_AT_MOST ?= 28800
proof = $(or $(wildcard tests/benchmarks/test_$(1).py tests/benchmarks/questions/test_$(1).py),$(error no proof is called $(1)))

bench: $(TEST)/.ready
	@for proof in $(PROOFS); do echo "== $$proof"; $(MAKE) --no-print-directory bench-$$proof || failed="$$failed $$proof"; done; \
	if [ -n "$$failed" ]; then echo "error: these proofs failed:$$failed"; exit 1; fi

bench-%: $(TEST)/.ready
	timeout --foreground --kill-after=30 $(PROOF_AT_MOST) \
	  $(TEST)/bin/python -m pytest -s -p no:cacheprovider $(call proof,$*)

# The newest releases of some backends, beside the last good ones, and what they have mended of the faults that were found
# (docs/upstream). Give NIGHT_CASES and NIGHT_BACKENDS for others.
NIGHT_CASES ?= cases/backfill_gru_step.yaml
NIGHT_BACKENDS ?= onnxruntime,openvino,jax
night: $(NIGHT)/.ready
	$(NIGHT)/bin/rnnbench night $(NIGHT_CASES) --backend=$(NIGHT_BACKENDS) --check cases/conformance; status=$$?; \
	  $(NIGHT)/bin/rnnbench repro --all --versions=newest || true; exit $$status

# The committed site, from committed results alone, and its picture in the README (apt install chromium).
site: $(TEST)/.ready
	$(TEST)/bin/rnnbench site reference --history results/releases -o reports/site
	PYTHONPATH=tests/fake $(TEST)/bin/python tests/site/picture.py

$(RUN)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(RUN)
	$(RUN)/bin/python $(PIP) -e '.[iree,tvm,floor,report]'
	touch $@

$(NIGHT)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(NIGHT)
	$(NIGHT)/bin/python $(PIP) -e '.[all]'
	touch $@

# It sees the packages of PYTHON, in an environment or not, and keeps their versions.
$(GPU)/.ready: pyproject.toml
	$(PYTHON) -m venv --system-site-packages $(GPU)
	$(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > $$(ls -d $(GPU)/lib/python3*/site-packages)/packages_of_python.pth
	$(GPU)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[cuda,floor,report,site]' 'hypothesis>=6.120' 'pytest>=9'
	touch $@

# Every core compiles what was installed, before the first job, without packages of which the tests import little or nothing
# and the packages' own tests: what is imported of these is compiled then. pytest compiles its plugins itself.
UNCOMPILED := .*/tests?|ray|torch_mlir|iree|numba|torch/(testing|_vendor)|mypyc?|fontTools|pygments|playwright
UNCOMPILED := $(UNCOMPILED)|sympy/(physics|parsing|stats)|jax/(experimental|_src/(pallas|internal_test_util|scipy))
UNCOMPILED := $(UNCOMPILED)|scipy/(signal|io)|numpy/distutils|hypothesis|setuptools|virtualenv|fsspec|torchgen|keras/_tf_keras
UNCOMPILED := $(UNCOMPILED)|torch/(ao|onnx|distributed/(checkpoint|elastic|tensor))|onnxruntime/(tools|transformers)|tvm/topi/testing
$(TEST)/.ready: pyproject.toml constraints.txt .ci/install.py
	$(PYTHON) -m venv $(TEST)
	$(TEST)/bin/python .ci/install.py -c constraints.txt -e '.[all,test]'
	$(TEST)/bin/python -m compileall -qq -j 0 -x 'site-packages/($(UNCOMPILED))/' suite $(TEST)/lib || true
	touch $@

clean:
	rm -rf $(RUN) $(TEST) $(NIGHT) $(GPU)
