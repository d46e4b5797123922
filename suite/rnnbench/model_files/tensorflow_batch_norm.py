"""TensorFlow's FusedBatchNorm as a function of elementary operations: it has no kernel for float64.

Keras 2 writes BatchNormalization so, and LayerNormalization too, as one of the call's own means.
Source: tensorflow/core/ops/nn_ops.cc and tensorflow/core/kernels/fused_batch_norm_op.cc.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.tensorflow_graph import FUSED, PURPOSE
from rnnbench.optional import require

_GIVES = ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3")
_OUTPUT = "output"
"""What a call's results are called in a function."""


def without_fused(graph: Any) -> None:
    """Puts a call of a function in place of each such operation of a GraphDef. Raises ModelFileError."""
    outer = [node for node in graph.node if node.op in FUSED]
    for node in outer:
        _replace(graph, node)
    for function in [*graph.library.function]:
        names = {node.name for node in function.node_def if node.op in FUSED}
        for node in [item for item in function.node_def if item.name in names]:
            _replace(graph, node)
        for node in function.node_def if names else ():
            node.input[:] = [_renamed(name, names) for name in node.input]
        for key, value in [*function.ret.items()] if names else ():
            function.ret[key] = _renamed(value, names)


def _renamed(value: str, names: Iterable[str]) -> str:
    """A function says which result of an operation it means by its name there: `norm:y:0`."""
    node, _, result = value.partition(":")
    if node not in names or not result:
        return value
    return f"{node}:{_OUTPUT}:{_GIVES.index(result.partition(':')[0])}"


def _replace(graph: Any, node: Any) -> None:
    tf = require("tensorflow", *PURPOSE)
    declared = require("tensorflow.python.framework.op_def_registry", *PURPOSE).get(node.op)
    settings = {attribute.name: attribute.default_value for attribute in declared.attr} | dict(node.attr)
    factor = settings["exponential_avg_factor"].f if "exponential_avg_factor" in settings else 1.0
    training = settings["is_training"].b
    if training and factor != 1:
        raise ModelFileError(
            f"its operation {node.op} is in training mode, where it changes its running means; save the network for "
            "inference"
        )
    x_type = settings["T"].type
    scale_type = settings["U"].type if "U" in settings else x_type
    data_format, epsilon = settings["data_format"].s.decode(), settings["epsilon"].f
    count = len(declared.output_arg)
    name = f"batch_norm_{x_type}_{scale_type}_{data_format}_{training}_{epsilon!r}_{count}".replace(".", "_").replace(
        "-", "_"
    )
    if name not in {definition.signature.name for definition in graph.library.function}:
        graph.library.function.add().CopyFrom(
            _function(tf, name, x_type, scale_type, data_format, training, epsilon, count)
        )
    node.op = "PartitionedCall"
    node.attr.clear()
    node.attr["f"].func.name = name
    node.attr["Tin"].list.type.extend([x_type, *[scale_type] * 4])
    node.attr["Tout"].list.type.extend([x_type, *[scale_type] * (count - 1)])


def _function(
    tf: Any, name: str, x_type: int, scale_type: int, data_format: str, training: bool, epsilon: float, count: int
) -> Any:
    """A FunctionDef. Its means are computed in the type of the scale, as TensorFlow does."""
    channels = data_format.index("C")
    axes = [axis for axis in range(len(data_format)) if axis != channels]
    laid = [-1] + [1] * (len(data_format) - 1 - channels)

    def normalised(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        wide = tf.cast(x, scale_type)
        if training:
            mean = tf.reduce_mean(wide, axes)
            variance = tf.reduce_mean(tf.square(wide - tf.reshape(mean, laid)), axes)
        scaled = tf.math.rsqrt(tf.reshape(variance, laid) + epsilon) * tf.reshape(scale, laid)
        y = tf.cast((wide - tf.reshape(mean, laid)) * scaled + tf.reshape(offset, laid), x_type)
        if training:
            terms = tf.cast(tf.size(wide) // tf.size(mean), scale_type)
            variance = variance * terms / tf.maximum(terms - 1, 1)  # The one that it gives is of a sample.
        return [y, mean, variance, *[mean, variance, mean][: count - 3]]

    specs = [tf.TensorSpec(None, x_type), *[tf.TensorSpec([None], scale_type)] * 4]
    inner = tf.function(normalised, specs, autograph=False)
    traced = tf.function(lambda *arrays: inner(*arrays), specs, autograph=False).get_concrete_function()
    (definition,) = traced.graph.as_graph_def().library.function
    definition.signature.name = name
    return definition
