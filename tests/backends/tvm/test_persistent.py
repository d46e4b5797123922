"""The persistent kernel of `tir` on CUDA, without a GPU: its source runs on a GPU that the processor emulates.

Every number is from the source that a GPU gets, and from the adapter's own session. What that does not show is in
`cuda_on_processor.h`. The last tests compile it for GPUs, where NVRTC is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rnnbench.backends.base import Request
from rnnbench.backends.tvm.persistent.layout import FLOAT, HELD, VECTOR, WARPS, Gpu, Plan, vectors
from rnnbench.backends.tvm.persistent.support import most_params, most_scratch
from rnnbench.cases.trial import State, Strategy
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs

pytest.importorskip("tvm_ffi")
from cuda_on_processor import (
    SMALL,
    TOLERANCE,
    Edit,
    ProgramOnProcessor,
    StuckError,
    asked,
    computes_the_network,
    reference,
    replaced,
)
from quick_tests import for_proof

LSTM = Model(cell="lstm", input=5, hidden=17)
GRU = Model(cell="gru", input=5, hidden=17)
TWO_LSTMS, TWO_GRUS = (model.model_copy(update={"layers": 2}) for model in (LSTM, GRU))
DEEP = Model(cell="lstm", input=5, hidden=170, projection=150, layers=3)
BOUNDED = Model(
    cell="lstm", input=5, hidden=6, recurrent_activation="hard_sigmoid", activation="relu", clip=0.4, cell_clip=0.2
)
BOTH_WAYS = Model(cell="rnn", input=5, hidden=7, layers=3, direction="bidirectional", bias=False)
BACKWARDS = Model(cell="gru", input=3, hidden=8, direction="reverse")


@pytest.mark.first(3)
@pytest.mark.parametrize(
    ("model", "state", "chunk", "batch"),
    [
        (TWO_LSTMS, "stitched", 7, 3),
        (LSTM, "stateful", 7, 3),
        (GRU, "stateful", 1, 3),
        (BOUNDED, "stitched", 7, 1),
        (BOTH_WAYS, "none", 7, 3),
        *for_proof(
            (TWO_LSTMS, "stateful", 1, 1),
            (LSTM, "none", 7, 1),
            (TWO_GRUS, "stateful", 7, 1),
            (TWO_GRUS, "stitched", 1, 3),
            (GRU, "none", 1, 1),
            (BACKWARDS, "none", 7, 1),
        ),
    ],
)
def test_the_kernel_computes_the_network(tmp_path: Path, model: Model, state: State, chunk: int, batch: int) -> None:
    program = ProgramOnProcessor(asked(model, state, chunk, batch), SMALL, tmp_path)
    assert program.plan.blocks == 3
    program.kernel.order = batch // 2
    computes_the_network(program)


def test_the_rest_of_a_call_is_run_by_a_kernel_of_one_step(tmp_path: Path) -> None:
    request = asked(LSTM, "stateful", 3)
    x = draw_inputs(LSTM, 8, 1, seed=1)
    y = ProgramOnProcessor(request, SMALL, tmp_path).open().step({"x": x})["y"]
    np.testing.assert_allclose(y, reference(request, x).y, atol=TOLERANCE)


def test_sessions_share_nothing(tmp_path: Path) -> None:
    request = asked(GRU, "stateful", 2)
    program = ProgramOnProcessor(request, SMALL, tmp_path)
    one, other = program.open(), program.open()
    x = draw_inputs(GRU, 4, 1, seed=1)
    first = one.step({"x": x[:2]})["y"]
    other.step({"x": x[2:]})
    y = np.concatenate([first, one.step({"x": x[2:]})["y"]])
    np.testing.assert_allclose(y, reference(request, x).y, atol=TOLERANCE)


@pytest.mark.proof
def test_a_barrier_holds_hundreds_of_times_and_needs_no_reset(tmp_path: Path) -> None:
    request = asked(Model(cell="gru", input=2, hidden=6), "stateful", 150)
    program = ProgramOnProcessor(request, SMALL, tmp_path)
    for program.kernel.order in (0, 1):
        computes_the_network(program)
    assert program.kernel.barriers == 2 * 4 * 149, "one between steps, in each of four calls, in both orders"


def test_weights_in_registers_in_shared_memory_and_through_l2_give_the_same(tmp_path: Path) -> None:
    wide = Gpu(processors=1, shared_bytes=60 * 1024)
    program = ProgramOnProcessor(asked(Model(cell="lstm", input=5, hidden=200), "stitched", 2, 3), wide, tmp_path)
    (held,) = program.plan.held(*program.plan.recurrent)
    assert 0 < held.registers < held.registers + held.shared < program.plan.recurrent[0].rows_per_warp
    computes_the_network(program)


def cut(folder: Path, monkeypatch: pytest.MonkeyPatch, edit: Edit = str) -> ProgramOnProcessor:
    """A kernel whose shared memory holds two of the five sequences at a time."""
    monkeypatch.setattr("rnnbench.backends.tvm.persistent.layout.STAGED", 2 * 40)
    request = asked(Model(cell="gru", input=5, hidden=39), "stitched", 3, 5)
    program = ProgramOnProcessor(request, Gpu(1, SMALL.shared_bytes), folder, edit)
    assert program.plan.tile == 2
    return program


def test_a_batch_that_shared_memory_does_not_hold_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = cut(tmp_path, monkeypatch)
    for program.kernel.order in (0, 1):
        computes_the_network(program)


@pytest.mark.proof
def test_where_a_batch_is_cut_the_threads_of_a_block_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before h is copied anew, and before the last one is kept."""
    program = cut(tmp_path, monkeypatch, replaced("if (TILE < BATCH) __syncthreads();", ""))
    for program.kernel.order in (0, 1):
        with pytest.raises(AssertionError, match="Not equal to tolerance"):
            computes_the_network(program)


FAULTS = {
    "no barrier between steps": ("if (!LAST || step < CHUNK - 1) grid_barrier(counter);", "__syncthreads();"),
    "the gates of another order": ("gate(clipped(z[1 * UNITS]", "gate(clipped(z[2 * UNITS]"),
    "h is multiplied before all of it is there": ("stride, count);\n      __syncthreads();", "stride, count);"),
    "the cell state of the step before is lost": ("step == 0 ? layer.c_before : layer.c_after", "layer.c_before"),
}


@pytest.mark.parametrize("fault", [*list(FAULTS)[:1], *for_proof(*list(FAULTS)[1:])])
def test_a_planted_fault_is_found(tmp_path: Path, fault: str) -> None:
    program = ProgramOnProcessor(asked(LSTM, "stitched", 7), SMALL, tmp_path, replaced(*FAULTS[fault]))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        computes_the_network(program)


@pytest.mark.parametrize(
    ("model", "state", "chunk", "waits"),
    [
        (LSTM, "stateful", 1, True),
        (LSTM, "stateful", 2, False),
        (LSTM, "stitched", 1, False),
        (DEEP, "stateful", 1, False),
    ],
)
def test_only_a_stateful_step_of_one_product_waits_at_the_end_of_a_call(
    model: Model, state: State, chunk: int, waits: bool
) -> None:
    assert Plan(model, state, chunk, 1, Gpu.of("sm_90", 132)).writes_before_read == waits


@pytest.mark.proof
def test_a_stateful_step_without_its_barrier_is_found(tmp_path: Path) -> None:
    """A block would write the new h over the one that another block still has to read."""
    plant = replaced("false, false>(layer", "false, true>(layer")
    program = ProgramOnProcessor(asked(GRU, "stateful", 1), SMALL, tmp_path, plant)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        computes_the_network(program)


@pytest.mark.proof
def test_a_block_that_leaves_out_a_barrier_stops_the_others(tmp_path: Path) -> None:
    left_out = "if ((!LAST || step < CHUNK - 1) && (blockIdx.x != 2 || step != 3)) grid_barrier(counter);"
    honest, _ = FAULTS["no barrier between steps"]
    with pytest.raises(StuckError):
        computes_the_network(ProgramOnProcessor(asked(LSTM), SMALL, tmp_path, replaced(honest, left_out)))


CELLS: dict[str, dict[str, object]] = {
    "lstm": {"cell": "lstm"},
    "gru": {"cell": "gru"},
    "projected lstm": {"cell": "lstm", "layers": 2, "direction": "bidirectional"},
    "gru that resets before the product": {"cell": "gru", "reset_after": False, "layers": 3},
}


def wide_model(cell: str, hidden: int) -> Model:
    projection = {"projection": max(1, hidden // 3)} if cell == "projected lstm" and hidden > 1 else {}
    return Model.model_validate({"input": 64, "hidden": hidden, **projection, **CELLS[cell]})


@pytest.mark.parametrize("capability", ["sm_75", "sm_80", "sm_90", "sm_999"])
@pytest.mark.parametrize("hidden", [1, 17, 133, 512, 1024, 2048, 8192])
@pytest.mark.parametrize("cell", CELLS)
def test_every_plan_fits_its_gpu(cell: str, hidden: int, capability: str) -> None:
    model = wide_model(cell, hidden)
    plan = Plan(model, "stitched", 16, 4, Gpu.of(capability, 40))
    assert plan.units * plan.blocks >= hidden > plan.units * (plan.blocks - 1)
    assert plan.output_units * plan.blocks >= model.output
    assert plan.blocks <= 40
    assert plan.tile >= 1
    assert FLOAT * plan.shared <= plan.gpu.shared_bytes
    held = plan.held(*plan.recurrent)
    pairs = list(zip(plan.recurrent, held, strict=True))
    assert sum(VECTOR * vectors(matrix.columns) * of.registers for matrix, of in pairs) <= HELD
    assert (plan.read_bytes == 0) == all(WARPS * (of.registers + of.shared) >= matrix.rows for matrix, of in pairs)


@pytest.mark.parametrize(("capability", "kib"), [("sm_90", 227), ("sm_103", 227), ("sm_120", 99), ("sm_999", 48)])
def test_a_block_has_the_shared_memory_of_its_gpu(capability: str, kib: int) -> None:
    assert Gpu.of(capability, 170).shared_bytes == kib << 10


@pytest.mark.parametrize("processors", [1, 2, 7, 40, 132, 10_000])
@pytest.mark.parametrize("hidden", [1, 2, 17, 133, 2048])
@pytest.mark.parametrize("cell", CELLS)
def test_the_bounds_of_arrays_hold_on_every_gpu(cell: str, hidden: int, processors: int) -> None:
    """Of scratch memory, with the exchanged vectors, and of weights, with a projection's."""
    model = wide_model(cell, hidden)
    for state, chunk, batch in (("none", 1, 5), ("stitched", 16, 4), ("none", 3, 1)):
        plan = Plan(model, state, chunk, batch, Gpu.of("sm_90", processors))
        assert plan.scratch <= most_scratch(model, chunk, batch) <= 2 * plan.scratch + 64
        assert plan.params <= most_params(model) <= 2 * plan.params + 64


def test_on_an_h100_a_layer_of_512_is_held_in_registers_and_one_of_2048_is_not() -> None:
    h100 = Gpu.of("sm_90", 132)
    plans = {hidden: Plan(Model(cell="lstm", input=64, hidden=hidden), "none", 1, 1, h100) for hidden in (512, 2048)}
    (held,) = plans[512].held(*plans[512].recurrent)
    assert (plans[512].blocks, plans[512].units, held.shared, plans[512].read_bytes) == (128, 4, 0, 0)
    assert 0 < plans[2048].read_bytes < 4 * 2048 * 2048 * FLOAT


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"strategy": Strategy("unrolled", "none", 2)}, "it is looped, and not unrolled"),
        ({"model": Model(cell="counter", input=4, hidden=4)}, "a counter has none"),
        ({"model": Model(cell="lstm", input=4, hidden=9000)}, "36000 bytes; it has room for 32768"),
        ({"model": Model(cell="lstm", input=4, hidden=9000, projection=100)}, "36000 bytes; it has room for 32768"),
        (
            {"batch": 2**15, "model": DEEP, "strategy": Strategy("looped", "none", 64)},
            "scratch memory of a call has up to",
        ),
        ({"model": Model(cell="lstm", input=8188, hidden=8188, layers=4)}, "weights have up to"),
    ],
)
def test_what_the_kernel_has_not_is_refused_with_a_reason(
    change: dict[str, object], reason: str, request_for: Callable[..., Request]
) -> None:
    from rnnbench.backends.tvm import TvmBackend

    answer = TvmBackend().support(replace(request_for("tir"), device="cuda", **change))
    assert (answer.level, reason in answer.reason) == ("unsupported", True), answer.reason
