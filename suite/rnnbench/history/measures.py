"""The measures of a trial that are watched: each is a series of nights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rnnbench.history.columns import process_medians
from rnnbench.results import COMPARED_PATHS


@dataclass(frozen=True)
class Measure:
    """A figure of a trial that has a series."""

    name: str
    title: str
    """For sentences: "the bound latency"."""
    sql: str
    """Its value in the table `rows`; NULL where there is none."""
    anchored_by: str | None = None
    """The measure of the anchors that it is divided by. None: the speed of the machine does not enter it."""


def _measures() -> Iterator[Measure]:
    for path in COMPARED_PATHS:
        # The median of the processes: one slow process of three does not move it.
        value = f"list_median({process_medians(path)})"
        yield Measure(path, f"{path} latency", value, path)
    # Anchors have hardly a build of their own: their latency tells how fast the machine was.
    yield Measure("build", "build time", _of_own_build("build_s"), COMPARED_PATHS[0])
    yield Measure("build_memory", "build memory", _of_own_build("memory_build_peak"))
    yield Measure("run_memory", "run memory", "memory_run_peak")
    yield Measure("bytes", "artifact size", "artifact_bytes")
    yield Measure("operations", "operations of the input IR", "operations_input")
    yield Measure("compiled_operations", "operations of the compiled program", "operations_compiled")


def _of_own_build(column: str) -> str:
    """The figure of a build, unless an earlier run made it: the same figure again is no new value of a series."""
    return f"CASE WHEN build_origin IS DISTINCT FROM 'cached' THEN {column} END"


MEASURES: Mapping[str, Measure] = {measure.name: measure for measure in _measures()}
"""By name."""
