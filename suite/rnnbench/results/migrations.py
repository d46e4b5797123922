"""Upgrades of records and of `run.json` that an older schema wrote, one step from each version to the next.

A step takes the JSON object of a file, as the older version wrote it, and returns that of the next version. It keeps
every figure. `record.SCHEMA` is the present version; its history stands there and in `docs/results.md`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rnnbench.results.record import SCHEMA
from rnnbench.results.timing import STEPS_PER_S

Content = dict[str, Any]
"""A JSON object of a file."""


@dataclass(frozen=True)
class Migration:
    """The step from one schema to the next."""

    changes: str
    """What the next schema does otherwise, in a sentence for readers of the files."""
    record: Callable[[Content], Content]
    info: Callable[[Content], Content]


class UnknownSchemaError(ValueError):
    """The content has a schema that no step leads from."""


def _record_to_2(content: Content) -> Content:
    """Schema 1 has a field for each path, the sampling's fields among a latency's, and other names."""
    target = f"{content.get('backend')}:{content.get('route')}"
    upgraded = _renamed(content, {"expected": "expected_failures"})
    upgraded["baseline"] = content.get("backend") == "numpy"
    upgraded["timing"] = _timing_to_2(content.get("timing") or {})
    if anchor := content.get("anchor"):
        upgraded["anchor"] = _renamed(anchor, {"part": "group", "parts": "groups"})
    if environment := content.get("environment"):
        names = {"threads_asked": "threads_requested", "affinity_asked": "affinity_requested"}
        upgraded["environment"] = _renamed(environment, names)
    if artifact := content.get("artifact"):
        operations = _operations_to_2(artifact.get("operations") or {})
        upgraded["artifact"] = {**artifact, "operations": operations}
        if target == "tvm:tir":
            upgraded["artifact"]["origin"] = "kernel"
    return upgraded


PATHS_OF_1 = ("bound", "public", "cold", "paced")
SAMPLING_OF_1 = ("stopped_by", "calls_per_sample", "warmup", "blocks", "disturbed_blocks", "drift")
FIGURES_OF_1 = (STEPS_PER_S, "period", "real_time_factor", "deadline_misses")
INPUT_STAGES_OF_1 = ("input", "recorded")
"""Stages that counted what the compiler was given. Each adapter had words of its own for what it made of that."""


def _timing_to_2(timing: Content) -> Content:
    upgraded = _renamed(timing, {"dispatch": "dispatch_floor"})
    latencies = {path: upgraded.pop(path, None) for path in PATHS_OF_1}
    upgraded["latency"] = {path: _latency_to_2(latency) for path, latency in latencies.items() if latency is not None}
    return upgraded


def _latency_to_2(latency: Content) -> Content:
    upgraded = dict(latency)
    upgraded["sampling"] = {name: upgraded.pop(name) for name in SAMPLING_OF_1 if name in upgraded}
    figures = {name: upgraded.pop(name, None) for name in FIGURES_OF_1}
    upgraded["figures"] = {name: value for name, value in figures.items() if value is not None}
    return upgraded


def _operations_to_2(stages: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Two stages. The calls of a chunk and those of a step of an eager program are one count, as in schema 2."""
    operations: dict[str, Counter[str]] = {}
    for stage, counts in stages.items():
        name = "input" if stage in INPUT_STAGES_OF_1 else "compiled"
        operations.setdefault(name, Counter()).update(counts)
    return {stage: dict(counts) for stage, counts in operations.items()}


def _renamed(content: Mapping[str, Any], names: Mapping[str, str]) -> Content:
    return {names.get(key, key): value for key, value in content.items()}


MIGRATIONS: Mapping[int, Migration] = {
    1: Migration(
        "A latency is under the name of its path in `timing.latency`. Its `sampling` is a part of its own, and the "
        "figures of its path are in `figures`. `artifact.operations` has the stages `input` and `compiled`; the "
        "origin of `tvm:tir` is `kernel`. `expected` is now `expected_failures`, `timing.dispatch` is "
        "`timing.dispatch_floor`, `anchor.part` is `anchor.group`, `environment.threads_asked` and `affinity_asked` "
        "are `threads_requested` and `affinity_requested`. `baseline` and `metrics` are new.",
        record=_record_to_2,
        info=dict,
    ),
    2: Migration(
        "`device` and `unmeasured` are new. Older records have none: all were made on the processor of `run.json`.",
        record=dict,
        info=dict,
    ),
}
"""By the schema that a step starts from."""


def upgrade_record(content: Content) -> Content:
    """The content of a record in the present schema. Raises UnknownSchemaError."""
    return _upgrade(content, lambda migration: migration.record)


def upgrade_info(content: Content) -> Content:
    """The content of a `run.json` in the present schema. Raises UnknownSchemaError."""
    return _upgrade(content, lambda migration: migration.info)


def _upgrade(content: Content, step: Callable[[Migration], Callable[[Content], Content]]) -> Content:
    while (schema := content.get("schema")) != SCHEMA:
        if not isinstance(schema, int) or schema not in MIGRATIONS:
            raise UnknownSchemaError(schema)
        content = {**step(MIGRATIONS[schema])(content), "schema": schema + 1}
    return content
