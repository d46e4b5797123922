"""The oracle of a `.pt2` file: torch in float64, or with random roundings of each operator that torch dispatches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.pt2.operators import require_torch
from rnnbench.model_files.formats.pt2.program import Pt2Program
from rnnbench.model_files.operator_rounding import Kind, rounded_result
from rnnbench.outside_text import describe_error
from rnnbench.rnn import Arithmetic, RandomRounding

_EXACT = frozenset(
    (
        *("view", "reshape", "_unsafe_view", "_reshape_alias", "t", "transpose", "permute", "unsqueeze", "squeeze"),
        *("slice", "select", "narrow", "split", "split_with_sizes", "unsafe_split", "chunk", "unsafe_chunk", "unbind"),
        *("cat", "stack", "expand", "clone", "copy_", "detach", "alias", "lift_fresh_copy", "_to_copy", "as_strided"),
        *("relu", "relu_", "neg", "abs", "maximum", "minimum", "clamp", "clamp_min", "where", "gather", "index"),
        *("index_select", "embedding", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "new_zeros"),
        *("empty", "empty_like", "constant_pad_nd", "flip", "roll", "repeat"),
    )
)
_ACTIVATIONS = frozenset(
    (
        *("sigmoid", "sigmoid_", "tanh", "tanh_", "_softmax", "_log_softmax", "exp", "log", "gelu", "silu", "elu"),
        *("erf", "sin", "cos", "pow"),
    )
)
_PRODUCTS = {"mm": 0, "bmm": 0, "mv": 0, "dot": 0, "addmm": 1, "addmv": 1, "baddbmm": 1}
"""Where the factors begin."""
_RANDOM = frozenset(
    ("rand", "randn", "rand_like", "randn_like", "bernoulli", "multinomial", "native_dropout", "normal", "uniform")
)


class Pt2Oracle:
    """A `.pt2` file in an arithmetic (`formats.Oracle`)."""

    def __init__(self, path: Path) -> None:
        """Raises ModelFileError for a file that is not read; MissingExtraError without torch."""
        self._name = str(path)
        self._torch = require_torch()
        self._torch.set_num_threads(1)
        self._program = Pt2Program(path, double=True)
        if drawn := sorted(_RANDOM & {node.operator for node in self._program.file.nodes}):
            raise ModelFileError(f"{drawn[0]} draws random numbers, so there is no float64 result to compare with")
        if self._program.file.is_narrow:
            raise ModelFileError("it computes in float16 or bfloat16, so its float64 result is not known")
        self._arithmetic = Arithmetic()

    def in_arithmetic(self, arithmetic: Arithmetic) -> Pt2Oracle:
        """The same file in another arithmetic. The file is not read again."""
        other = copy(self)
        other._arithmetic = arithmetic
        return other

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """One call: every output by name. Raises as `formats.Oracle.run` does."""
        file, torch = self._program.file, self._torch
        expected = [array.name for array in (*file.inputs, *(before for before, _ in file.states))]
        if sorted(expected) != sorted(inputs):
            raise ValueError(f"expected the inputs {expected}, got {list(inputs)}")
        given = {name: self._program.tensor(np.asarray(array)) for name, array in inputs.items()}
        try:
            with torch.no_grad(), self._rounding():
                made = self._program(given)
        except (MemoryError, ModelFileError):
            raise
        except Exception as error:
            raise ModelFileError(f"{self._name}: it cannot be computed: {describe_error(error)[:300]}") from error
        return {name: tensor.numpy() for name, tensor in made.items()}

    def _rounding(self) -> Any:
        """Rounds what torch's operators give. Composed ones, such as an LSTM, have become sums and products by then."""
        mode: Any = require_torch("torch.utils._python_dispatch").TorchDispatchMode
        torch, arithmetic = self._torch, self._arithmetic
        exact = not isinstance(arithmetic, RandomRounding) and arithmetic.dtype == "float64"

        class Rounding(mode):  # type: ignore[misc]
            def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                name = function.overloadpacket.__name__
                if _draws(torch, function, args, kwargs or {}):
                    raise ModelFileError(f"{name} draws random numbers; export the network for inference (eval())")
                # What an operator writes in place is read before.
                squares = None if exact else _squares(name, function, args)
                result = function(*args, **(kwargs or {}))
                if exact or name in _EXACT:
                    return result
                return _mapped(torch, result, lambda tensor: _rounded(torch, arithmetic, name, args, tensor, squares))

        return Rounding()


def _draws(torch: Any, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether an operator that torch dispatches draws, such as what a dropout in training mode becomes.

    Torch tags operators that may. One with a share that it drops draws where that is not 0.
    """
    if torch.Tag.nondeterministic_seeded not in function.tags:
        return False
    names = [argument.name for argument in function._schema.arguments]
    values = {**dict(zip(names, args, strict=False)), **kwargs}
    return "dropout_p" not in names or bool(values.get("dropout_p", 0.0))


def _mapped(torch: Any, result: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(result, torch.Tensor):
        return change(result) if result.is_floating_point() else result
    return (
        type(result)(_mapped(torch, each, change) for each in result) if isinstance(result, (tuple, list)) else result
    )


def _rounded(
    torch: Any, arithmetic: Arithmetic, name: str, args: Sequence[Any], tensor: Any, squares: np.ndarray | None
) -> Any:
    kind: Kind = "sum" if squares is not None else "activation" if name in _ACTIVATIONS else "operation"
    terms = _terms(name, args, tensor) if squares is not None else 1
    done = torch.from_numpy(
        np.array(rounded_result(arithmetic, tensor.numpy(), kind, terms, None if squares is None else lambda: squares))
    )
    return tensor.copy_(done) if name.endswith("_") else done.to(tensor.dtype)


def _terms(name: str, args: Sequence[Any], tensor: Any) -> int:
    if name in _PRODUCTS:
        return int(args[_PRODUCTS[name]].shape[-1])
    if name == "convolution":
        return math.prod(args[1].shape[1:])
    return int(args[0].numel() // max(1, tensor.numel()))


def _squares(name: str, function: Any, args: Sequence[Any]) -> np.ndarray | None:
    """The sum of the squares of the products that an operator adds up; None for other operators."""
    if name in _PRODUCTS:
        first = _PRODUCTS[name]
        return np.asarray((args[first].square() @ args[first + 1].square()).numpy())
    if name == "convolution":
        return np.asarray(function(args[0].square(), args[1].square(), None, *args[3:]).numpy())
    if name in ("sum", "mean") and args[0].is_floating_point():
        squares = function(args[0].square(), *args[1:])
        share = 1 if name == "sum" else args[0].numel() // max(1, squares.numel())
        return np.asarray((squares / share).numpy())
    return None
