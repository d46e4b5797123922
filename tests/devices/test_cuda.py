"""What the suite measures on an NVIDIA GPU, against a fake of NVIDIA's bindings."""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_cuda import H100, FakeCuda

from rnnbench.devices import KINDS, UnmeasuredError, cuda_session
from rnnbench.devices.cuda_kernels import CHAINS, LINKS, READS, VECTOR_BYTES, ptx

CUDA = KINDS["cuda"]
THREADS = 132 * 4 * 512


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    return install(monkeypatch, FakeCuda())


def install(monkeypatch: pytest.MonkeyPatch, fake: FakeCuda) -> FakeCuda:
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", fake)
    return fake


def test_cold_calls_follow_a_write_of_twice_the_second_level_cache(api: FakeCuda) -> None:
    evict = CUDA.make_evictor()
    assert api.memory == {4096: 2 * H100["L2_CACHE_SIZE"]}
    api.filled.clear()
    evict()
    evict()
    assert api.filled == 2 * [(4096, 2 * H100["L2_CACHE_SIZE"])]
    assert api.contexts == []
    assert CUDA.eviction_memory() == 0


def test_a_roof_has_what_the_programs_did_in_their_time(api: FakeCuda) -> None:
    """A turn of the fake takes TURN_S at least: sleeping takes longer, so that these are upper bounds."""
    probe = CUDA.measure_roof([1 << 20, 4 << 30], "float32", 1)
    roof = probe.measure()
    probe.close()
    assert set(roof.bandwidth) == {1 << 20, 4 << 30}
    assert all(0 < speed <= THREADS * READS * VECTOR_BYTES / 1e-6 for speed in roof.bandwidth.values())
    assert 0 < roof.rate <= 2 * THREADS * CHAINS * LINKS / 1e-6
    assert 0 < roof.launch < 0.1
    assert roof.caches == {"L2": 50 << 20}
    assert roof.on_chip == 132 * ((228 << 10) + 4 * 65_536)
    assert max(api.memory.values()) == 1 << 30
    assert {threads for name, threads, _ in api.launched if name != "do_nothing"} == {THREADS}


@pytest.mark.usefixtures("api")
def test_a_roof_without_a_working_set_has_no_bandwidth() -> None:
    assert CUDA.measure_roof([], "float32", 1).measure().bandwidth == {}


def test_each_thread_goes_round_the_working_set(api: FakeCuda) -> None:
    """The arguments are those of the working set, whose last one is the number of turns. No two threads read the same
    vector in one turn."""
    probe = CUDA.measure_roof([1 << 20, 64 << 20], "float32", 1)
    gc.collect()
    probe.measure()
    sums, data = sorted(api.memory, key=lambda address: api.memory[address])
    reads = {given[:4] for name, _, given in api.launched if name == "read_vectors"}
    assert reads == {
        (data, sums, 2 * THREADS, THREADS),
        (data, sums, (64 << 20) // VECTOR_BYTES, THREADS),
    }


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dtypes_of_tensor_cores_have_no_rate(api: FakeCuda, dtype: str) -> None:
    assert CUDA.measure_roof([1 << 20], dtype, 1).measure().rate is None


def test_without_the_bindings_or_the_driver_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    for make in (CUDA.make_evictor, lambda: CUDA.measure_roof([1024], "float32", 1)):
        monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
        with pytest.raises(UnmeasuredError, match=re.escape("pip install 'rnnbench[cuda]'.")):
            make()
        install(monkeypatch, FakeCuda(broken="no libcuda.so.1"))
        with pytest.raises(UnmeasuredError, match=re.escape("driver does not start: no libcuda.so.1")):
            make()


def test_a_call_is_timed_between_two_events_of_its_stream(api: FakeCuda) -> None:
    seconds = CUDA.open_clock(7)

    def call() -> None:
        assert api.contexts == [], "the program has its own"
        api.device_ms += 1.5

    api.recorded.clear()
    assert [seconds(call), seconds(call)] == [0.0015, 0.0015]
    assert api.recorded == 2 * [(0, 7), (1, 7)]
    assert api.contexts == []


def test_a_driver_that_lacks_a_function_is_a_reason_before_any_call_is_timed(
    api: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As driver 550 (CUDA 12.4), which has not the function that the bindings of CUDA 13 call for this."""

    def missing(*_: object) -> None:
        raise RuntimeError('Function "cuEventElapsedTime_v2" not found')

    monkeypatch.setattr(api, "cuEventElapsedTime", missing)
    with pytest.raises(UnmeasuredError, match=r'"cuEventElapsedTime_v2" not found\. It may be older'):
        CUDA.open_clock(7)
    assert api.contexts == []


def test_a_stream_does_not_wait_for_the_default_one(api: FakeCuda) -> None:
    assert [CUDA.open_stream(), CUDA.open_stream()] == [101, 102]
    assert api.streams == [1, 1], "CU_STREAM_NON_BLOCKING"
    assert api.contexts == []


def test_an_error_of_the_driver_is_a_reason(api: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "cuMemAlloc", lambda _nbytes: (SimpleNamespace(name="CUDA_ERROR_OUT_OF_MEMORY"), 0))
    with pytest.raises(UnmeasuredError, match=re.escape("CUDA's cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY.")):
        CUDA.make_evictor()


def test_the_programs_read_and_multiply_as_often_as_they_are_counted() -> None:
    assert ptx().count("ld.global.cg.v4.u32") == READS
    assert ptx().count("fma.rn.f32") == CHAINS * LINKS
    assert ptx().count(".visible .entry") == 3


def test_an_empty_session_is_subtracted_from_a_programs_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_session, "process_bytes", lambda pid: 900)
    monkeypatch.setattr(cuda_session, "empty_session_bytes", lambda: 500)
    assert CUDA.process_memory(1) == 400


BINDINGS = """
def cuInit(flags): {init}
def cuDeviceGet(number): return 0, number
def cuDevicePrimaryCtxRetain(device): return 0, "context"
"""
"""A module that a fresh process imports as NVIDIA's bindings."""


def bindings(folder: Path, init: str) -> str:
    (folder / "cuda" / "bindings").mkdir(parents=True)
    for package in ("cuda", "cuda/bindings"):
        (folder / package / "__init__.py").write_text("")
    (folder / "cuda/bindings/driver.py").write_text(BINDINGS.format(init=init))
    return str(folder)


@pytest.fixture
def no_session_yet():
    cuda_session.empty_session_bytes.cache_clear()
    yield
    cuda_session.empty_session_bytes.cache_clear()


@pytest.mark.usefixtures("no_session_yet")
def test_an_empty_session_is_a_process_with_a_context(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", bindings(tmp_path, "return (0,)"))
    seen: list[str] = []

    def recorded(pid: int) -> int:
        seen.append(Path(f"/proc/{pid}/cmdline").read_text())
        return 700

    monkeypatch.setattr(cuda_session, "process_bytes", recorded)
    assert cuda_session.empty_session_bytes() == 700
    assert "rnnbench.devices.cuda_session" in seen[0]


@pytest.mark.usefixtures("no_session_yet")
def test_a_session_that_cannot_begin_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", bindings(tmp_path, "raise RuntimeError('no libcuda here')"))
    with pytest.raises(UnmeasuredError, match="CUDA's driver does not start: no libcuda here"):
        cuda_session.empty_session_bytes()
