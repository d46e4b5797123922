"""The persistent kernel in CUDA C++: all steps of a call in one launch, the recurrent weights held on the chip.

For each layer and direction, a block first projects x for all steps, for its own units. Then the steps follow one
another. In each, a block copies h to shared memory, multiplies its rows by it, and computes its units. A barrier of the
whole grid ends the step. So a step costs one barrier, whatever the size of the layer.

An LSTM with a projection and a GRU that resets before its product have two barriers a step. Each block puts its part
of o·tanh(c), or of r·h, into scratch memory. Behind the first barrier all blocks read the whole vector, multiply by it,
and compute their part of h. The next step writes the vector again, behind the second barrier: no block still reads it.

Persistent kernels of RNNs: Diamos et al., "Persistent RNNs: Stashing Recurrent Weights On-Chip", ICML 2016; Holmes et
al., "GRNN: Low-Latency and Scalable RNN Inference on GPUs", EuroSys 2019.
"""

from __future__ import annotations

from dataclasses import astuple

from rnnbench.backends.tvm.persistent.cells import cells
from rnnbench.backends.tvm.persistent.layout import BARRIER, THREADS, WARPS, Held, Matrix, Plan, padded
from rnnbench.backends.tvm.persistent.steps import steps
from rnnbench.backends.tvm.persistent.text import ATOMICS, HELPERS, PRODUCT
from rnnbench.rnn import Model

ENTRY = "rnnbench_chunk"
"""The function that a kernel calls: params, x, the state, y, scratch memory, shared memory."""
LAYER = "run_layer<"
"""How the code of each layer in each direction begins. It has one loop over the steps."""


def arguments(state: str) -> tuple[str, ...]:
    """The arrays of the kernel in order, all flat float32. A stateful state changes in place."""
    states = {"none": (), "stateful": ("state",), "stitched": ("state_in", "state_out")}[state]
    return ("params", "x", *states, "y", "scratch")


def source(plan: Plan) -> str:
    """The functions of the kernel of a plan. `ENTRY` is the last one."""
    return "".join(
        (
            ATOMICS,
            _constants(plan),
            _functions(plan.model),
            PRODUCT,
            _products(plan),
            HELPERS,
            cells(plan),
            steps(plan),
            _entry(plan),
        )
    )


def _constants(plan: Plan) -> str:
    values = {
        "THREADS": THREADS,
        "WARPS": WARPS,
        "BLOCKS": plan.blocks,
        "UNITS": plan.units,
        "OUTPUT_UNITS": plan.output_units,
        "PROJECTED": plan.rows,
        "PRODUCTS": len(plan.recurrent),
        "HIDDEN": plan.model.hidden,
        "OUTPUT": plan.model.output,
        "WIDTH": plan.model.width,
        "CHUNK": plan.chunk,
        "BATCH": plan.batch,
        "TILE": plan.tile,
        "STAGED": plan.staged,
        "SUMS": plan.sums,
    }
    return "".join(f"constexpr int {name} = {value};\n" for name, value in values.items())


def _functions(model: Model) -> str:
    gate = "1.0f / (1.0f + expf(-x))"
    if model.recurrent_activation == "hard_sigmoid":
        gate = _bounded("0.2f * x + 0.5f", "0.0f", "1.0f")
    activated = "tanhf(x)" if model.activation == "tanh" else "x < 0.0f ? 0.0f : x"
    clipped = "x" if model.clip is None else _bounded("x", f"-{model.clip!r}f", f"{model.clip!r}f")
    cell = "x" if model.cell_clip is None else _bounded("x", f"-{model.cell_clip!r}f", f"{model.cell_clip!r}f")
    functions = {"gate": gate, "activated": activated, "clipped": clipped, "clipped_cell": cell}
    return "".join(
        f"__device__ __forceinline__ float {name}(float x) {{ return {body}; }}\n" for name, body in functions.items()
    )


def _bounded(value: str, low: str, high: str) -> str:
    """A comparison with NaN is false, so NaN passes."""
    return f"({value}) < {low} ? {low} : ({value}) > {high} ? {high} : ({value})"


def _products(plan: Plan) -> str:
    """The types of the products of a step, `First` and `Second`."""
    held = zip(("First", "Second"), plan.recurrent, plan.held(*plan.recurrent), strict=False)
    return "".join(f"using {name} = {_product(matrix, part)};\n" for name, matrix, part in held)


def _product(matrix: Matrix, held: Held) -> str:
    return f"Product<{matrix.rows}, {matrix.columns}, {held.registers}, {held.shared}>"


def _entry(plan: Plan) -> str:
    parameters = ", ".join(f"float* {name}" for name in (*arguments(plan.state), "shared"))
    body = "".join(_layer(plan, index) for index in range(plan.model.layers * plan.model.directions))
    exchanged = f"scratch + {plan.exchanged_start}" if plan.exchanged else "nullptr"
    return f"""
__device__ __forceinline__ void {ENTRY}({parameters}) {{
  unsigned* counter = reinterpret_cast<unsigned*>(scratch);
  float* projections = scratch + {BARRIER};
  float* exchanged = {exchanged};
{body}}}
"""


def _layer(plan: Plan, index: int) -> str:
    """The code of a layer in one direction."""
    model, (number, direction) = plan.model, divmod(index, plan.model.directions)
    of_x, offsets = plan.of_x(number), plan.layers[index]
    outputs = BARRIER + padded(plan.projected)
    above = f"scratch + {outputs + number % 2 * plan.outputs}" if number < model.layers - 1 else "y"
    below = f"scratch + {outputs + (number - 1) % 2 * plan.outputs}" if number else "x"
    weights = ["nullptr" if start is None else f"params + {start}" for start in astuple(offsets)]
    fields = ", ".join([*weights, below, *_states(plan, index), f"{above} + {direction * model.output}"])
    backward = direction == 1 or model.direction == "reverse"
    last = index == model.layers * model.directions - 1 and not plan.writes_before_read
    flags = f"{str(backward).lower()}, {str(last).lower()}"
    (held,) = plan.held(of_x)
    return f"""\
  {{
    const Layer layer = {{{fields}}};
    {LAYER}{_product(of_x, held)}, {flags}>(layer, projections, exchanged, counter, shared);
  }}
"""


def _states(plan: Plan, index: int) -> list[str]:
    """h and c before the call, and h and c after it."""
    of_h, of_c = plan.batch * plan.model.output, plan.batch * plan.model.hidden
    if plan.state == "none":
        states = ["nullptr", "nullptr", "nullptr", f"scratch + {plan.scratch - of_c}"]
    else:
        before, after = ("state", "state") if plan.state == "stateful" else ("state_in", "state_out")
        start_of_c = plan.model.layers * plan.model.directions * of_h + index * of_c
        states = [f"{name} + {start}" for name in (before, after) for start in (index * of_h, start_of_c)]
    if plan.model.cell != "lstm":
        states[1] = states[3] = "nullptr"
    return states
