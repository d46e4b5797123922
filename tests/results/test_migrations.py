"""Committed runs of an older schema are read whole: each old figure is found in the new record."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rnnbench.content_digest import without_digest
from rnnbench.results import SCHEMA, OperationStage, Record, read_run
from rnnbench.results.migrations import MIGRATIONS, UnknownSchemaError, upgrade_info, upgrade_record

OLD = Path(__file__).parent / "runs_of_schema_1"
"""Records of two runs that rnnbench 0.1.0 made, one for each backend, outcome and loop."""
RUNS = (Path(__file__).parents[2] / "results" / "reference", OLD / "scaling", OLD / "realtime")
of_each_run = pytest.mark.parametrize("run", [pytest.param(run, id=run.name) for run in RUNS])
SAMPLING = ("stopped_by", "calls_per_sample", "warmup", "blocks", "disturbed_blocks", "drift")
FIGURES = ("steps_per_s", "period", "real_time_factor", "deadline_misses")
RENAMED = {
    ("expected",): ("expected_failures",),
    ("timing", "dispatch"): ("timing", "dispatch_floor"),
    ("environment", "threads_asked"): ("environment", "threads_requested"),
    ("environment", "affinity_asked"): ("environment", "affinity_requested"),
}


def leaves(content: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value that is no object and not null, with its path."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from leaves(value, (*path, key))
    elif content is not None:
        yield path, content


def new_path(old: tuple[str, ...]) -> tuple[str, ...]:
    """Where schema 2 has a value of schema 1."""
    if old[0] == "timing" and old[1] in ("bound", "public", "cold", "paced"):
        group = ("sampling",) if old[2] in SAMPLING else ("figures",) if old[2] in FIGURES else ()
        return ("timing", "latency", old[1], *group, *old[2:])
    return next((new + old[len(start) :] for start, new in RENAMED.items() if old[: len(start)] == start), old)


def committed(run: Path) -> Iterator[tuple[dict[str, Any], Record]]:
    """Each record of a committed run, as its file has it and as it is read."""
    records = {record.trial: record for record in read_run(run).records}
    for line in (run / "records.jsonl").read_text().splitlines():
        old = json.loads(without_digest(line.encode())[0])
        yield old, records[old["trial"]]


@of_each_run
def test_a_committed_run_is_read_without_a_warning(run: Path) -> None:
    read = read_run(run)
    assert read.warnings == ()
    assert len(read.records) == len((run / "records.jsonl").read_text().splitlines())
    old = dict(leaves(json.loads(without_digest((run / "run.json").read_bytes())[0])))
    new = dict(leaves(json.loads(read.info.model_dump_json())))
    assert old.keys() <= new.keys()
    assert not any(new[path] for path in new.keys() - old.keys()), "nothing is made up"


@of_each_run
def test_each_figure_of_a_committed_record_is_kept(run: Path) -> None:
    for old, record in committed(run):
        new = dict(leaves(json.loads(record.model_dump_json())))
        expected = {}
        for path, value in leaves(old):
            none_seen = path == ("environment", "threads_busy") and value == 0
            if path[:2] == ("artifact", "operations") or path == ("schema",) or none_seen:
                continue
            kernel = record.target == "tvm:tir" and path == ("artifact", "origin")
            expected[new_path(path)] = "kernel" if kernel else value
        assert {path: new.get(path) for path in expected} == expected, record.trial
        added = {path for path in new if path not in expected and path[:2] != ("artifact", "operations")}
        assert added <= {
            ("schema",),
            ("baseline",),
            ("findings",),
            ("device",),
            ("unmeasured",),
            ("node",),
            ("params", "pinned"),
            ("params", "launch"),
            ("timing", "built"),
            ("checked",),
            ("artifact", "int8_operations"),
        }, record.trial


@of_each_run
def test_a_committed_trial_is_a_stream_and_keeps_its_id(run: Path) -> None:
    """The axis `launch` is younger than these runs. What has no launch is a stream, and a stream is in no id."""
    for _, record in committed(run):
        assert record.params.launch == "stream"
        assert record.trial.split("/")[2] == record.strategy


@of_each_run
def test_no_counted_operation_is_lost(run: Path) -> None:
    for old, record in committed(run):
        if record.artifact is None:
            continue
        stages = old["artifact"]["operations"]
        compiled: Counter[str] = Counter()
        for stage in stages:
            compiled.update(stages[stage] if stage != "input" else {})
        assert record.artifact.operations.get(OperationStage.INPUT, {}) == stages.get("input", {}), record.trial
        assert record.artifact.operations[OperationStage.COMPILED] == compiled, record.trial


@pytest.mark.parametrize(
    ("stages", "upgraded"),
    [
        ({"recorded": {"a": 1}, "executed": {"b": 2}}, {"input": {"a": 1}, "compiled": {"b": 2}}),
        ({"kernels": {"k": 3}}, {"compiled": {"k": 3}}),
        ({"chunk": {"add": 1}, "step": {"add": 2, "dot": 1}}, {"compiled": {"add": 3, "dot": 1}}),
        ({}, {}),
    ],
)
def test_words_of_adapters_become_two_stages(stages: dict[str, Any], upgraded: dict[str, Any]) -> None:
    content = upgrade_record({"schema": 1, "artifact": {"operations": stages, "lowered": "looped 1"}})
    assert content["artifact"]["operations"] == upgraded


def test_an_anchor_of_schema_1_names_its_group() -> None:
    old = {"schema": 1, "anchor": {"trial": "t", "part": 1, "parts": 3, "bound": 0.5}}
    assert upgrade_record(old)["anchor"] == {"trial": "t", "group": 1, "groups": 3, "bound": 0.5}


def test_the_numpy_backend_was_the_baseline_of_schema_1() -> None:
    assert upgrade_record({"schema": 1, "backend": "numpy"})["baseline"]
    assert not upgrade_record({"schema": 1, "backend": "torch"})["baseline"]


def test_each_schema_leads_to_the_next_and_says_what_changes() -> None:
    assert list(MIGRATIONS) == list(range(1, SCHEMA))
    assert all(migration.changes.endswith(".") for migration in MIGRATIONS.values())


@pytest.mark.parametrize("schema", [0, SCHEMA + 1, None, "2"])
def test_a_schema_that_no_step_leads_from_is_refused(schema: object) -> None:
    for upgrade in (upgrade_record, upgrade_info):
        with pytest.raises(UnknownSchemaError):
            upgrade({"schema": schema})


def test_a_record_that_no_step_can_read_names_its_place(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes((RUNS[0] / "run.json").read_bytes())
    (tmp_path / "records.jsonl").write_text(json.dumps({"schema": 1, "timing": [1, 2]}) + "\n")
    (warning,) = read_run(tmp_path).warnings
    assert re.search(r"records\.jsonl:1: not a Record of schema 1: .*restore the file", warning)


def test_a_record_of_schema_2_names_no_device() -> None:
    (_, record), *_ = committed(RUNS[1])
    assert (record.device, record.unmeasured, record.on_software_device) == (None, {}, False)
