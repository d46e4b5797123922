"""What a block makes of the sums of each product of a step, unit by unit, in CUDA C++.

A step has one product or two. After the first of two, each unit gives a number of the vector that the second one reads:
an LSTM's h before its projection, or a GRU's r·h. After the last product it gives h.
"""

from __future__ import annotations

from rnnbench.backends.tvm.persistent.layout import Plan
from rnnbench.rnn import Model

_OF_X = """
    float* p = projected + (size_t)(first + vector) * PROJECTED + of_block;"""
_BEFORE = """
    const float before = staged[vector * ((HIDDEN + 3) / 4 * 4) + unit];"""
_LSTM = f"""{_OF_X}
    const size_t of_unit = (size_t)(first + vector) * HIDDEN + unit;
    const float i = gate(clipped(z[0 * UNITS] + p[0 * UNITS]));
    const float f = gate(clipped(z[1 * UNITS] + p[1 * UNITS]));
    const float g = activated(clipped(z[2 * UNITS] + p[2 * UNITS]));
    const float o = gate(clipped(z[3 * UNITS] + p[3 * UNITS]));
    const float* before = step == 0 ? layer.c_before : layer.c_after;
    const float c = clipped_cell(f * (before ? before[of_unit] : 0.0f) + i * g);
    layer.c_after[of_unit] = c;
    const float result = o * activated(c);
"""
_PROJECTED = """
    const float result = z[0];
"""
_GRU_GATES = f"""{_OF_X}{_BEFORE}
    const float r = gate(clipped(z[0 * UNITS] + p[0 * UNITS]));
    const float u = gate(clipped(z[1 * UNITS] + p[1 * UNITS]));
"""
_RESET_AFTER = f"""{_GRU_GATES}\
    const float n = activated(clipped(p[2 * UNITS] + r * z[2 * UNITS]));
    const float result = n + u * (before - n);
"""
_RESET_BEFORE = f"""{_GRU_GATES}\
    p[0 * UNITS] = before;  // kept for after the second product, which has the same units in the same threads
    p[1 * UNITS] = u;
    const float result = r * before;
"""
_CANDIDATE = f"""{_OF_X}
    const float n = activated(clipped(p[2 * UNITS] + z[0]));
    const float result = n + p[1 * UNITS] * (p[0 * UNITS] - n);
"""
_RNN = f"""{_OF_X}
    const float result = activated(clipped(z[0] + p[0]));
"""


def cells(plan: Plan) -> str:
    """The functions `after_first` and, where a step has two products, `after_second`."""
    *before, last = _bodies(plan.model)
    functions = [_function("First", body, ("UNITS", "HIDDEN", "HIDDEN")) for body in before]
    of_h = ("OUTPUT_UNITS", "OUTPUT", "WIDTH") if plan.model.projection else ("UNITS", "HIDDEN", "WIDTH")
    return "".join([*functions, _function("Second" if before else "First", last, of_h)])


def _bodies(model: Model) -> tuple[str, ...]:
    if model.cell == "lstm":
        return (_LSTM, _PROJECTED) if model.projection else (_LSTM,)
    if model.cell == "gru":
        return (_RESET_AFTER,) if model.reset_after else (_RESET_BEFORE, _CANDIDATE)
    return (_RNN,)


def _function(product: str, body: str, sizes: tuple[str, str, str]) -> str:
    """`sizes`: how many results a sequence has in a block, and in all, and how far apart two sequences' results are."""
    units, size, stride = sizes
    return f"""
// The block's units of `count` sequences from `first`. A unit of a sequence is the same thread's in each step.
__device__ __forceinline__ void after_{product.lower()}(const Layer& layer, int step, int first, int count,
                                            float* projected, const float* staged, const float* sums, float* results) {{
  for (int at = threadIdx.x; at < count * {units}; at += THREADS) {{
    const int vector = at / {units}, of_block = at % {units}, unit = blockIdx.x * {units} + of_block;
    if (unit >= {size}) continue;
    const float* z = sums + vector * {product}::ROWS + of_block;{body}\
    results[(size_t)(first + vector) * {stride} + unit] = result;
  }}
}}
"""
