"""Reading Inductor's generated C++: which calls it makes, and what became of a program's steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from rnnbench.backends.torch.counting import lowered
from rnnbench.backends.torch.library import ONEDNN_KERNEL
from rnnbench.rnn.spec import Model

_LOOP = "while (1) {"
_KERNEL_CALL = re.compile(r"^ +(cpp_fused_\w+)\(", re.MULTILINE)
_LIBRARY_CALL = re.compile(r"aoti_torch_cpu_(\w+?)(?:_out)?\(")
_ADDITION = re.compile(r"= tmp\d+ \+ tmp\d+;")


def calls(code: str) -> dict[str, int]:
    """Calls of generated kernels, calls into torch's own by name, and loops around them."""
    counts = Counter(_LIBRARY_CALL.findall(code))
    counts["kernel"] = len(_KERNEL_CALL.findall(code))
    counts["loop"] = code.count(_LOOP)
    return {name: count for name, count in sorted(counts.items()) if count}


def lowered_code(model: Model, code: str, copies: int) -> str:
    """oneDNN's kernel for a whole layer; or the copies of the cell in each loop and outside, by their products.

    A counter takes none, and a loop over it has the `copies` that went in.
    """
    if ONEDNN_KERNEL in calls(code):
        return "fused"
    bodies = list(_loop_bodies(code))
    if model.cell == "counter":
        return lowered([copies] * len(bodies), 0 if bodies else _additions(code))
    rows = model.layers * model.directions
    each = 2 if model.projection or not model.reset_after else 1
    inside = [_products(body) for body in bodies]
    return lowered([products // each for products in inside], (_products(code) - rows - sum(inside)) // each)


def _loop_bodies(code: str) -> Iterator[str]:
    """What stands between the braces of each loop."""
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
    """Of a kernel without products; the rest of a vector, where there is one, has the same once more."""
    return max(len(_ADDITION.findall(part)) for part in code.split("if(C10_"))
