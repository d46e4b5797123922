"""What travels between the suite and its workers: trials, requests made of them, blocks of samples, failures."""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass
from typing import cast

import numpy as np
from pydantic import TypeAdapter

from rnnbench.backends.base import Request
from rnnbench.cases.trial import Precision, Trial
from rnnbench.measure.disturbance import Disturbance
from rnnbench.measure.sampling import Block
from rnnbench.results.record import Outcome
from rnnbench.rnn.weights import Weights
from rnnbench.run.wire import Message

_TRIAL = TypeAdapter(Trial)


@dataclass(frozen=True)
class Failure:
    """How a trial, or a part of one, came to an end before its time."""

    outcome: Outcome
    reason: str


def write_trial(trial: Trial) -> Message:
    return cast(Message, _TRIAL.dump_python(trial, mode="json"))


def read_trial(message: Message) -> Trial:
    return _TRIAL.validate_python(message)


def request_of(trial: Trial, weights: Weights) -> Request:
    return Request(
        route=trial.target.route,
        model=trial.model,
        weights=weights,
        strategy=trial.strategy,
        batch=trial.batch,
        precision=Precision.of(trial.dtype),
        device=trial.device,
        threads=trial.threads,
        ragged=trial.lengths == "ragged",
    )


def write_block(block: Block) -> Message:
    seconds = base64.b64encode(block.seconds.astype(np.float64).tobytes()).decode()
    return {**asdict(block), "seconds": seconds}


def read_block(message: Message) -> Block:
    seconds = np.frombuffer(base64.b64decode(message["seconds"]), np.float64)
    disturbance = message["disturbance"]
    return Block(
        **{**message, "seconds": seconds, "disturbance": None if disturbance is None else Disturbance(**disturbance)}
    )


def write_failure(failure: Failure) -> Message:
    return {"failure": {"outcome": failure.outcome, "reason": failure.reason}}


def read_failure(message: Message) -> Failure | None:
    """The failure that a reply tells of, or None where it tells of success."""
    return Failure(**message["failure"]) if "failure" in message else None
