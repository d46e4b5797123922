"""IREE on Vulkan: which device is here, what a program of the default route gets wrong, and what is right.

The last part needs a Vulkan device. On Debian: apt-get install libvulkan1 mesa-vulkan-drivers
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_programs import built_as_the_reference
from quick_tests import for_proof
from waiting import PATIENCE_S

from rnnbench.backends.base import Lack, Probe
from rnnbench.backends.iree import IreeBackend, hal_devices, imported
from rnnbench.backends.iree.compile import NOT_REUSED, flags_of
from rnnbench.devices import KINDS, Device
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.weights import draw_inputs, draw_state

UPSTREAM = Path(__file__).parents[3] / "docs" / "upstream"
DRIVERS = 3
"""How often a program is run at most where the driver loses its device."""
LISTING = """# ============================================================================
# Enumerated devices for driver 'vulkan'
# ============================================================================

# ===----------------------------------------------------------------------===
# --device=vulkan://GPU-1
#   A GPU (driver 1.2)
# ===----------------------------------------------------------------------===
name: A GPU
api: 1.3.230
type: discrete
driver: maker
driver_info: 1.2
memory_heaps: 2
  [0] size=8589934592 flags=0x00000001
  [1] size=34359738368 flags=0x00000000
# ===----------------------------------------------------------------------===
# --device=vulkan://GPU-2
# ===----------------------------------------------------------------------===
name: llvmpipe
type: cpu
"""


def test_the_first_device_of_a_listing_is_described() -> None:
    expected = Device("A GPU", "maker 1.2", "Vulkan 1.3.230", 8 << 30, software=False)
    assert hal_devices.described(LISTING) == expected


def test_a_device_that_the_processor_plays_is_a_software_device() -> None:
    device = hal_devices.described(LISTING.replace("type: discrete", "type: cpu"))
    assert device is not None
    assert device.software


def test_a_listing_without_a_device_describes_none() -> None:
    assert hal_devices.described(LISTING.partition("# --device")[0]) is None


@pytest.mark.parametrize("is_there", [True, False])
def test_a_tool_that_cannot_be_run_is_to_be_installed_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_there: bool
) -> None:
    """Its file has no executable bit, or is not there. No driver is at fault."""
    tool = tmp_path / "iree-run-module"
    if is_there:
        tool.write_text("#!/bin/sh\n")
    monkeypatch.setattr(hal_devices, "runtime_tool", lambda _: tool)
    lack = hal_devices._device.__wrapped__("cuda", "cuda")
    assert isinstance(lack, Lack)
    assert str(tool) in lack.reason
    assert lack.install == "pip install --force-reinstall --no-deps iree-base-runtime"


def test_a_driver_that_does_not_answer_has_no_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "iree-run-module"
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    tool.chmod(0o755)
    monkeypatch.setattr(hal_devices, "runtime_tool", lambda _: tool)
    monkeypatch.setattr(hal_devices, "ANSWER_S", 0.1)
    lack = hal_devices._device.__wrapped__("cuda", "cuda")
    assert lack == Lack("IREE's cuda driver did not list its devices within 0.1 s", "")


def test_a_driver_that_finds_none_says_why_and_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("iree.runtime")
    monkeypatch.setenv("VK_DRIVER_FILES", "/nowhere.json")
    missing = hal_devices._device.__wrapped__("vulkan", "vulkan")
    assert isinstance(missing, Lack)
    assert "finds no device" in missing.reason
    assert missing.install == KINDS["vulkan"].install


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"device": "vulkan", "threads": 2}, "one thread"),
        ({"device": "cpu", "route": "linalg-direct"}, "right on the processor"),
    ],
)
def test_what_a_device_cannot_do_has_a_reason(request_of: Any, change: dict[str, Any], reason: str) -> None:
    support = IreeBackend().support(replace(request_of(), **change))
    assert support.level == "unsupported"
    assert reason in support.reason


def test_flags_are_those_of_the_device_and_route(request_of: Any) -> None:
    on_vulkan = replace(request_of(), device="vulkan")
    assert not any("llvmcpu" in flag for flag in flags_of(on_vulkan))
    assert set(flags_of(replace(on_vulkan, route="linalg-direct"))) - set(flags_of(on_vulkan)) == {NOT_REUSED}


@pytest.fixture
def vulkan(monkeypatch: pytest.MonkeyPatch) -> Device:
    """The device. A machine need not have one, and pip installs none (`.ci/run` does): there the test says what is
    missing, and skips."""
    probe: Probe = IreeBackend().probe()
    if lack := probe.lack("linalg") or probe.device_lack("vulkan"):
        pytest.skip(f"{lack.reason}; {lack.install}")
    monkeypatch.setenv("LP_NUM_THREADS", "1")
    device = probe.device("vulkan")
    assert device is not None
    return device


def reproduce(*flags: str, runtime: str = "") -> int:
    """The exit status of the program of the report: 1 where a call is wrong.

    On a busy machine Mesa's driver has lost its device once, in some hundred runs. The program is
    then run again.
    """
    for _ in range(DRIVERS):
        done = subprocess.run(
            [sys.executable, str(UPSTREAM / "iree-vulkan-replay.py"), *flags],
            env={**os.environ, "IREE_PY_RUNTIME_FLAGS": runtime},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        if "VK_ERROR_DEVICE_LOST" not in done.stderr:
            break
    assert "largest error of each call:" in done.stdout, done.stderr
    return done.returncode


@pytest.mark.proof
def test_the_program_of_the_report_is_wrong_as_reported(vulkan: Device) -> None:
    """Where this fails the fault is mended: remove the report, the entries in expectations.yaml, and this test."""
    assert vulkan.name
    assert reproduce() == 1
    assert reproduce(NOT_REUSED) == 0
    assert reproduce(runtime="--vulkan_cached_bda_replay_instances=0") == 0


@pytest.mark.proof
def test_the_runtime_s_count_has_the_weights_and_not_what_an_empty_device_has(
    vulkan: Device, request_of: Any, folder: Path
) -> None:
    assert vulkan.name
    request = replace(request_of(hidden=256), route="linalg-direct", device="vulkan")
    weights = request.weights.nbytes
    counted = built_as_the_reference(IreeBackend(), request, folder).allocated
    assert counted is not None
    assert weights <= counted.now < 2 * weights


@pytest.mark.parametrize(
    ("route", "model"),
    [
        ("linalg", {"cell": "rnn"}),
        *for_proof(
            ("onnx", {"time": "fused"}),
            ("stablehlo", {"cell": "rnn", "state": "stateful"}),
            ("tensorflow", {"cell": "rnn", "time": "unrolled", "state": "stateful"}),
        ),
    ],
)
def test_programs_are_right(
    monkeypatch: pytest.MonkeyPatch, vulkan: Device, request_of: Any, folder: Path, route: str, model: dict[str, Any]
) -> None:
    """Bound calls in turn with public ones: the state stays on the device, and results come back through staging.

    On the default route, one array is carried. TensorFlow is in the driver's process only if the adapter fails to part
    them, and the process then dies of SIGSEGV. JAX is parted here, since it has threads and other tests fork.
    """
    assert vulkan.name
    if lack := IreeBackend().probe().lack(route):
        pytest.skip(f"{lack.reason}; {lack.install}")
    if route == "stablehlo":
        monkeypatch.setattr(imported, "is_apart", lambda _: True)
    request = replace(request_of(**model), route=route, device="vulkan")
    for name, value in IreeBackend().support(request).environment.items():
        monkeypatch.setenv(name, value)
    with_program = IreeBackend().build(request, folder)
    x, start = draw_inputs(request.model, 16, 1, 2), draw_state(request.model, 1, 3)
    session = with_program.open()
    session.set_state(start)
    bound = session.bind([{"x": x[4 * call : 4 * call + 4]} for call in (0, 2)])
    found = []
    for call in range(4):
        if call % 2:
            found.append(session.step({"x": x[4 * call : 4 * call + 4]})["y"])
        else:
            bound()
            bound.sync()
            found.append(bound.output()["y"])
    expected = run_reference(request.model, request.weights, x, start)
    np.testing.assert_allclose(np.concatenate(found), expected.y, atol=2e-5)
    np.testing.assert_allclose(session.get_state()["h"], expected.final["h"], atol=2e-5)
    session.close()
    with_program.close()
