"""Whether a point can be run at all: its model makes sense, its calls fit the stream, its arrays are within bounds.

What no backend could run is a mistake in the case, and is an error before anything runs. What one backend cannot run is
for that backend's `support` to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from rnnbench.cases.matrix import Value, Values
from rnnbench.cases.schema import ITEMSIZE, LEAVES
from rnnbench.rnn import GATES, Model

MAX_BYTES = 2 << 30
"""Largest size of the weights, and of one stream's x or y: the limit of a protobuf message, and so of an ONNX model."""

_MODEL_LEAVES = [leaf for leaf, section in LEAVES.items() if section == "model"]


@dataclass(frozen=True)
class Fault:
    """What is wrong with a point. The first of `leaves` is the place; one of `leaves` has to change."""

    leaves: tuple[str, ...]
    message: str


def model_of(values: Values) -> Model | Fault:
    """The model of a point, or what is wrong with it."""
    try:
        return Model.model_validate({leaf: values[leaf] for leaf in _MODEL_LEAVES})
    except ValidationError as error:
        message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        named = [leaf for leaf in re.findall(r"\w+", message) if leaf in _MODEL_LEAVES and leaf != "cell"]
        return Fault((*dict.fromkeys(named), "cell"), message)


def faults(values: Values, model: Model) -> Iterator[Fault]:
    """All that is wrong with a point whose model has no fault."""
    yield from _call_faults(values)
    yield from _size_faults(values, model)
    if model.direction != "forward" and values["state"] != "none":
        yield Fault(
            ("state", "direction"),
            f"a {model.direction} model needs whole sequences, so its state is none, not {values['state']}",
        )


def _call_faults(values: Values) -> Iterator[Fault]:
    steps, chunk, time = (_integer(values, "steps"), _integer(values, "chunk"), str(values["time"]))
    if chunk > steps:
        yield Fault(
            ("chunk", "steps"),
            f"a call of {chunk} steps is longer than the workload of {steps}; write a smaller one or all",
        )
    elif values["state"] == "none" and steps % chunk:
        yield Fault(
            ("chunk", "steps", "state"),
            f"with state none each call is a whole sequence, and {steps} steps are no multiple of {chunk}",
        )
    if values["lengths"] == "ragged" and values["state"] != "none":
        yield Fault(("lengths", "state"), f"rows end inside whole sequences, so state is none, not {values['state']}")
    copies = int(time.partition(":")[2] or 1)
    if chunk % copies:
        yield Fault(("time", "chunk"), f"{time} needs calls of a multiple of {copies} steps, and the chunk is {chunk}")


def _size_faults(values: Values, model: Model) -> Iterator[Fault]:
    itemsize = ITEMSIZE[str(values["dtype"])]
    weights = _weights(model) * itemsize
    if weights > MAX_BYTES:
        yield Fault(
            ("hidden", "input", "layers"),
            f"the weights would take {_gib(weights)}, and at most {_gib(MAX_BYTES)} are allowed",
        )
    stream = _integer(values, "steps") * _integer(values, "batch") * max(model.input, model.width) * itemsize
    if stream > MAX_BYTES:
        yield Fault(
            ("steps", "batch", "input", "hidden"),
            f"the stream would take {_gib(stream)} (steps × batch × width), and at most {_gib(MAX_BYTES)} are allowed",
        )


def _weights(model: Model) -> int:
    """Elements of all weight matrices and biases."""
    rows = GATES[model.cell] * model.hidden
    total = 0
    for layer in range(model.layers):
        columns = model.layer_input(layer) + model.output + (2 if model.bias else 0)
        total += model.directions * (rows * columns + model.projection * model.hidden)
    return total


def _integer(values: Mapping[str, Value], leaf: str) -> int:
    value = values[leaf]
    assert isinstance(value, int), f"{leaf} is a whole number by its schema"
    return value


def _gib(nbytes: int) -> str:
    return f"{nbytes / 2**30:,.1f} GiB"
