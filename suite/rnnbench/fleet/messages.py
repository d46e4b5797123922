"""The messages between the driver and a node's process: lines of JSON.

The driver sends one `GroupWork`. The process answers with `NodeFacts`, and waits until the driver sends `GO`. Then it
measures, and sends `StageBegun` and `TrialDone`. Its last message is `GroupDone` or `GroupFailed`.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, TypeAdapter, ValidationError

from rnnbench.cases import ExpectedFailure, Trial
from rnnbench.disk import any_damage_is_told
from rnnbench.fleet.same_suite import SuiteFacts
from rnnbench.outside_text import OutsideText
from rnnbench.results import SAMPLE_COLUMNS, SAMPLES_CAP, Conditions, Record

GO = b"go"


class MessageError(Exception):
    """A line is no message, or a message is not expected here."""


@dataclass(frozen=True)
class GroupWork:
    """One trial group: trials that are compared, so that one node measures them."""

    trials: tuple[Trial, ...]
    expected_failures: dict[str, tuple[ExpectedFailure, ...]]
    """The expected failures of each case."""
    seed: int
    timed: bool
    """Whether trials are timed, as by `rnnbench run`. Otherwise they are only checked."""
    jobs: int | None = None
    """The number of trials that are checked side by side; None means one on each core of the node."""
    rebuild: bool = False
    """Whether every program is built, even if the node's cache has it."""


@dataclass(frozen=True)
class NodeFacts:
    """The facts of the node, sent before anything is measured."""

    suite: SuiteFacts
    machine: dict[str, Any]
    niceness: int
    kind: Literal["facts"] = "facts"


@dataclass(frozen=True)
class StageBegun:
    """A stage of a trial has begun."""

    trial: str
    stage: str
    kind: Literal["stage"] = "stage"


@dataclass(frozen=True)
class TrialDone:
    """A trial has its record."""

    record: Record
    samples: Mapping[str, str] = field(default_factory=dict)
    """For each latency path, rows of SAMPLE_COLUMNS as a `.npy` file in base64."""
    kind: Literal["trial"] = "trial"


@dataclass(frozen=True)
class GroupDone:
    """Every trial of the group has its record."""

    seconds: dict[str, float]
    conditions: Conditions | None
    kind: Literal["done"] = "done"


@dataclass(frozen=True)
class GroupFailed:
    """The group cannot continue on this node."""

    reason: OutsideText
    kind: Literal["failed"] = "failed"


Message = NodeFacts | StageBegun | TrialDone | GroupDone | GroupFailed


def encode(message: Message) -> bytes:
    """The message as a line of JSON, without its end."""
    return _message_adapter().dump_json(message)


def decode(line: bytes) -> Message:
    """The message in a line. Raises MessageError."""
    try:
        return _message_adapter().validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise MessageError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def encode_work(work: GroupWork) -> bytes:
    return _work_adapter().dump_json(work)


def decode_work(line: bytes) -> GroupWork:
    """The work in a line. Raises pydantic's ValidationError."""
    return _work_adapter().validate_json(line)


def encode_samples(rows: npt.NDArray[np.float64]) -> str:
    """Rows of SAMPLE_COLUMNS [samples, columns] as a `.npy` file in base64."""
    file = io.BytesIO()
    np.save(file, rows, allow_pickle=False)
    return base64.b64encode(file.getvalue()).decode()


def decode_samples(text: str) -> npt.NDArray[np.float64]:
    """Rows of SAMPLE_COLUMNS, at most SAMPLES_CAP of them. Raises MessageError."""
    try:
        with any_damage_is_told():
            rows = np.load(io.BytesIO(base64.b64decode(text, validate=True)), allow_pickle=False)
            if not isinstance(rows, np.ndarray):
                raise ValueError(f"they are a {type(rows).__name__} and no array")
    except (OSError, ValueError) as error:
        raise MessageError(f"samples cannot be read: {error}") from error
    columns = len(SAMPLE_COLUMNS)
    if rows.dtype != np.float64 or rows.ndim != 2 or rows.shape[1] != columns or len(rows) > SAMPLES_CAP:
        raise MessageError(f"samples have the shape {rows.shape} of {rows.dtype}, not [n, {columns}] of float64")
    kept: npt.NDArray[np.float64] = rows
    return kept


@cache
def _message_adapter() -> TypeAdapter[Message]:
    return TypeAdapter(Annotated[Message, Field(discriminator="kind")])


@cache
def _work_adapter() -> TypeAdapter[GroupWork]:
    return TypeAdapter(GroupWork)
