"""The oracle of an ONNX file: what it gives in float64, or in another arithmetic, by ONNX's own reference evaluator."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.model_files.description import require_shape
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.format import Oracle
from rnnbench.model_files.formats.onnx import dynamic
from rnnbench.model_files.formats.onnx.file import INSTEAD, graph_inputs, read_onnx, require_onnx, type_names
from rnnbench.model_files.formats.onnx.fused import INTERNAL, MOVE_AXIS, in_own_operators, move_axis
from rnnbench.model_files.formats.onnx.node_rounding import rounding
from rnnbench.model_files.formats.onnx.quantised import (
    QUANTIZE,
    activations_of,
    fixed_ranges,
    use_onnx_quantisers,
)
from rnnbench.model_files.formats.onnx.recurrent_operators import OPERATORS, recurrent_operator
from rnnbench.model_files.formats.onnx.reference_operators import reference_operators
from rnnbench.model_files.formats.onnx.retyped import narrow_values, retyped
from rnnbench.model_files.formats.onnx.tensors import (
    all_nodes,
    load_external,
    names_inside,
    opset_version,
    shape_of,
)
from rnnbench.optional import MissingExtraError
from rnnbench.outside_text import describe_error, safe_text
from rnnbench.rnn import Arithmetic, Range

_RANDOM = frozenset(
    ["RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"]
)
_FLOAT32_INSIDE = frozenset(["GridSample", "AffineGrid", "LinearAttention", "CausalConvWithState"])
_WHY = {
    **dict.fromkeys(_RANDOM, "draws random numbers"),
    **dict.fromkeys(_FLOAT32_INSIDE, "is computed in float32 by ONNX's reference, whatever it is given"),
}
_WRONG_WEIGHTS = "All of these are in the file, so no call of it is right: export the network again"
_OF_PROJECTION = " (torch's exporter writes such weights for an LSTM with proj_size: write a cell of your own)"
_TRAINING = 2
"""Index of `training_mode` in the inputs of Dropout."""
_OLDEST = 7
"""Version of ONNX's operators from which on their arrays are broadcast as NumPy does, and not as an attribute says."""
_SCAN_WITHOUT_BATCH = 9
"""Version of ONNX's operators from which on a Scan has no axis of the batch."""


@dataclass(frozen=True)
class _Quantised:
    """The values that the file has in bytes or 16 bits, by name."""

    fixed: Mapping[str, Range]
    """With a fixed range."""
    own: Collection[str]
    """With the range that they have in each call."""
    biases: frozenset[str]
    """Biases on their way to whole numbers. The oracle does not round them."""

    @classmethod
    def of(cls, model: Any) -> _Quantised:
        """Raises ModelFileError for forms that are not computed here."""
        fixed, own = fixed_ranges(model), dynamic.own_ranges(model)
        if fixed and activations_of(model) == "dynamic":
            raise ModelFileError(
                "it quantises by fixed ranges and by those of each call, so its tolerance is not known; quantise it in "
                "one of these ways"
            )
        return cls(fixed, own, dynamic.whole_biases(model))


@dataclass(frozen=True)
class _Known:
    """What is known of a file beside its nodes."""

    narrow: Mapping[str, str]
    """The types of values that are narrower than the arithmetic, by name."""
    quantised: _Quantised
    constant: frozenset[str]
    """The values that are the same in every call."""
    has_lstm: bool

    @classmethod
    def of(cls, model: Any) -> _Known:
        """Raises ModelFileError for quantised forms that are not computed here."""
        constant = {tensor.name for tensor in model.graph.initializer}
        for node in model.graph.node:
            if constant.issuperset(names_inside(node)) and constant.issuperset(filter(None, node.input)):
                constant.update(node.output)
        has_lstm = any(node.op_type == "LSTM" for node in all_nodes(model))
        return cls(narrow_values(model), _Quantised.of(model), frozenset(constant), has_lstm)


class OnnxOracle(Oracle):
    """An ONNX file in an arithmetic."""

    def __init__(self, path: Path) -> None:
        """Raises ModelFileError for a file that is not read or not computed rightly; MissingExtraError without onnx."""
        self._name = str(path)
        with self._named():
            self._model = read_onnx(path).model
            load_external(self._model, path.parent, type_names())
            use_onnx_quantisers(self._model)
            self._model = in_own_operators(self._model)
            _refuse(self._model)
            self._known = _Known.of(self._model)
        self.use(Arithmetic())

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        arrays = {name: self._cast(name, np.asarray(array)) for name, array in inputs.items()}
        if missing := self.inputs.keys() - arrays.keys():
            raise ValueError(f"no value for the inputs {sorted(missing)}; the file has {list(self.inputs)}")
        with self._named(), np.errstate(all="ignore"):
            values = self._evaluator.run(None, arrays)
        return {value.name: array for value, array in zip(self._model.graph.output, values, strict=True)}

    def weights(self) -> Iterator[tuple[str, np.ndarray]]:
        to_array = require_onnx().numpy_helper.to_array
        yield from ((weight.name, to_array(weight)) for weight in self._model.graph.initializer)

    def use(self, arithmetic: Arithmetic) -> None:
        self._arithmetic = arithmetic
        model = retyped(self._model, arithmetic)
        self.inputs = {value.name: value for value in graph_inputs(model.graph)}
        with self._named():
            self._evaluator = _evaluator_class(arithmetic, self._known, opset_version(model))(model)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Whatever ONNX's reference raises says which file it was."""
        try:
            yield
        except (MemoryError, MissingExtraError):
            raise
        except ModelFileError as error:
            raise ModelFileError(f"{self._name}: {error}") from error
        except Exception as error:
            raise ModelFileError(f"{self._name}: it cannot be computed: {describe_error(error)[:300]}") from error

    def _cast(self, name: str, array: np.ndarray) -> np.ndarray:
        if name not in self.inputs:
            raise ValueError(f"the file has no input '{safe_text(name, 80)}'; it has {list(self.inputs)}")
        value = self.inputs[name]
        dtype = require_onnx().helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        declared = shape_of(value)
        if declared is not None:
            require_shape(name, declared, array)
        if dtype.kind == "f" and array.dtype.kind in "fiu":
            return self._arithmetic.cast(array).astype(dtype, copy=False)
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise ValueError(f"{name}: expected {dtype}, got {array.dtype}")
        return array.astype(dtype, copy=False)


def _refuse(model: Any) -> None:
    version = opset_version(model)
    if version < _OLDEST and any(node.domain in ("", "ai.onnx") for node in all_nodes(model)):
        raise ModelFileError(
            f"its operators are of version {version}, which broadcast arrays in another way; export the network with "
            f"opset {_OLDEST} or later, or convert the file (onnx.version_converter.convert_version)"
        )
    for node in all_nodes(model):
        if node.domain in ("", "ai.onnx") and node.op_type == "Scan" and version < _SCAN_WITHOUT_BATCH:
            raise ModelFileError(
                f"Scan of version {version} has a batch of its own, which is not computed here; export the network "
                f"with opset {_SCAN_WITHOUT_BATCH} or later"
            )
        if node.domain in ("", "ai.onnx") and node.op_type in _WHY:
            raise ModelFileError(
                f"{node.op_type} {_WHY[node.op_type]}, so there is no float64 result to compare with; export the "
                "network without it"
            )
        if node.domain not in ("", "ai.onnx", "ai.onnx.ml", INTERNAL) and not dynamic.is_dynamic_lstm(node):
            called = safe_text(f"{node.domain}.{node.op_type}", 100)
            raise ModelFileError(f"{called} is no operator of ONNX, so its float64 result is not known; {INSTEAD}")


def _evaluator_class(arithmetic: Arithmetic, known: _Known, opset: int) -> Any:
    """ONNX's evaluator, with each node in the arithmetic. It makes evaluators of its own class for inner graphs."""
    base = require_onnx("onnx.reference").ReferenceEvaluator
    operator = require_onnx("onnx.reference.op_run").OpRun
    # ONNX's own classes of these operators refuse some attributes that are computed here.
    classes = [type(name, (operator,), {"op_domain": "", "_run": _never}) for name in OPERATORS]
    classes.append(type(dynamic.LSTM, (operator,), {"op_domain": dynamic.LSTM_DOMAIN, "_run": _never}))
    classes.append(type(MOVE_AXIS, (operator,), {"op_domain": INTERNAL, "_run": move_axis}))
    classes += reference_operators(opset)

    def initialise(self: Any, *arguments: Any, **options: Any) -> None:
        base.__init__(self, *arguments, **{**options, "new_ops": classes})
        for node in self.rt_nodes_:
            node.run = _run_of(node, arithmetic, known)

    return type("EvaluatorInArithmetic", (base,), {"__init__": initialise})


def _never(self: Any, *inputs: Any, **attributes: Any) -> Any:
    raise AssertionError("`_run_of` replaces what would call this")


def _run_of(node: Any, arithmetic: Arithmetic, known: _Known) -> Any:
    """What replaces the method `run` of a node of the evaluator."""
    proto, run = node.onnx_node, _computation_of(node, arithmetic, known)
    names = [*proto.output]

    def checked(*inputs: Any, **options: Any) -> list[Any]:
        """Without outputs that have no name: the evaluator would take them for inputs that are left out."""
        _check_deterministic(proto, inputs)
        try:
            results = run(*inputs, **options)
        except (MemoryError, ModelFileError, MissingExtraError):
            raise
        except Exception as error:
            pairs = zip(proto.input, inputs, strict=False)
            of = safe_text(", ".join(f"{name} {[*getattr(given, 'shape', ())]}" for name, given in pairs), 200)
            message = f"ONNX's reference fails in {proto.op_type} of {of}: {describe_error(error)[:200]}"
            if known.constant.issuperset(filter(None, proto.input)):
                message += f". {_WRONG_WEIGHTS}{_OF_PROJECTION if known.has_lstm else ''}"
            raise ModelFileError(message) from error
        outputs = [output if name else None for name, output in zip(names, results, strict=False)]
        if proto.op_type not in ("Constant", "Cast"):
            for output in outputs:
                _check_type(proto, output, arithmetic)
        return outputs

    return checked


def _computation_of(node: Any, arithmetic: Arithmetic, known: _Known) -> Any:
    """What computes a node: the suite's own operator where there is one, else the evaluator's, with its roundings."""
    proto, quantised = node.onnx_node, known.quantised
    dtype = next((known.narrow[name] for name in proto.output if name in known.narrow), "")
    node_arithmetic = arithmetic.narrowed(dtype) if dtype else arithmetic
    if dynamic.is_own(proto, *OPERATORS):
        return recurrent_operator(proto, node_arithmetic.unquantised(), _attributes(proto))
    if dynamic.is_dynamic_lstm(proto):
        return dynamic.dynamic_lstm(proto, node_arithmetic, _attributes(proto))
    if dynamic.is_own(proto, dynamic.QUANTIZE):
        return dynamic.quantise(node_arithmetic)
    if dynamic.is_own(proto, *dynamic.PRODUCTS):
        return rounding(proto, dynamic.product(node, node_arithmetic), node_arithmetic)
    if proto.op_type == QUANTIZE and (own_range := quantised.fixed.get(proto.output[0])):
        return _into(own_range, node_arithmetic)
    if not quantised.biases.isdisjoint(proto.output):
        return rounding(proto, _as_it_is, node_arithmetic)
    if proto.op_type == "DequantizeLinear" and proto.input[0] in (quantised.fixed.keys() | quantised.own):
        return rounding(proto, _as_it_is, node_arithmetic)
    return rounding(proto, node.run, node_arithmetic, narrows=bool(dtype))


def _attributes(proto: Any) -> dict[str, Any]:
    get = require_onnx().helper.get_attribute_value
    return {attribute.name: get(attribute) for attribute in proto.attribute}


def _into(range_: Range, arithmetic: Arithmetic) -> Any:
    """QuantizeLinear: the values that its integers stand for. Outside int8's arithmetics, it saturates alone."""

    def quantise(x: np.ndarray, *scale_and_zero: Any, **options: Any) -> tuple[np.ndarray]:
        return (arithmetic.quantised(x.reshape(1, -1), range_).reshape(x.shape),)

    return quantise


def _as_it_is(x: np.ndarray, *scale_and_zero: Any, **options: Any) -> tuple[np.ndarray]:
    """DequantizeLinear of what `_into` gives, which is in the units of x already; or a bias that is not rounded."""
    return (x,)


def _check_deterministic(proto: Any, inputs: Sequence[Any]) -> None:
    """A Dropout of a file that was exported in training mode draws random numbers."""
    if proto.op_type == "Dropout" and len(inputs) > _TRAINING and np.any(inputs[_TRAINING] or False):
        raise ModelFileError("Dropout draws random numbers in training mode; export the network for inference")


def _check_type(proto: Any, output: Any, arithmetic: Arithmetic) -> None:
    """A result must not fall back to a type that is narrower than the arithmetic's."""
    kind = getattr(output, "dtype", None)
    if kind is not None and kind.kind == "f" and kind.itemsize < arithmetic.carrier.itemsize:
        raise ModelFileError(f"ONNX's reference computes {proto.op_type} in {kind}, not in {arithmetic.carrier}")
