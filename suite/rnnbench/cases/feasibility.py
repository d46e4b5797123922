"""Whether a point can be run at all: its model is valid, its calls fit the stream, its arrays are within bounds.

A point that no backend could run is a mistake in the case, and an error before anything runs. If only some backends
cannot run it, their `support` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from rnnbench.cases.matrix import Value, Values
from rnnbench.cases.schema import ITEMSIZE, LEAVES
from rnnbench.outside_text import describe_error
from rnnbench.rnn import Model, Network, broken_families, families, primitives_of

MAX_BYTES = 2 << 30
"""Largest size of the weights, and of one stream's x or y: the limit of a protobuf message, and so of an ONNX model."""

_MODEL_LEAVES = [leaf for leaf, section in LEAVES.items() if section == "model"]


@dataclass(frozen=True)
class Fault:
    """A mistake in a point. It is reported at the first of `leaves`; one of `leaves` has to change."""

    leaves: tuple[str, ...]
    message: str


def missing_keys(model: object) -> list[str]:
    """The keys that the families named in the section `model:` require, and that it lacks."""
    if not isinstance(model, dict):
        return []
    named = model.get("network", [Model.network])
    chosen = [families().get(name) for name in (named if isinstance(named, list) else [named]) if isinstance(name, str)]
    required = [
        key
        for family in chosen
        if family and family.keys_in_case
        for key, field in family.model_fields.items()
        if field.is_required()
    ]
    return [key for key in dict.fromkeys(required) if key not in model]


def model_of(values: Values) -> Network | Fault:
    """The network of a point, or the mistake in it."""
    if reason := broken_families().get(str(values["network"])):
        return Fault(("network",), reason)
    family = families()[str(values["network"])]
    written = {leaf: values[leaf] for leaf in _MODEL_LEAVES if leaf != "network" and values[leaf] is not None}
    if unknown := next((leaf for leaf in written if leaf not in family.model_fields), None):
        keys = ", ".join(family.model_fields) or "none"
        return Fault((unknown, "network"), f"the network {family.network} has no {unknown}; its keys are {keys}")
    try:
        return family.model_validate(written)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        message = first["msg"].removeprefix("Value error, ")
        if first["loc"] and (leaf := str(first["loc"][0])) in written:
            message = f"{message.replace('Input', leaf, 1)}, not {written[leaf]}"
        subject = "cell" if family is Model else "network"
        named = [leaf for leaf in re.findall(r"\w+", message) if leaf in written and leaf != subject]
        return Fault((*dict.fromkeys(named), subject), message)


def faults(values: Values, model: Network) -> Iterator[Fault]:
    """All mistakes in a point whose network is valid."""
    yield from _call_faults(values)
    too_large = list(_size_faults(values, model))
    yield from too_large
    if not too_large and not isinstance(model, Model) and model.keys_in_case:
        yield from _layer_faults(model)
    strategy = {leaf: str(values[leaf]) for leaf in ("time", "state", "dtype")}
    if refused := model.refusal(**strategy, chunk=_integer(values, "chunk"), batch=_integer(values, "batch")):
        leaf, message = refused
        yield Fault((leaf,), message)
    if not model.can_stream and values["state"] != "none":
        yield Fault(
            ("state", "direction"),
            f"a {values['direction']} model needs whole sequences, so its state is none, not {values['state']}",
        )


def _layer_faults(network: Network) -> Iterator[Fault]:
    """Layers whose equations give other sizes than they say."""
    try:
        primitives_of(network)
    except Exception as error:  # noqa: BLE001 the equations of any package's layers are run
        yield Fault(("network",), f"the layers of {network.network} contradict each other: {describe_error(error)}")


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


def _size_faults(values: Values, model: Network) -> Iterator[Fault]:
    itemsize = ITEMSIZE[str(values["dtype"])]
    weights = model.weight_count * itemsize
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


def _integer(values: Mapping[str, Value], leaf: str) -> int:
    value = values[leaf]
    assert isinstance(value, int), f"{leaf} is a whole number by its schema"
    return value


def _gib(nbytes: int) -> str:
    return f"{nbytes / 2**30:,.1f} GiB"
