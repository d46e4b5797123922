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


class Work:
    """Work of a microsecond a turn, by a clock that only it moves. The first of its pieces is disturbed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.turns: list[int] = []
        monkeypatch.setattr(roof.time, "perf_counter", lambda: self.now)

    def run(self, turns: int) -> None:
        self.turns.append(turns)
        self.now += turns * 1e-6 * (9 if self.turns.count(1000) == 1 else 1)


def test_a_speed_is_the_amount_of_a_usual_piece_over_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roof, "PIECES", 5)
    work = Work(monkeypatch)
    assert roof.speed_of(work.run, 64, piece_s=1e-3) == pytest.approx(64e6)
    assert work.turns[-5:] == [1000] * 5, "each piece takes a millisecond"
    assert work.turns[:-5] == [1 << k for k in range(10)], "found by doubling"


def test_threads_have_their_speeds_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roof, "_seconds", lambda run, count: count * run(1))
    probe = RoofProbe([SMALL], "float32", 2)
    pieces = [roof._Piece(lambda turns, seconds=seconds: seconds, 8, ()) for seconds in (1e-6, 2e-6)]
    assert probe._speed(pieces) == pytest.approx(8e6 + 4e6)
    probe.close()


def test_the_fastest_way_to_read_and_to_multiply_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = object.__new__(RoofProbe)
    probe._readings = {SMALL: [1.0, 3.0], LARGE: [4.0, 2.0]}
    probe._multiplying = [5.0, 7.0]
    monkeypatch.setattr(RoofProbe, "_speed", lambda self, pieces: pieces)
    assert probe.measure() == roof.Roof({SMALL: 3.0, LARGE: 4.0}, 7.0)


def test_a_working_set_is_shared_by_the_threads_up_to_the_largest_buffer() -> None:
    group = roof.GROUP_BYTES
    assert roof._groups(6 * group, 1) == 6
    assert roof._groups(6 * group, 2) == 3
    assert roof._groups(1, 2) == 1
    assert roof._groups(LARGE, 2) == roof.LARGEST // 2 // group


@pytest.mark.parametrize(("to_and_fro", "expected"), [(True, 2.0), (False, 1.0)])
def test_every_second_pass_may_go_back(to_and_fro: bool, expected: float) -> None:
    """Sums of float32 tell the order: 1 is lost in a sum of 2²⁵, and what begins with it keeps it."""
    import numpy as np

    compiler = roof._Compiler()
    read = compiler.function(reader(1, to_and_fro), "read", roof._READS)
    data, sums = roof._buffer(3 * 64).view(np.float32), roof._buffer(64).view(np.float32)
    data[:] = np.repeat([2.0**25, -(2.0**25), 1.0], 16)
    read(data.ctypes.data, 3, 2, sums.ctypes.data)
    assert sums.tolist() == [expected] * 16
