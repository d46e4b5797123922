"""A record made again from its row in the history, as far as the row has it.

A row has every figure of a latency, and the names of the conformance checks that failed. It has no interval of a
floor, no count of single operations, no flags, notes and samples. What a row does not have is absent here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rnnbench.measure import METRICS, PATHS
from rnnbench.results import STEPS_PER_S, MemoryUse, OperationStage, Record, Timing, parse_versions

Row = Mapping[str, Any]
"""A row of the history by column, without columns that are empty."""
Content = dict[str, Any]
NAME_ONLY = "the history keeps its name only"
ALL = "all"
"""The name under which operations are counted: a row has their sum."""
PARAMETERS = ("time", "state", "chunk", "launch", "steps", "batch", "dtype", "device", "threads", "seed", "lengths")
TOP = ("trial", "case", "backend", "route", "rnnbench", "baseline", "outcome", "stage", "reason", "same_as", "node")
FLOOR_COLUMNS = {
    "nbytes": "floor_bytes",
    "operations": "floor_operations",
    "weights": "weights_bytes",
    "level": "weights_level",
    "seconds": "floor_s",
    "limited_by": "floor_limited_by",
    "ratio": "floor_ratio",
}
SAMPLING = ("stopped_by", "calls_per_sample", "blocks", "disturbed_blocks", "drift")


def record_of(row: Row) -> Record:
    """Raises ValueError where the row is not that of a record."""
    parameters = {"model": json.loads(row["model"]), **_present(row, PARAMETERS)}
    content = {
        **_present(row, TOP),
        "version": parse_versions(row.get("versions", "")),
        "params": parameters,
        "device": _device(row),
        "support": {"level": row["support"], "upstream": row.get("upstream", "")},
        "conformance": {
            name: {"verdict": "fail", "detail": NAME_ONLY} for name in _names(row.get("failed_checks", ""))
        },
        "expected_failures": [
            {"what": name, "verdict": "failed", "reason": NAME_ONLY, "upstream": ""}
            for name in _names(row.get("expected_failures", ""))
        ],
        "timing": _timing(row),
        "common_trial": _common_trial(row),
        "memory": {name: _whole(row.get(f"memory_{name}"), name) for name in MemoryUse.model_fields},
        "floor": _floor(row),
        "metrics": {name: row[f"metric_{name}"] for name in METRICS if f"metric_{name}" in row},
        "artifact": _artifact(row),
        "findings": _findings(row),
        "environment": {"threads_requested": row["threads"], **_present(row, ("threads_seen", "threads_busy", "load"))},
    }
    return Record.model_validate(content)


def _present(row: Row, names: tuple[str, ...]) -> Content:
    return {name: row[name] for name in names if name in row}


def _names(text: str) -> list[str]:
    return text.split(", ") if text else []


def _whole(value: Any, name: str) -> Any:
    """Sizes are floats in a row; growth is one in a record, too."""
    return value if value is None or name.endswith("growth") else int(value)


def _timing(row: Row) -> Content:
    once = _present(
        row, tuple(name for name in Timing.model_fields if name.endswith("_s") or name in ("build_origin", "built"))
    )
    sides = {name: {"seconds": row[f"{name}_s"]} for name in ("state_copy", "dispatch_floor") if f"{name}_s" in row}
    return {**once, **sides, "latency": {path: _latency(row, path) for path in PATHS if f"{path}_median_s" in row}}


def _common_trial(row: Row) -> Content | None:
    """Without it, trials of two sampling groups would be judged as if they had been sampled in turn."""
    if "anchor_group" not in row:
        return None
    group = int(row["anchor_group"])
    # The number of groups is not stored; no page shows that of a stored run.
    return {"trial": row.get("anchor", ""), "group": group, "groups": group + 1, "bound": row.get("anchor_bound_s")}


def _latency(row: Row, path: str) -> Content:
    values = {column.removeprefix(f"{path}_"): value for column, value in row.items() if column.startswith(f"{path}_")}
    figures = {
        name: values[name] for name in (STEPS_PER_S, *(own.name for own in PATHS[path].figures)) if name in values
    }
    interval = (values["low_s"], values["high_s"]) if "low_s" in values and "high_s" in values else None
    return {
        "count": values["samples"],
        "kept": 0,
        **{name: values[f"{name}_s"] for name in ("min", "median", "mean", "p90", "p99", "max", "per_step")},
        "process_medians": values["process_medians"],
        "interval": interval,
        "sampling": {name: values[name] for name in SAMPLING if name in values},
        "figures": figures,
    }


def _floor(row: Row) -> Content | None:
    if "floor_bytes" not in row:
        return None
    content = {name: row.get(column) for name, column in FLOOR_COLUMNS.items()}
    content |= {"nbytes": int(row["floor_bytes"]), "weights": int(row.get("weights_bytes", 0))}
    unmeasured = "" if content["seconds"] is not None else NAME_ONLY
    measured = {name: value for name, value in content.items() if value is not None}
    return {**measured, "hoisted": row.get("hoisted"), "level": measured.get("level", ""), "unmeasured": unmeasured}


def _device(row: Row) -> Content | None:
    """Without it, the times of a device that the processor emulated would be ranked."""
    values = {column.removeprefix("device_"): value for column, value in row.items() if column.startswith("device_")}
    if "name" not in values:
        return None
    memory = {"memory": int(values["memory"])} if "memory" in values else {}
    return {**_present(values, ("name", "driver", "capability", "software")), **memory}


def _artifact(row: Row) -> Content | None:
    if "lowered" not in row:
        return None
    return {
        "source_digest": row.get("source_digest", ""),
        "digest": row.get("artifact_digest", ""),
        "nbytes": int(row.get("artifact_bytes", 0)),
        "operations": {
            stage: {ALL: row[f"operations_{stage}"]} for stage in OperationStage if f"operations_{stage}" in row
        },
        "lowered": row["lowered"],
        "origin": row["origin"],
        "math": row["math"],
        "hoisted": row.get("hoisted"),
    }


def _findings(row: Row) -> list[Content]:
    """A row has the sentences of all findings as one, and whether the figures are believed."""
    detail = row.get("findings", "")
    return [{"kind": "time", "detail": detail, "disbelieved": not row.get("believed", True)}] if detail else []
