"""The persistent kernel's cells with two products and two barriers a step, on a GPU that the processor emulates.

They are the LSTM with a projection and the GRU whose reset gate comes before the product. `test_persistent.py` has the
others, and what this does not show.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from rnnbench.backends.tvm.persistent.layout import Gpu, Held, Plan
from rnnbench.cases.trial import State
from rnnbench.rnn.spec import Model

pytest.importorskip("tvm_ffi")
from cuda_on_processor import SMALL, Edit, ProgramOnProcessor, StuckError, asked, computes_the_network, replaced
from quick_tests import for_proof

PROJECTED = Model(cell="lstm", input=5, hidden=17, projection=7)
RESET_BEFORE = Model(cell="gru", input=5, hidden=17, reset_after=False)
CELLS = {"projected lstm": PROJECTED, "gru that resets before the product": RESET_BEFORE}
BOTH_CELLS = pytest.mark.parametrize("model", list(CELLS.values()), ids=list(CELLS))
ORDERS = (0, 1)


def changed(model: Model, **keys: object) -> Model:
    return Model.model_validate({**model.params, **keys})


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("model", "state", "chunk", "batch"),
    [
        (changed(PROJECTED, layers=2), "stitched", 7, 3),
        (changed(PROJECTED, bias=False, clip=0.4, cell_clip=0.2, activation="relu"), "stitched", 5, 1),
        (RESET_BEFORE, "stateful", 1, 3),
        (changed(RESET_BEFORE, layers=3, direction="bidirectional"), "none", 4, 2),
        *for_proof(
            (PROJECTED, "stateful", 1, 1),
            (PROJECTED, "none", 7, 3),
            (changed(PROJECTED, layers=3, projection=16), "stateful", 4, 2),
            (changed(PROJECTED, projection=1), "stitched", 1, 2),
            (changed(PROJECTED, layers=3, direction="bidirectional"), "none", 4, 2),
            (RESET_BEFORE, "none", 1, 1),
            (changed(RESET_BEFORE, layers=2), "stitched", 7, 3),
            (changed(RESET_BEFORE, layers=3, hidden=8), "stateful", 4, 1),
            (changed(RESET_BEFORE, bias=False, clip=0.4, recurrent_activation="hard_sigmoid"), "stitched", 5, 2),
            (changed(RESET_BEFORE, direction="reverse"), "none", 7, 1),
        ),
    ],
)
def test_the_kernel_computes_the_network(tmp_path: Path, model: Model, state: State, chunk: int, batch: int) -> None:
    """With two barriers a step, and with one in the last step of a call.

    Behind the one between its products, no block reads the old h of others, so a stateful call may replace it.
    """
    program = ProgramOnProcessor(asked(model, state, chunk, batch), SMALL, tmp_path)
    assert program.plan.blocks == 3
    orders = ORDERS if chunk == 1 else (ORDERS[batch // 2],)
    for program.kernel.order in orders:
        computes_the_network(program)
    calls = len(orders) * (2 if state == "none" else 4)
    assert program.kernel.barriers == calls * (2 * chunk * model.layers * model.directions - 1)


@pytest.mark.proof
@BOTH_CELLS
def test_one_block_needs_no_other(tmp_path: Path, model: Model) -> None:
    program = ProgramOnProcessor(asked(model, "stitched", 3, 2), Gpu(1, SMALL.shared_bytes), tmp_path)
    computes_the_network(program)
    assert program.kernel.barriers == 0


@pytest.mark.parametrize(
    ("model", "processors", "shared_bytes", "held"),
    [
        (changed(PROJECTED, hidden=120, projection=119), 2, 16 << 10, [Held(30, 0), Held(2, 2)]),
        *for_proof(
            (changed(PROJECTED, hidden=120, projection=40), 1, 20 << 10, [Held(32, 4), Held(0, 0)]),
            (changed(RESET_BEFORE, hidden=120), 1, 20 << 10, [Held(30, 0), Held(2, 2)]),
        ),
    ],
)
def test_the_weights_of_both_products_are_held_where_there_is_room(
    tmp_path: Path, model: Model, processors: int, shared_bytes: int, held: list[Held]
) -> None:
    program = ProgramOnProcessor(asked(model, "stitched", 2, 3), Gpu(processors, shared_bytes), tmp_path)
    assert list(program.plan.held(*program.plan.recurrent)) == held
    assert program.plan.read_bytes > 0
    computes_the_network(program)


def cut(model: Model, folder: Path, monkeypatch: pytest.MonkeyPatch, edit: Edit = str) -> ProgramOnProcessor:
    """A kernel whose shared memory holds two of the five sequences at a time."""
    monkeypatch.setattr("rnnbench.backends.tvm.persistent.layout.STAGED", 2 * 72)
    wide = changed(model, hidden=70, **({"projection": 60} if model.projection else {}))
    program = ProgramOnProcessor(asked(wide, "stitched", 3, 5), Gpu(1, SMALL.shared_bytes), folder, edit)
    assert program.plan.tile == 2
    return program


@pytest.mark.parametrize(
    ("keys", "of_block", "held", "read_mib"),
    [
        ({"cell": "lstm", "hidden": 1024, "projection": 512}, [32, 4], (Held(4, 0), Held(1, 0)), 0),
        ({"cell": "lstm", "hidden": 2048, "projection": 512}, [64, 4], (Held(8, 0), Held(0, 1)), 0),
        ({"cell": "gru", "hidden": 1024, "reset_after": False}, [16, 8], (Held(2, 0), Held(1, 0)), 0),
        ({"cell": "gru", "hidden": 2048, "reset_after": False}, [32, 16], (Held(2, 2), Held(0, 1)), 8),
    ],
)
def test_what_an_h100_would_hold(
    keys: dict[str, object], of_block: list[int], held: tuple[Held, ...], read_mib: int
) -> None:
    """docs/backends/tvm_kernels.md has these numbers."""
    plan = Plan(Model.model_validate({"input": 64, **keys}), "none", 1, 1, Gpu.of("sm_90", 132))
    assert [matrix.rows for matrix in plan.recurrent] == of_block
    assert (plan.held(*plan.recurrent), plan.read_bytes) == (held, read_mib << 20)


def held_in_shared_memory(folder: Path, monkeypatch: pytest.MonkeyPatch, edit: Edit = str) -> ProgramOnProcessor:
    monkeypatch.setattr("rnnbench.backends.tvm.persistent.layout.HELD", 8)
    request = asked(changed(RESET_BEFORE, hidden=40), "stitched", 2)
    program = ProgramOnProcessor(request, Gpu(1, SMALL.shared_bytes), folder, edit)
    assert program.plan.held(*program.plan.recurrent) == (Held(2, 8), Held(0, 5))
    return program


def test_shared_memory_holds_the_weights_of_both_products(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computes_the_network(held_in_shared_memory(tmp_path, monkeypatch))


@pytest.mark.proof
def test_weights_that_lie_over_others_in_shared_memory_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = held_in_shared_memory(tmp_path, monkeypatch, replaced("held + First::FLOATS", "held"))
    for program.kernel.order in ORDERS:
        with pytest.raises(AssertionError, match="Not equal to tolerance"):
            computes_the_network(program)


@pytest.mark.proof
@pytest.mark.parametrize("model", [RESET_BEFORE, *for_proof(PROJECTED)])
def test_a_batch_that_shared_memory_does_not_hold_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Model
) -> None:
    program = cut(model, tmp_path, monkeypatch)
    for program.kernel.order in ORDERS:
        computes_the_network(program)


BETWEEN = "    grid_barrier(counter);\n#pragma unroll 1\n"
AT_THE_END = "    if (!LAST || step < CHUNK - 1) grid_barrier(counter);\n"
FIRST_LOOP = "    float* results = PRODUCTS == 1 ? out : exchanged;\n#pragma unroll 1\n"
RESULTS = "PRODUCTS == 1 ? out : exchanged;"


class Fault(NamedTuple):
    """Of both cells, which take turns, or of one."""

    edits: tuple[Edit, ...]
    models: tuple[Model, ...] = (PROJECTED, RESET_BEFORE)


FAULTS = {
    "no barrier between the products": Fault((replaced(BETWEEN, "    __syncthreads();\n#pragma unroll 1\n"),)),
    "no barrier at the end of a step": Fault((replaced(AT_THE_END, "    __syncthreads();\n"),)),
    "both barriers before the first product": Fault(
        (
            replaced(BETWEEN, "    __syncthreads();\n#pragma unroll 1\n"),
            replaced(FIRST_LOOP, f"    grid_barrier(counter);\n{FIRST_LOOP}"),
        )
    ),
    "both barriers after the second product": Fault(
        (
            replaced(BETWEEN, "    __syncthreads();\n#pragma unroll 1\n"),
            replaced(AT_THE_END, f"    grid_barrier(counter);\n{AT_THE_END}"),
        )
    ),
    "both barriers between the products": Fault(
        (
            replaced(BETWEEN, f"    grid_barrier(counter);\n{BETWEEN}"),
            replaced(AT_THE_END, "    __syncthreads();\n"),
        )
    ),
    "in one step, the second product reads the vector of the step before": Fault(
        (replaced(RESULTS, "step == 3 ? staged : exchanged;"),)
    ),
    "the second product reads the old h": Fault(
        (
            replaced(
                "exchanged + (size_t)first * HIDDEN, HIDDEN, count", "before + (size_t)first * stride, stride, count"
            ),
        ),
        (RESET_BEFORE,),
    ),
    "the second product begins before all of its vector is there": Fault(
        (replaced("HIDDEN, HIDDEN, count);\n      __syncthreads();", "HIDDEN, HIDDEN, count);"),)
    ),
    "the first product reads h of two steps before": Fault(
        (replaced("layer.out + (size_t)earlier", "layer.out + (size_t)(earlier > 0 ? earlier - 1 : 0)"),)
    ),
    "the second product reads the weights of the first": Fault(
        (replaced("second_product(layer.w_second", "second_product(layer.w_hh"),)
    ),
    "the product is of h and not of r·h": Fault(
        (replaced("const float result = r * before;", "const float result = before;"),), (RESET_BEFORE,)
    ),
    "the update gate is not kept": Fault((replaced("    p[1 * UNITS] = u;\n", ""),), (RESET_BEFORE,)),
}


PLANTED = [(name, fault.models[place % len(fault.models)]) for place, (name, fault) in enumerate(FAULTS.items())]


@pytest.mark.parametrize(("name", "model"), [*PLANTED[:1], *for_proof(*PLANTED[1:])])
def test_a_planted_fault_is_found_in_both_orders(tmp_path: Path, name: str, model: Model) -> None:
    def plant(text: str) -> str:
        for edit in FAULTS[name].edits:
            text = edit(text)
        return text

    program = ProgramOnProcessor(asked(model, "stitched", 7), SMALL, tmp_path, plant)
    for program.kernel.order in ORDERS:
        with pytest.raises(AssertionError, match="Not equal to tolerance"):
            computes_the_network(program)


@pytest.mark.proof
@BOTH_CELLS
def test_a_stateful_step_without_its_barrier_is_found(tmp_path: Path, model: Model) -> None:
    edit = replaced(BETWEEN, "    __syncthreads();\n#pragma unroll 1\n")
    program = ProgramOnProcessor(asked(model, "stateful", 1), SMALL, tmp_path, edit)
    for program.kernel.order in ORDERS:
        with pytest.raises(AssertionError, match="Not equal to tolerance"):
            computes_the_network(program)


@pytest.mark.proof
@BOTH_CELLS
def test_a_block_that_leaves_out_the_barrier_between_the_products_stops_the_others(
    tmp_path: Path, model: Model
) -> None:
    left_out = BETWEEN.replace("    grid", "    if (blockIdx.x != 2 || step != 3) grid")
    program = ProgramOnProcessor(asked(model), SMALL, tmp_path, replaced(BETWEEN, left_out))
    for program.kernel.order in ORDERS:
        with pytest.raises(StuckError):
            computes_the_network(program)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("model", "wait"),
    [
        (RESET_BEFORE, "      if (TILE < BATCH) __syncthreads();\n    }\n    // Behind"),
        (RESET_BEFORE, "      if (TILE < BATCH) __syncthreads();  // before"),
        (PROJECTED, "      if (TILE < BATCH) __syncthreads();  // before"),
    ],
)
def test_where_a_batch_is_cut_the_threads_of_a_block_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Model, wait: str
) -> None:
    """Before h is copied anew, while a GRU's units read it, and before the last one is kept."""
    edit = replaced(wait, wait.replace("if (TILE < BATCH) __syncthreads();", ""))
    program = cut(model, tmp_path, monkeypatch, edit)
    for program.kernel.order in ORDERS:
        with pytest.raises(AssertionError, match="Not equal to tolerance"):
            computes_the_network(program)
