"""What the suite asks and measures on a GPU, on a real one.

`make test-gpu` runs these tests, and fails where there is none. Elsewhere they skip, and say what is missing. NVML is
asked in this process. Programs run in one of their own, since a GPU's driver does not outlive a fork, and other tests
fork.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest
from waiting import PATIENCE_S

from rnnbench.devices import KINDS, VARIABLES, Device, NoGpuError, first_gpu

CUDA = KINDS["cuda"]
REQUIRED = "RNNBENCH_TEST_GPU"
WORKING_SETS = [1 << 20, 256 << 20]
_SCRIPT = f"""
import json, os
from rnnbench.devices import KINDS

cuda = KINDS["cuda"]
evict = cuda.make_evictor()
evict()
probe = cuda.measure_roof({WORKING_SETS}, "float32", 1)
roof = probe.measure()
try:
    nbytes = cuda.process_memory(os.getpid())
except Exception as error:
    nbytes = str(error)
probe.close()
print(json.dumps([list(roof.bandwidth.values()), roof.rate, roof.launch, roof.on_chip, roof.caches, nbytes]))
"""


@pytest.fixture(scope="module")
def gpu() -> Device:
    try:
        return first_gpu()
    except NoGpuError as error:
        if os.environ.get(REQUIRED):
            pytest.fail(f"{REQUIRED} is set, and there is no GPU: {error}")
        pytest.skip(f"there is no GPU: {error}")


@pytest.fixture(scope="module")
def measured(gpu: Device) -> list[Any]:
    """Bandwidths, rate, seconds of a launch, bytes on chip, bytes of caches, and the process's bytes on the GPU."""
    environment = {**os.environ, **VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, env=environment, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    result: list[Any] = json.loads(done.stdout)
    return result


def test_a_gpu_is_described(gpu: Device) -> None:
    assert gpu.name
    assert gpu.capability.startswith("sm_")
    assert gpu.memory is not None
    assert gpu.memory > 1 << 30
    assert not gpu.software


def test_a_gpu_tells_its_conditions(gpu: Device) -> None:
    conditions = CUDA.conditions()
    assert conditions.clock is None or 1e8 < conditions.clock < 1e10
    assert conditions.temperature is None or 0 < conditions.temperature < 120


def test_a_gpu_has_a_roof(measured: list[Any]) -> None:
    """Within what GPUs of the last ten years have: a figure outside of that is a fault of the program or its count."""
    (small, large), rate, launch, on_chip, caches, _ = measured
    assert 1e10 < large < 2e13
    assert 1e10 < small < 1e14
    assert 1e11 < rate < 1e15
    assert 1e-6 < launch < 1e-2
    assert 1 << 20 < on_chip < 1 << 30
    assert caches["L2"] > 1 << 18


def test_a_gpu_tells_the_memory_of_a_process_or_why_not(measured: list[Any]) -> None:
    *_, nbytes = measured
    assert nbytes.endswith(".") if isinstance(nbytes, str) else nbytes >= max(WORKING_SETS)


def test_a_gpu_counts_its_energy(gpu: Device) -> None:
    try:
        counter = CUDA.open_energy()
    except RuntimeError as error:
        pytest.skip(str(error))
    first = counter.read()
    time.sleep(counter.block_s)
    assert first < counter.read() < first + 2_000 * counter.block_s
