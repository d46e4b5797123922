"""IREE on CUDA, as far as it goes without a GPU: which target is compiled for, and that programs hold PTX for it.

The GPU is what NVML answered on a machine with an H100, recorded. IREE's compiler is the real one.
Only the last test runs programs. It needs a GPU, and says so where there is none.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from device_programs import built_as_the_reference
from quick_tests import for_proof

from rnnbench.backends.base import BuildError, Lack, Request
from rnnbench.backends.iree import IreeBackend, backend, cuda_target, hal_devices, imported_program
from rnnbench.backends.iree.compile import NOT_REUSED, flags_of
from rnnbench.backends.shared import cuda as shared_cuda
from rnnbench.devices import KINDS, Device, NoGpuError

H100 = Device("NVIDIA H100 80GB HBM3", "NVIDIA 580.159.04", "sm_90", 81559 * 2**20)
LISTING = """# ============================================================================
# Enumerated devices for driver 'cuda'
# ============================================================================

# ===----------------------------------------------------------------------===
# --device=cuda://GPU-5f2a
#   NVIDIA H100 80GB HBM3
# ===----------------------------------------------------------------------===
"""
"""In the form in which IREE's driver heads each device; it was not printed by a machine with this GPU."""


@pytest.fixture
def h100(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_cuda, "first_gpu", lambda: H100)


@pytest.mark.parametrize(
    ("capability", "nearest"),
    [
        ("sm_60", "sm_60"),
        ("sm_62", "sm_61"),
        ("sm_75", "sm_75"),
        ("sm_86", "sm_86"),
        ("sm_90", "sm_89"),
        ("sm_100", "sm_89"),
        ("sm_120", "sm_89"),
    ],
)
def test_the_target_is_the_nearest_that_is_not_above_the_gpu(capability: str, nearest: str) -> None:
    assert cuda_target.nearest_target(capability) == nearest


def test_a_gpu_below_all_targets_is_refused() -> None:
    with pytest.raises(BuildError, match="no target for sm_52: its first is sm_60"):
        cuda_target.nearest_target("sm_52")


def test_a_build_without_a_gpu_says_so(monkeypatch: pytest.MonkeyPatch, request_of: Any, tmp_path: Path) -> None:
    def none() -> Device:
        raise NoGpuError("NVIDIA's driver lists no GPU 0")

    monkeypatch.setattr(shared_cuda, "first_gpu", none)
    with pytest.raises(BuildError, match="no GPU to compile for: NVIDIA's driver lists no GPU 0"):
        IreeBackend().build(replace(request_of(), device="cuda"), tmp_path)


@pytest.mark.usefixtures("h100")
def test_flags_name_the_target_and_the_route(request_of: Any) -> None:
    on_cuda = replace(request_of(), device="cuda")
    assert "--iree-cuda-target=sm_89" in flags_of(on_cuda)
    assert not any("llvmcpu" in flag for flag in flags_of(on_cuda))
    assert set(flags_of(replace(on_cuda, route="linalg-direct"))) - set(flags_of(on_cuda)) == {NOT_REUSED}


def test_gpus_are_numbered_as_nvml_numbers_them(request_of: Any) -> None:
    support = IreeBackend().support(replace(request_of(), device="cuda"))
    assert support.level == "native"
    assert support.environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


@pytest.mark.parametrize("route", ["stablehlo", "tensorflow"])
def test_a_framework_that_writes_a_module_gets_no_gpu(request_of: Any, route: str) -> None:
    """The worker's own programs need the GPU, so it is hidden from none but a framework in a process of its own."""
    environment = IreeBackend().support(replace(request_of(), route=route, device="cuda")).environment
    assert "CUDA_VISIBLE_DEVICES" not in environment
    assert environment.get("JAX_PLATFORMS") == ("cpu" if route == "stablehlo" else None)


def answered(monkeypatch: pytest.MonkeyPatch, stdout: str, stderr: str) -> Device | Lack:
    """The device of the probe, where NVML tells of a GPU and IREE's driver says this."""
    done = SimpleNamespace(stdout=stdout, stderr=stderr)
    monkeypatch.setattr(hal_devices, "with_cuda", lambda _: {"cuda": H100})
    monkeypatch.setattr(hal_devices, "runtime_tool", lambda name: Path(name))
    monkeypatch.setattr(hal_devices, "subprocess", SimpleNamespace(run=lambda *_args, **_more: done))
    monkeypatch.setattr(hal_devices, "_device", hal_devices._device.__wrapped__)
    return hal_devices.devices()["cuda"]


def test_the_gpu_is_the_one_that_nvml_describes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answered(monkeypatch, LISTING, "") == H100


def test_a_driver_that_iree_cannot_use_is_a_lack_with_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is IREE's, on a machine without NVIDIA's driver."""
    said = "cuda_dynamic_symbols.c:66: UNAVAILABLE; CUDA driver library 'libcuda.so'/'nvcuda.dll' not available"
    missing = answered(monkeypatch, LISTING.partition("# ===-")[0], said)
    assert isinstance(missing, Lack)
    assert "libcuda.so" in missing.reason
    assert missing.install == KINDS["cuda"].install


class Unloaded:
    """A program that is built and not loaded, which takes a GPU."""

    def __init__(self, request: Request, artifact: Any, path: Path, *_more: object) -> None:
        self.request, self.artifact, self.path = request, artifact, path


def built(monkeypatch: pytest.MonkeyPatch, request: Request, folder: Path) -> tuple[Unloaded, str]:
    """Through the adapter's own build: the program, and the PTX in its file."""
    monkeypatch.setattr(backend, "IreeProgram", Unloaded)
    monkeypatch.setattr(imported_program, "ImportedProgram", Unloaded)
    program: Any = IreeBackend().build(request, folder)
    return program, program.path.read_bytes().decode("latin-1")


@pytest.mark.usefixtures("h100")
@pytest.mark.parametrize(
    ("cell", "time", "lowered"), [("lstm", "looped", "looped 1"), *for_proof(("gru", "unrolled", "unrolled 4"))]
)
def test_programs_hold_ptx_for_the_target(
    monkeypatch: pytest.MonkeyPatch, request_of: Any, folder: Path, cell: str, time: str, lowered: str
) -> None:
    request = replace(request_of(time=time, cell=cell), device="cuda")
    program, ptx = built(monkeypatch, request, folder)
    assert ".target sm_89" in ptx
    assert re.search(r"\.entry \w*step\w*", ptx)
    assert program.artifact.lowered == lowered
    assert any("PTX for sm_89" in note and "sm_90" in note for note in program.artifact.notes)


@pytest.mark.proof
@pytest.mark.usefixtures("h100")
def test_products_of_full_tiles_are_computed_in_float32(
    monkeypatch: pytest.MonkeyPatch, request_of: Any, folder: Path
) -> None:
    """A product in TF32 is an `mma.sync` or `wmma` instruction. Here each is a fused multiply-add."""
    request = replace(request_of(batch=64, input=64, hidden=64), device="cuda")
    _, ptx = built(monkeypatch, request, folder)
    assert "fma.rn.f32" in ptx
    assert not re.search(r"\b(wgmma|wmma|mma)\.\w|tf32", ptx)


@pytest.mark.proof
@pytest.mark.usefixtures("h100")
@pytest.mark.parametrize(
    ("route", "time"), [("onnx", "looped"), *for_proof(("stablehlo", "looped"), ("torch", "fused"))]
)
def test_imported_modules_hold_ptx_for_the_target(
    monkeypatch: pytest.MonkeyPatch, request_of: Any, folder: Path, route: str, time: str
) -> None:
    """Of modules that test_imported.py imports for the processor: the importer knows no device."""
    if lack := IreeBackend().probe().lack(route):
        pytest.skip(f"{lack.reason}; {lack.install}")
    request = replace(request_of(time=time, cell="rnn", input=4, hidden=6, chunk=3), route=route, device="cuda")
    program, ptx = built(monkeypatch, request, folder)
    assert ".target sm_89" in ptx
    assert program.artifact.origin == "imported"


@pytest.mark.proof
def test_each_target_is_another_program_with_ptx_that_the_gpu_s_driver_compiles_on(
    monkeypatch: pytest.MonkeyPatch, request_of: Any, folder: Path
) -> None:
    """PTX of a target without a letter behind it, which runs on all later GPUs (PTX ISA, `.target`)."""
    paths = set()
    for capability, nearest in (("sm_75", "sm_75"), ("sm_90", "sm_89")):
        gpu = replace(H100, capability=capability)
        monkeypatch.setattr(shared_cuda, "first_gpu", lambda gpu=gpu: gpu)
        program, ptx = built(monkeypatch, replace(request_of(), device="cuda"), folder)
        assert set(re.findall(r"\.target (\w+)", ptx)) == {nearest}
        paths.add(program.path)
    assert len(paths) == 2


@pytest.mark.parametrize("route", ["linalg", "linalg-direct", "stablehlo"])
@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_a_gpu_gives_what_the_reference_says(request_of: Any, tmp_path: Path, route: str, state: str) -> None:
    request = replace(request_of(state=state), route=route, device="cuda")
    assert built_as_the_reference(IreeBackend(), request, tmp_path).lowered == "looped 1"
