"""What the records of one run have in common: its `run.json`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from pydantic import ConfigDict, Field

from rnnbench.results.frozen_model import FrozenModel
from rnnbench.results.record import SCHEMA, Record
from rnnbench.results.shards import MergedInfo, ShardInfo


class Conditions(FrozenModel):
    """What else the machine was doing."""

    steal: float | None = None
    """Share of the processors' time that the machine's host gave to others; None where there is no such account."""
    load: tuple[float, float]
    """One-minute load average at the beginning and at the end."""
    temperature: tuple[float, float] | None = None
    """The hottest sensor of the processor at the beginning and at the end, in °C; None where there is none."""


class NodeInfo(FrozenModel):
    """A node of a cluster that measured trials of the run."""

    machine: dict[str, Any]
    """As the run's own: `measure.describe_machine`, called on the node."""
    versions: dict[str, dict[str, str]]
    """Versions by backend, as its adapters told them."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """Where its time went, added up over the trial groups that it completed."""
    conditions: Conditions | None = None
    """What the node went through, over all trial groups that it completed."""


class RunInfo(FrozenModel):
    """`run.json`: what the records of one run have in common."""

    schema_: int = Field(default=SCHEMA, alias="schema")
    run: str
    started: str
    """UTC, ISO 8601."""
    finished: str | None = None
    records: int | None = None
    """How many trials had a record when the run ended: fewer lines than that are a loss. None in runs that have not
    ended, and in runs of earlier versions."""
    rnnbench: str
    command: tuple[str, ...]
    directory: str | None = None
    """The folder in which the command was given, as seen from the run's. None in runs of earlier versions."""
    cases: tuple[str, ...]
    case_files: tuple[str, ...] = ()
    """The files and folders of a check's cases, as they were given. Empty in other runs and in those of earlier
    versions."""
    seed: int
    trials: str | None = None
    """Digest of `trials.json`, by which that of another run is known. None in runs of earlier versions."""
    machine: dict[str, Any]
    versions: dict[str, dict[str, str]]
    """Versions by backend."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """Where the run's wall time went: total; build, check and sample inside the trials' workers; import."""
    thresholds: dict[str, dict[str, float]] = Field(default_factory=dict)
    """By case, what its `compare:` says, by kind (`results/thresholds.py`). Empty for the defaults."""
    conditions: Conditions | None = None
    """What the machine went through in the run's last sitting."""
    shard: ShardInfo | None = None
    """Which shard of a plan it is; None for a run of a whole plan."""
    side: str | None = None
    """`a` or `b`, of a comparison of two environments; None for a run by itself, and in runs of earlier versions."""
    edited: tuple[str, ...] = ()
    """Packages of which files changed while the run was on, the suite among them: its trials may be of two states of
    these. Packages of other environments are not seen. Empty in runs of earlier versions."""
    merged: MergedInfo | None = None
    """The shards that it was merged of. Its `machine` and `versions` are then those of all of them."""
    nodes: dict[str, NodeInfo] = Field(default_factory=dict)
    """By name, the nodes of a cluster that measured the run's trials; empty where the run's own machine did."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    @property
    def command_line(self) -> str:
        """The command as a shell takes it."""
        return shlex.join(self.command)

    def machine_of(self, record: Record) -> dict[str, Any]:
        """The machine that measured a record of this run: its node's, or the run's own."""
        node = self.nodes.get(record.node)
        return self.machine if node is None else node.machine


def words_of(command_line: str) -> tuple[str, ...]:
    """The words of a `command_line`; of one that an earlier version wrote, what is between its spaces."""
    try:
        return tuple(shlex.split(command_line))
    except ValueError:
        return tuple(command_line.split(" "))


def case_file_in(words: Sequence[str], case: str) -> str | None:
    """The file of a case that a command line names, known by the case's name; None where it names no such file."""
    names = (f"{case}.yaml", f"{case}.yml")
    return next((word for word in words if PurePath(word).name in names), None)


def settings_in(words: Sequence[str]) -> Iterator[str]:
    """The options of a command line that replace values of its cases (`--set`), with their values."""
    for word, after in pairwise((*words, "")):
        if word == "--set":
            yield from (word, after)
        elif word.startswith("--set="):
            yield word
