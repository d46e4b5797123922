"""What Inductor's generated C++ contains: its calls by name, and how the time steps were lowered."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from rnnbench.backends.torch.counting import lowered
from rnnbench.backends.torch.library import ONEDNN_KERNEL
from rnnbench.rnn import Model

_LOOP = "while (1) {"
_KERNEL_CALL = re.compile(r"^ +(cpp_fused_\w+)\(", re.MULTILINE)
_LIBRARY_CALL = re.compile(r"aoti_torch_cpu_(\w+?)(?:_out)?\(")
_ADDITION = re.compile(r"= tmp\d+ \+ tmp\d+;")


def calls(code: str) -> dict[str, int]:
    """Counts of the calls of generated kernels, of calls into torch by name, and of loops around them."""
    counts = Counter(_LIBRARY_CALL.findall(code))
    counts["kernel"] = len(_KERNEL_CALL.findall(code))
    counts["loop"] = code.count(_LOOP)
    return {name: count for name, count in sorted(counts.items()) if count}


def lowered_code(model: Model, code: str, copies: int) -> str:
    """`fused` where oneDNN's kernel runs a whole layer. Otherwise the copies of the cell in each loop and outside.

    Copies are counted by their products. A counter has no products: a loop over it has the `copies` of the source.
    """
    if ONEDNN_KERNEL in calls(code):
        return "fused"
    bodies = list(_loop_bodies(code))
    if model.cell == "counter":
        return lowered([copies] * len(bodies), 0 if bodies else _additions(code))
    rows = model.layers * model.directions
    per_copy = 2 if model.projection or not model.reset_after else 1
    in_loops = [_products(body) for body in bodies]
    outside = _products(code) - rows - sum(in_loops)
    return lowered([products // per_copy for products in in_loops], outside // per_copy)


def _loop_bodies(code: str) -> Iterator[str]:
    """The code between the braces of each loop."""
    for loop in re.finditer(re.escape(_LOOP), code):
        depth, end = 1, loop.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        yield code[loop.end() : end]


def _products(code: str) -> int:
    counts = calls(code)
    return sum(counts.get(name, 0) for name in ("mm", "addmm"))


def _additions(code: str) -> int:
    """The additions of a kernel without products. Code for the rest of a vector repeats them, so it is not added."""
    return max(len(_ADDITION.findall(part)) for part in code.split("if(C10_"))
