"""Every row has the documented columns, and nothing else; exports write them."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import fake_records as fake
import pytest

from rnnbench.measure.metrics import METRICS
from rnnbench.measure.paths import PATHS
from rnnbench.optional import MissingExtraError
from rnnbench.results import COLUMNS, SCHEMA, Record, Run, columns_table, fingerprint, read_run, row
from rnnbench.results.columns import MODEL_PARAMETERS
from rnnbench.results.exports import EXPORTS
from rnnbench.results.migrations import MIGRATIONS
from rnnbench.rnn.spec import Model

ROOT = Path(__file__).parents[2]
NAMES = [column.name for column in COLUMNS]


def run(*records: Record, **changes: Any) -> Run:
    return Run(Path("fake"), fake.info(**changes), records)


def test_every_column_is_documented() -> None:
    assert len(set(NAMES)) == len(NAMES)
    for column in COLUMNS:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", column.name)
        assert column.unit
        assert column.meaning.endswith("."), column.name


@pytest.mark.parametrize("outcome", fake.OUTCOMES)
def test_a_row_of_any_outcome_has_just_the_columns(outcome: Any) -> None:
    values = row(fake.record(outcome=outcome), fake.info())
    assert list(values) == NAMES
    assert all(value is None or isinstance(value, str | int | float) for value in values.values())


def test_committed_runs_have_rows() -> None:
    for name in ("reference", "scaling", "realtime"):
        for values in read_run(ROOT / "results" / name).rows():
            assert list(values) == NAMES


def test_a_row_has_the_run_the_parameters_and_the_figures() -> None:
    record = fake.record(chunk=16, bound=100e-6, metrics={"open_files": 9.0})
    values = row(record, fake.info())
    assert (values["run"], values["machine"]) == (fake.info().run, fingerprint(fake.info().machine))
    assert (values["case"], values["time"], values["state"], values["chunk"]) == ("fake_case", "looped", "stitched", 16)
    assert (values["model_cell"], values["model_hidden"], values["model_layers"]) == ("lstm", 128, None)
    bound = record.latency("bound")
    assert bound is not None
    assert (values["bound_median_s"], values["bound_p99_s"]) == (bound.median, bound.p99)
    assert (values["build_s"], values["artifact_bytes"], values["operations_compiled"]) == (1.5, 400_800, 4)
    assert (values["checks"], values["checks_failed"], values["worst_rounding"]) == (7, 0, 1.4)
    assert values["metric_open_files"] == 9.0


def test_an_interval_has_a_column_for_each_end() -> None:
    record = fake.record()
    bound = fake.with_interval(record.timing.latency["bound"])
    assert bound.interval is not None
    values = row(fake.with_latencies(record, bound=bound), fake.info())
    assert (values["bound_low_s"], values["bound_high_s"]) == bound.interval
    assert bound.interval[0] < bound.interval[1]


def test_a_failed_check_is_named() -> None:
    values = row(fake.record(outcome="nonconforming"), fake.info())
    assert (values["outcome"], values["checks_failed"], values["failed_checks"]) == ("nonconforming", 1, "timed")


def test_every_parameter_path_figure_and_metric_has_a_column() -> None:
    assert set(MODEL_PARAMETERS) == {"network", *Model.model_fields}
    for path in PATHS.values():
        assert {f"{path.name}_median_s", *(f"{path.name}_{figure.name}" for figure in path.figures)} <= set(NAMES)
    assert {f"metric_{name}" for name in METRICS} <= set(NAMES)


def test_csv_and_json_lines_have_every_value() -> None:
    infinite = fake.record()
    infinite.conformance["values"] = infinite.conformance["values"].model_copy(update={"rounding": float("inf")})
    of = run(infinite, fake.record(outcome="crashed"))
    rows = of.rows()
    written = {}
    for name in ("csv", "jsonl"):
        EXPORTS[name].write(of, stream := io.StringIO())
        written[name] = stream.getvalue()
    parsed = list(csv.DictReader(io.StringIO(written["csv"])))
    assert [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows] == parsed
    first, second = (json.loads(line) for line in written["jsonl"].splitlines())
    assert (first.pop("worst_rounding"), rows[0].pop("worst_rounding")) == ("Infinity", float("inf"))
    assert (first, second) == tuple(rows)


def test_a_frame_needs_pandas_or_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    frames: list[Any] = []
    package = ModuleType("pandas")
    monkeypatch.setattr("rnnbench.results.run.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="pandas or polars"):
        run(fake.record()).frame()
    package.DataFrame = lambda rows, columns: frames.append((rows, columns))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", package)
    monkeypatch.setattr("rnnbench.results.run.find_spec", lambda name: package if name == "pandas" else None)
    run(fake.record()).frame()
    ((rows, columns),) = frames
    assert [dict(zip(columns, row, strict=True)) for row in rows] == run(fake.record()).rows()


def test_the_page_on_results_has_the_columns_and_the_schema_s_history() -> None:
    page = (ROOT / "docs" / "results.md").read_text()
    assert columns_table() in page, "docs/results.md: replace its table by `rnnbench.results.columns_table()`"
    for schema in range(1, SCHEMA + 1):
        assert f"\n| {schema} | " in page
    assert all(migration.changes in page for migration in MIGRATIONS.values())


def test_a_row_says_which_device_it_was() -> None:
    played = row(fake.record(device=fake.SOFTWARE_DEVICE), fake.info())
    assert (played["device_name"], played["device_driver"]) == ("fakepipe", "a fake driver")
    assert (played["device_capability"], played["device_memory"], played["device_software"]) == ("Fake 1.0", None, True)
    assert row(fake.record(), fake.info())["device_name"] is None
