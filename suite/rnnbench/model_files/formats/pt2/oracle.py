"""The oracle of a `.pt2` file: torch in float64, or with random roundings of each operator that torch dispatches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.model_files.description import require_names
from rnnbench.model_files.errors import ModelFileError, computing
from rnnbench.model_files.formats.format import Oracle
from rnnbench.model_files.formats.pt2.graph import Pt2Node, Ref
from rnnbench.model_files.formats.pt2.operators import require_torch
from rnnbench.model_files.formats.pt2.program import Pt2Program
from rnnbench.model_files.operator_rounding import Kind, rounded_result
from rnnbench.rnn import Arithmetic, RandomRounding

_EXACT = frozenset(
    (
        *("view", "reshape", "_unsafe_view", "_reshape_alias", "t", "transpose", "permute", "unsqueeze", "squeeze"),
        *("slice", "select", "narrow", "split", "split_with_sizes", "unsafe_split", "chunk", "unsafe_chunk", "unbind"),
        *("cat", "stack", "expand", "clone", "copy_", "detach", "alias", "lift_fresh_copy", "_to_copy", "as_strided"),
        *("relu", "relu_", "neg", "abs", "maximum", "minimum", "clamp", "clamp_min", "where", "gather", "index"),
        *("index_select", "embedding", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "new_zeros"),
        *("empty", "empty_like", "constant_pad_nd", "flip", "roll", "repeat", "masked_fill", "masked_fill_", "fill_"),
        *("index_copy", "index_copy_", "index_put", "index_put_", "scatter", "scatter_", "slice_scatter", "zero_"),
    )
)
_ACTIVATIONS = frozenset(
    (
        *("sigmoid", "sigmoid_", "tanh", "tanh_", "_softmax", "_log_softmax", "exp", "log", "gelu", "silu", "elu"),
        *("erf", "sin", "cos", "pow"),
    )
)
_CASTS = {"to": 0, "_to_copy": 0, "type_as": 0, "copy_": 1}
"""Operators that may change the type of elements, and which argument they take them from."""
_PRODUCTS = {"mm": 0, "bmm": 0, "mv": 0, "dot": 0, "addmm": 1, "addmv": 1, "baddbmm": 1}
"""Where the factors begin."""
_RANDOM = frozenset(
    ("rand", "randn", "rand_like", "randn_like", "bernoulli", "multinomial", "native_dropout", "normal", "uniform")
)


class Pt2Oracle(Oracle):
    """A `.pt2` file in an arithmetic."""

    def __init__(self, path: Path) -> None:
        """Raises ModelFileError for a file that is not read; MissingExtraError without torch."""
        self._name = str(path)
        self._torch = require_torch()
        self._torch.set_num_threads(1)
        self._program = Pt2Program(path, double=True)
        if drawn := sorted(_RANDOM & {node.operator for node in self._program.file.all_nodes}):
            raise ModelFileError(f"{drawn[0]} draws random numbers, so there is no float64 result to compare with")
        file = self._program.file
        self._given = {array.name: array.dtype for array in (*file.inputs, *(before for before, _ in file.states))}
        is_wide = "float64" in (*self._given.values(), *(array.dtype for array in file.outputs))
        self._narrow = ("bfloat16", "float16", "float32") if is_wide else ("bfloat16", "float16")
        self.use(Arithmetic())

    def use(self, arithmetic: Arithmetic) -> None:
        self._arithmetic = self._own = arithmetic
        self._narrowed = {dtype: arithmetic.narrowed(dtype) for dtype in self._narrow}

    def weights(self) -> Iterable[tuple[str, np.ndarray]]:
        return self._program.file.weights.items()

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        require_names(self._given, inputs)
        tensors = {name: self._program.tensor(np.asarray(inputs[name]), dtype) for name, dtype in self._given.items()}
        with computing(self._name), self._torch.no_grad(), _float64_by_default(self._torch), self._rounding():
            results = self._program(tensors, around=self._node)
        return {name: tensor.numpy() for name, tensor in results.items()}

    def _node(self, node: Pt2Node, call: Callable[[], Any]) -> Any:
        """What a node gives, with the roundings of the type that its result has in the file."""
        types = self._program.file.types
        narrowed = self._narrowed.get(types.get(node.outputs[0], "")) if node.outputs else None
        self._own = narrowed or self._arithmetic
        result = call()
        if narrowed is None or node.operator not in _CASTS:
            return result
        source = node.args[_CASTS[node.operator]]
        if not isinstance(source, Ref) or types.get(source.name) == types[node.outputs[0]]:
            return result
        rounded = self._torch.from_numpy(np.array(rounded_result(narrowed, result.numpy(), "operation")))
        return result.copy_(rounded) if node.operator == "copy_" else rounded.to(result.dtype)

    def _rounding(self) -> Any:
        """Rounds what torch's operators give. Composed ones, such as an LSTM, have become sums and products by then."""
        mode: Any = require_torch("torch.utils._python_dispatch").TorchDispatchMode
        torch, oracle = self._torch, self
        exact = not isinstance(self._arithmetic, RandomRounding) and self._arithmetic.dtype == "float64"

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
                return _mapped(torch, result, lambda tensor: _rounded(torch, oracle._own, name, args, tensor, squares))

        return Rounding()


@contextmanager
def _float64_by_default(torch: Any) -> Iterator[None]:
    """What torch makes of whole numbers, as their quotient, is in its default type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


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
        type(result)(_mapped(torch, item, change) for item in result) if isinstance(result, (tuple, list)) else result
    )


def _rounded(
    torch: Any, arithmetic: Arithmetic, name: str, args: Sequence[Any], tensor: Any, squares: np.ndarray | None
) -> Any:
    kind: Kind = "sum" if squares is not None else "activation" if name in _ACTIVATIONS else "operation"
    terms = _terms(name, args, tensor) if squares is not None else 1
    rounded = torch.from_numpy(
        np.array(rounded_result(arithmetic, tensor.numpy(), kind, terms, None if squares is None else lambda: squares))
    )
    return tensor.copy_(rounded) if name.endswith("_") else rounded.to(tensor.dtype)


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
