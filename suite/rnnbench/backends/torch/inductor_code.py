"""What Inductor's generated code contains: its calls by name, and how the time steps were lowered.

The code that calls the kernels is C++, or Python where `torch.compile` makes it for a GPU.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest

from rnnbench.backends.base import Request
from rnnbench.backends.torch.counting import Kernel, copies_among, kernels_by_layer, lowered, lowered_together
from rnnbench.backends.torch.library import ONEDNN_KERNEL
from rnnbench.rnn import runs_together

_LOOP = "while (1) {"
_PYTHON_LOOP = re.compile(r"^ +while should_loop:$", re.MULTILINE)
_PYTHON_BODY = re.compile(r"^def while_loop_body\w*\(args\):\n((?:[ \t].*\n|\n)+)", re.MULTILINE)
"""Where Python calls the kernels, the body of a loop is a function."""
_KERNEL_CALL = re.compile(r"^ +(cpp_fused_\w+|call_triton_\w+|triton_\w+\.run)\(", re.MULTILINE)
_PRODUCT_KERNEL = re.compile(r"\b(cpp_\w+?)_micro_gemm\b")
"""The name of a kernel that is a product: its definition has the innermost loop of Inductor's template in it."""
_PRODUCT = "micro_gemm"
_PRODUCTS = ("mm", "addmm", _PRODUCT, "_linear_pointwise", "_linear_pointwise_binary", "_mkl_linear")
"""Products of two matrices: by ATen, by Inductor's template, and by oneDNN or MKL with packed weights."""
_LIBRARY_CALL = re.compile(r"(?:aoti_torch_(?:cpu|cuda)_|extern_kernels\.)(\w+?)(?:_out)?\(")
SMALL_OUTER_PRODUCT = 32
"""The most elements of the two vectors of an outer product that Inductor writes out."""
SMALL_SIDE = 16
"""The longest side of a matrix whose product with a vector, and a sum after it, Inductor writes out."""
_ADDITION = re.compile(r"= tmp\d+ \+ tmp\d+;?$", re.MULTILINE)


def calls(code: str) -> dict[str, int]:
    """Counts of the calls of generated kernels, of calls into torch by name, and of loops around them."""
    counts = Counter(_LIBRARY_CALL.findall(code))
    kernels = Counter(_KERNEL_CALL.findall(code))
    counts[_PRODUCT] = sum(kernels[name] for name in set(_PRODUCT_KERNEL.findall(code)))
    counts["kernel"] = kernels.total() - counts[_PRODUCT]
    counts["loop"] = code.count(_LOOP) + len(_PYTHON_LOOP.findall(code))
    return {name: count for name, count in sorted(counts.items()) if count}


def lowered_code(request: Request, code: str) -> str:
    """`fused` where oneDNN's kernel runs a whole layer, and else `given` for a user's file. Otherwise the copies of
    bodies in each loop and outside.

    Copies are counted by their products; the loops are in the order of the layers. A body without products, as that of
    a counter, is counted by its additions, and a loop over it has the copies of the source. Additions of projections
    cannot be told from those of bodies: without a loop, each step is then a copy, since Inductor makes no loop itself.
    """
    if ONEDNN_KERNEL in calls(code):
        return "fused"
    if request.file is not None:
        return "given"
    if runs_together(request.strategy.time):
        return lowered_together(request, len(list(_loop_bodies(code))))
    layers = kernels_by_layer(request.model, request.strategy.chunk, request.batch)
    products_called = partial(_products_called, request.device)
    products = [products_called(layer.step) for layer in layers if layer.step is not None]
    bodies, copies = list(_loop_bodies(code)), request.strategy.copies or 1
    if not any(products):
        if bodies:
            return lowered([copies] * len(bodies), 0)
        if any(_additions_among(layer.projection) for layer in layers):
            return lowered([], request.strategy.chunk * len(products))
        return lowered([], copies_among(layers, _additions_among, _additions(code)))
    in_loops = [_products(body) for body in bodies]
    loops = [found // of_copy if of_copy else copies for found, of_copy in zip(in_loops, products, strict=False)]
    return lowered(loops, copies_among(layers, products_called, _products(code) - sum(in_loops)))


def _products_called(device: str, kernels: Sequence[Kernel]) -> int:
    """The products, [rows, size] by [size, columns], that Inductor calls. It (2.13) writes the smallest in kernels, and
    for a GPU those of two vectors."""
    called = 0
    for kernel, following in zip_longest(kernels, kernels[1:]):
        if kernel.name == "mm":
            (rows, size), (_, columns) = kernel.shapes
            summed = following is not None and following.name == "add"
            outer = size == 1 and min(rows, columns) > 1
            if device != "cpu":
                called += not outer
                continue
            small = rows == 1 and summed and max(size, columns) <= SMALL_SIDE
            outer = outer and rows + columns <= SMALL_OUTER_PRODUCT
            called += not (small or outer or rows == columns == 1)
    return called


def _additions_among(kernels: Sequence[Kernel]) -> int:
    return sum(kernel.name == "add" for kernel in kernels)


def _loop_bodies(code: str) -> Iterator[str]:
    """The code between the braces of each loop, or in the function of its body."""
    yield from _PYTHON_BODY.findall(code)
    for loop in re.finditer(re.escape(_LOOP), code):
        depth, end = 1, loop.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        yield code[loop.end() : end]


def _products(code: str) -> int:
    counts = calls(code)
    return sum(counts.get(name, 0) for name in _PRODUCTS)


def _additions(code: str) -> int:
    """The additions of a kernel without products. Code for the rest of a vector repeats them, so it is not added."""
    return max(len(_ADDITION.findall(part)) for part in code.split("if(C10_"))
