"""TVM on CUDA, as far as it goes without a GPU: CUDA source, PTX where NVRTC is installed, and what a probe says.

The GPU is what NVML answered on a machine with an H100, recorded. Nothing is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from device_programs import built_as_the_reference
from quick_tests import for_proof

from rnnbench.backends.base import BuildError, Lack, Request
from rnnbench.backends.explanation import IrStage
from rnnbench.backends.shared import cuda as shared_cuda
from rnnbench.backends.tvm import TvmBackend, cuda_libraries, nvrtc
from rnnbench.devices import Device, NoGpuError
from rnnbench.rnn.spec import Model

H100 = Device("NVIDIA H100 80GB HBM3", "NVIDIA 580.159.04", "sm_90", 81559 * 2**20)
WIDE = Model(cell="lstm", input=64, hidden=64)
TWO_GRUS = Model(cell="gru", input=64, hidden=64, layers=2)
LSTM_512 = Model(cell="lstm", input=64, hidden=512)
PROJECTED_512 = Model(cell="lstm", input=64, hidden=512, projection=128)
RESET_BEFORE_512 = Model(cell="gru", input=64, hidden=512, reset_after=False)


@pytest.fixture
def h100(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_cuda, "first_gpu", lambda: H100)
    monkeypatch.setattr(shared_cuda, "newest_cuda", lambda: 13)


def on_cuda(request_for: Callable[..., Request], *arguments: Any) -> Request:
    return replace(request_for("relax", *arguments), device="cuda")


@pytest.mark.parametrize("route", ["torch", "onnx"])
def test_other_routes_are_refused_with_a_reason(request_for: Callable[..., Request], route: str) -> None:
    answer = TvmBackend().support(replace(request_for(route), device="cuda"))
    assert answer.level == "unsupported"
    assert "on cuda use relax or tir" in answer.reason


def test_a_worker_finds_nvidias_libraries_and_numbers_gpus_as_nvml_does(
    monkeypatch: pytest.MonkeyPatch, request_for: Callable[..., Request], tmp_path: Path
) -> None:
    monkeypatch.setattr(cuda_libraries, "_file", lambda package, path: tmp_path / package / path)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
    environment = TvmBackend().support(on_cuda(request_for)).environment
    assert environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    first, *_, last = environment["LD_LIBRARY_PATH"].split(":")
    assert first == str(tmp_path / "nvidia-cuda-runtime/nvidia/cu13/lib")
    assert last == "/opt/lib"


@pytest.mark.parametrize(
    ("without", "reason"),
    [
        ("apache-tvm", "a build without CUDA"),
        ("cuda-bindings", "cuda-bindings is not installed"),
        ("nvidia-cuda-runtime", "neither nvidia-cuda-runtime is installed nor libcudart.so.13 found"),
        ("nvidia-cuda-nvrtc", "neither nvidia-cuda-nvrtc is installed nor libnvrtc.so.13 found"),
        ("nvidia-cuda-cccl", "nvidia-cuda-cccl is not installed"),
    ],
)
def test_a_library_that_is_missing_is_named_with_a_command(
    monkeypatch: pytest.MonkeyPatch, without: str, reason: str
) -> None:
    monkeypatch.setattr(cuda_libraries, "_installed", lambda package: package != without)
    monkeypatch.setattr(cuda_libraries, "_file", lambda package, path: path if package != without else None)
    monkeypatch.setattr(cuda_libraries, "library_loads", lambda _: False)
    assert cuda_libraries.lack() == Lack(f"{reason_of(reason)}; TVM needs it for CUDA", cuda_libraries.INSTALL)


def reason_of(part: str) -> str:
    return f"the installed apache-tvm is {part}" if part.startswith("a build") else part


def test_a_machine_without_a_gpu_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Device:
        raise NoGpuError("NVIDIA's driver does not answer: NVML Shared Library Not Found")

    monkeypatch.setattr(cuda_libraries, "lack", lambda: None)
    monkeypatch.setattr(shared_cuda, "first_gpu", none)
    missing = TvmBackend().probe().devices["cuda"]
    assert isinstance(missing, Lack)
    assert "NVML Shared Library Not Found" in missing.reason


class Unloaded:
    """A program that is built and not loaded, which takes a driver."""

    def __init__(self, request: Request, stored: Any, *_more: object) -> None:
        self.artifact, self.folder = stored.artifact, stored.folder


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The CUDA source of each program. It stands in for machine code, so that no NVRTC is needed."""
    seen: list[str] = []

    def recorded(code: str, _arch: str) -> bytes:
        seen.append(code)
        return code.encode()

    monkeypatch.setattr(nvrtc, "compiled", recorded)
    monkeypatch.setattr(nvrtc, "_kernels", {})
    return seen


def built(monkeypatch: pytest.MonkeyPatch, request: Request, folder: Path) -> Any:
    """Through the adapter's own build."""
    pytest.importorskip("tvm")
    from rnnbench.backends.tvm import explanation, relax_program
    from rnnbench.backends.tvm.persistent import program as persistent_program

    assert explanation.PersistentProgram is not Unloaded, "it was imported before"
    monkeypatch.setattr(relax_program, "RelaxProgram", Unloaded)
    monkeypatch.setattr(persistent_program, "PersistentProgram", Unloaded)
    monkeypatch.setattr(persistent_program, "_multiprocessors", lambda: 132)
    return TvmBackend().build(request, folder)


@pytest.mark.usefixtures("h100")
@pytest.mark.parametrize(
    ("time", "state", "lowered"),
    [("looped", "stateful", "looped 1"), *for_proof(("unrolled", "stitched", "unrolled 6"))],
)
def test_relax_becomes_kernels_in_cuda(
    monkeypatch: pytest.MonkeyPatch,
    request_for: Callable[..., Request],
    sources: list[str],
    tmp_path: Path,
    time: str,
    state: str,
    lowered: str,
) -> None:
    program = built(monkeypatch, on_cuda(request_for, time, state), tmp_path)
    (source,) = sources
    assert "__global__" in source
    assert "tanhf(" in source
    assert program.artifact.lowered == lowered
    target, *flags = program.artifact.flags
    assert "sm_90" in target
    assert not any("fast_math" in flag for flag in flags)
    assert any("not in TF32" in note for note in program.artifact.notes)


@pytest.mark.usefixtures("h100", "sources")
def test_the_kernels_are_explained(
    monkeypatch: pytest.MonkeyPatch, request_for: Callable[..., Request], tmp_path: Path
) -> None:
    request = on_cuda(request_for, "unrolled", "none", 1)
    program = built(monkeypatch, request, tmp_path)
    from rnnbench.backends.tvm.explanation import explain

    stages = {stage.name: stage for stage in explain(program, request, tmp_path).stages}
    kernels = stages["cuda"]
    assert isinstance(kernels, IrStage)
    assert "__global__" in kernels.text
    assert kernels.operations["kernel"] >= 2
    assert "llvm" not in stages


def persistent(request_for: Callable[..., Request], model: Model, state: str = "stitched", batch: int = 1) -> Request:
    return replace(request_for("tir", "looped", state, 6, batch, model), device="cuda")


@pytest.mark.usefixtures("h100")
def test_a_persistent_kernel_is_one_launch_of_blocks_that_all_run_at_once(
    monkeypatch: pytest.MonkeyPatch, request_for: Callable[..., Request], sources: list[str], tmp_path: Path
) -> None:
    program = built(monkeypatch, persistent(request_for, TWO_GRUS), tmp_path)
    (source,) = sources
    assert source.count("__global__ void __launch_bounds__(256) main_kernel(") == 2, "a declaration and a definition"
    library = (program.folder / "program.so").read_bytes()
    assert b"tirx.use_cooperative_launch" in library
    assert b"tirx.use_dyn_shared_memory" in library
    assert (program.artifact.origin, program.artifact.math) == ("kernel", "exact")
    assert program.artifact.lowered == "looped 2"
    assert any("64 blocks" in note and "for 1 units each" in note for note in program.artifact.notes)


@pytest.mark.usefixtures("h100", "sources")
def test_a_persistent_kernel_is_explained(
    monkeypatch: pytest.MonkeyPatch, request_for: Callable[..., Request], tmp_path: Path
) -> None:
    request = persistent(request_for, TWO_GRUS, "stateful")
    program = built(monkeypatch, request, tmp_path)
    from rnnbench.backends.tvm import explanation

    monkeypatch.setattr(explanation, "PersistentProgram", Unloaded)
    explained = explanation.explain(program, request, tmp_path)
    (stage,) = explained.stages
    assert isinstance(stage, IrStage)
    assert (stage.name, stage.operations) == ("cuda", {"layer": 2})
    assert "grid_barrier" in stage.text
    assert "In buffers of the session" in explained.state


def test_a_gpu_with_other_multiprocessors_gets_another_program(
    monkeypatch: pytest.MonkeyPatch, request_for: Callable[..., Request], sources: list[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(shared_cuda, "first_gpu", lambda: H100)
    request = persistent(request_for, TWO_GRUS)
    first = built(monkeypatch, request, tmp_path).folder
    from rnnbench.backends.tvm.persistent import program

    monkeypatch.setattr(program, "_multiprocessors", lambda: 114)
    assert TvmBackend().build(request, tmp_path).folder != first
    assert len(sources) == 2 - (sources[0] == sources[-1])


@pytest.mark.proof
@pytest.mark.usefixtures("h100")
def test_products_of_full_tiles_are_computed_in_float32(
    monkeypatch: pytest.MonkeyPatch, request_for: Callable[..., Request], sources: list[str], tmp_path: Path
) -> None:
    built(monkeypatch, on_cuda(request_for, "unrolled", "stitched", 2, 64, WIDE), tmp_path)
    assert not re.search(r"\bwmma\b|mma_sync|mma\.sync|tf32", sources[0])


@pytest.mark.proof
def test_another_capability_is_another_program(
    monkeypatch: pytest.MonkeyPatch, request_for: Callable[..., Request], sources: list[str], tmp_path: Path
) -> None:
    folders = set()
    for capability in ("sm_80", "sm_90"):
        gpu = replace(H100, capability=capability)
        monkeypatch.setattr(shared_cuda, "first_gpu", lambda gpu=gpu: gpu)
        folders.add(built(monkeypatch, on_cuda(request_for, "unrolled", "none", 1), tmp_path).folder)
    assert len(folders) == len(sources) == 2


@pytest.fixture
def with_nvrtc() -> None:
    """NVRTC comes with the extra `tvm-cuda`, 100 MB that nothing else needs: elsewhere the test skips, and says so."""
    if lack := cuda_libraries.lack():
        pytest.skip(f"{lack.reason}; {lack.install}")


@pytest.mark.usefixtures("h100", "with_nvrtc")
@pytest.mark.parametrize("time", ["looped", "unrolled"])
def test_nvrtc_makes_machine_code_and_exact_ptx_of_the_source(
    monkeypatch: pytest.MonkeyPatch, request_for: Callable[..., Request], tmp_path: Path, time: str
) -> None:
    folder = built(monkeypatch, on_cuda(request_for, time), tmp_path).folder
    assert (folder / nvrtc.KERNELS).read_bytes().startswith(b"\x7fELF")
    ptx = nvrtc.compiled((folder / nvrtc.SOURCE).read_text(), "compute_90").decode()
    assert ".target sm_90" in ptx
    assert not re.search(r"tanh\.approx|fma\.rn\.ftz|mma\.|tf32", ptx)


@pytest.mark.usefixtures("with_nvrtc")
@pytest.mark.parametrize("capability", ["sm_80", "sm_90"])
@pytest.mark.parametrize(
    ("model", "state", "batch"),
    [
        (LSTM_512, "stitched", 1),
        (TWO_GRUS, "stateful", 3),
        (PROJECTED_512, "stitched", 1),
        (RESET_BEFORE_512, "stateful", 3),
    ],
)
def test_nvrtc_makes_machine_code_of_a_persistent_kernel(
    monkeypatch: pytest.MonkeyPatch,
    request_for: Callable[..., Request],
    tmp_path: Path,
    capability: str,
    model: Model,
    state: str,
    batch: int,
) -> None:
    monkeypatch.setattr(shared_cuda, "first_gpu", lambda: replace(H100, capability=capability))
    folder = built(monkeypatch, persistent(request_for, model, state, batch), tmp_path).folder
    assert (folder / nvrtc.KERNELS).read_bytes().startswith(b"\x7fELF")
    ptx = nvrtc.compiled((folder / nvrtc.SOURCE).read_text(), capability.replace("sm", "compute")).decode()
    barriers = model.layers * (2 if model in (PROJECTED_512, RESET_BEFORE_512) else 1)
    assert ptx.count("atom.add.release.gpu") == ptx.count("ld.acquire.gpu") == barriers
    assert ptx.count(".entry") == 1
    assert not re.search(r"tanh\.approx|fma\.rn\.ftz|mma\.|tf32", ptx)


@pytest.mark.usefixtures("with_nvrtc")
@pytest.mark.parametrize("capability", ["sm_75", "sm_86", "sm_89", "sm_100", "sm_120"])
def test_nvrtc_makes_machine_code_for_each_gpu(
    monkeypatch: pytest.MonkeyPatch, request_for: Callable[..., Request], tmp_path: Path, capability: str
) -> None:
    monkeypatch.setattr(shared_cuda, "first_gpu", lambda: replace(H100, capability=capability))
    for request in (on_cuda(request_for, "looped"), persistent(request_for, TWO_GRUS)):
        folder = built(monkeypatch, request, tmp_path).folder
        assert (folder / nvrtc.KERNELS).read_bytes().startswith(b"\x7fELF")


@pytest.mark.usefixtures("with_nvrtc")
def test_what_nvrtc_refuses_is_an_error_with_its_message() -> None:
    with pytest.raises(BuildError, match=r"NVRTC failed for sm_90: .*\n(.*\n)*.*no_such_type"):
        nvrtc.compiled('extern "C" __global__ void kernel(no_such_type* y) {}', "sm_90")


def test_the_pipeline_has_every_list_of_passes_of_tvms_own() -> None:
    """The suite names TVM's lists of passes. This fails where a release has another one."""
    pytest.importorskip("tvm")
    from tvm.relax.backend.cuda import pipeline

    names = [name for name in vars(pipeline) if name.endswith("_passes")]
    assert names == ["library_dispatch_passes", "legalize_passes", "dataflow_lower_passes", "finalize_passes"]


def test_the_runtime_gets_the_machine_code_of_the_build(tmp_path: Path) -> None:
    tvm_ffi = pytest.importorskip("tvm_ffi")
    before = tvm_ffi.get_global_func(nvrtc.CALLBACK, allow_missing=True)
    for name in ("one", "other"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / nvrtc.SOURCE).write_text(f"// {name}")
        (folder / nvrtc.KERNELS).write_bytes(name.encode())
        nvrtc.use_kernels(folder, "sm_90")
    compile_source = tvm_ffi.get_global_func(nvrtc.CALLBACK)
    assert [bytes(compile_source(f"// {name}")) for name in ("one", "other")] == [b"one", b"other"]
    if before is not None:
        tvm_ffi.register_global_func(nvrtc.CALLBACK, before, override=True)


@pytest.mark.parametrize(("state", "chunk", "batch"), [("stitched", 7, 1), ("stateful", 1, 3), ("stateful", 300, 1)])
@pytest.mark.parametrize(
    "model", [LSTM_512, TWO_GRUS, LSTM_512.model_copy(update={"layers": 2}), PROJECTED_512, RESET_BEFORE_512]
)
def test_a_gpu_gives_what_the_reference_says_in_one_kernel(
    tmp_path: Path, request_for: Callable[..., Request], model: Model, state: str, chunk: int, batch: int
) -> None:
    request = replace(request_for("tir", "looped", state, chunk, batch, model), device="cuda")
    assert built_as_the_reference(TvmBackend(), request, tmp_path).lowered == f"looped {model.layers}"


@pytest.mark.parametrize(("time", "lowered"), [("looped", "looped 1"), ("unrolled", "unrolled 4")])
@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_a_gpu_gives_what_the_reference_says(
    tmp_path: Path, request_for: Callable[..., Request], state: str, time: str, lowered: str
) -> None:
    request = on_cuda(request_for, time, state, 4, 1, WIDE)
    assert built_as_the_reference(TvmBackend(), request, tmp_path).lowered == lowered
