"""The probes measure this machine: figures that any machine has, and none that a faster one would not."""

from __future__ import annotations

import sys

import pytest

from rnnbench.measure import RoofProbe, roof
from rnnbench.measure.roof_code import multiplier, reader
from rnnbench.optional import MissingExtraError

llvm = pytest.importorskip("llvmlite.binding")
SMALL, LARGE = 32 << 10, 64 << 20
SLOWEST = 1e5
"""A second: what a piece of a millisecond comes to that was kept waiting for ten."""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roof, "PIECES", 1)
    monkeypatch.setattr(roof, "LARGEST", 1 << 20)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_look_has_a_bandwidth_for_every_working_set_and_a_rate(threads: int) -> None:
    probe = RoofProbe([100, SMALL, LARGE], "float32", threads)
    seen = probe.measure()
    probe.close()
    assert list(seen.bandwidth) == [100, SMALL, LARGE]
    assert all(SLOWEST < speed < 1e13 for speed in seen.bandwidth.values())
    assert seen.rate is not None
    assert SLOWEST < seen.rate < 1e14


def test_a_type_without_a_multiplier_has_no_rate() -> None:
    probe = RoofProbe([SMALL], "bfloat16", 1)
    assert probe.measure().rate is None
    probe.close()


@pytest.mark.parametrize(
    "code", [reader(8, True), reader(1, False), multiplier("float32", 12), multiplier("float64", 1)]
)
def test_the_code_is_valid_and_touches_what_it_says(code: str) -> None:
    module = llvm.parse_assembly(code)
    module.verify()
    assert code.count("load <") == (code.count("fadd") or 1)


def test_it_is_read_there_and_back_within_the_buffer() -> None:
    """Every element is added once a pass, whichever way: what is in the sums at the end counts them."""
    import numpy as np

    compiler = roof._Compiler()
    read = compiler.function(reader(4, True), "read", roof._READS)
    groups, passes = 3, 4
    data, sums = roof._buffer(groups * 4 * 64).view(np.float32), roof._buffer(4 * 64).view(np.float32)
    data[:] = np.arange(data.size)
    read(data.ctypes.data, groups, passes, sums.ctypes.data)
    assert sums.sum() == passes * data.sum()


def test_without_its_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "llvmlite"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(MissingExtraError, match=r"pip install 'rnnbench\[floor\]'"):
        RoofProbe([SMALL], "float32", 1)


@pytest.mark.parametrize("processor", ["haswell", "skylake-avx512"])
def test_sums_of_one_number_of_chains_stay_in_registers(processor: str) -> None:
    """AVX has 16 registers of 32 bytes, which 12 chains of 64 bytes exceed; AVX-512 has 32 of 64 bytes."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu=processor, opt=3)
    texts = [machine.emit_assembly(llvm.parse_assembly(multiplier("float32", chains))) for chains in roof.CHAINS]
    assert any("vfmadd" in text and "(%rsp)" not in text for text in texts)


def test_what_a_piece_does_is_counted_both_ways_and_with_both_operations() -> None:
    """A count of one reads the buffer forwards and backwards; a multiply-add is two operations."""
    import numpy as np

    passes: list[int] = []
    data, sums = (np.zeros(8, np.uint8) for _ in range(2))
    piece = roof._reading(lambda source, groups, count, target: passes.append(groups * count), 3, data, sums)
    piece.run(5)
    assert passes == [5 * piece.amount // roof.GROUP_BYTES]
    probe = RoofProbe([SMALL], "float32", 1)
    amounts = [piece.amount for pieces in probe._multiplying for piece in pieces]
    probe.close()
    assert amounts == [2 * chains * 16 for chains in roof.CHAINS]
