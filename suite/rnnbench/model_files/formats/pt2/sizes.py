"""Numbers that a `.pt2` file computes from sizes, such as how many rows all steps have together.

Source: `_SYM_OPS` in torch/_export/serde/serialize.py (torch 2.13). Its powers, roots and shifts are not read.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.pt2.operators import require_torch

_LARGEST = 1 << 63
"""Beyond the sizes of torch. Python's numbers would grow until the memory is full."""
_PYTHONS = (
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod, operator.neg),
    *(operator.pos, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.and_),
    *(operator.or_, math.trunc),
)
_BY_NAME: dict[str, Callable[..., Any]] = {
    f"{function.__module__}.{function.__name__}": function for function in _PYTHONS
}
_TORCHS = {f"torch.{name}": name for name in ("sym_int", "sym_float", "sym_not", "sym_max", "sym_min", "sym_ite")}
SIZE_OPERATORS = frozenset((*_BY_NAME, *_TORCHS))
"""Targets of nodes that are read."""


def size_operator(name: str) -> Callable[..., Any]:
    """The function of a target in `SIZE_OPERATORS`."""
    function = _BY_NAME.get(name) or getattr(require_torch(), _TORCHS[name])

    def called(*given: Any) -> Any:
        result = function(*given)
        if isinstance(result, int) and abs(result) > _LARGEST:
            raise ModelFileError("it computes a size that is larger than any array")
        return result

    return called
