"""Runs are added once, whatever happens to them and to the files, and SQL reads the history and nothing else."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event, Thread
from time import tzset
from types import SimpleNamespace

import fake_records as fake
import made_history
import pytest
from waiting import PATIENCE_S, join

pytest.importorskip("duckdb")

from rnnbench.content_digest import without_digest
from rnnbench.history import History, database, find_changes, store
from rnnbench.history.database import ZONES, Database, _of_one_schema
from rnnbench.history.entry import run_id, utc_of
from rnnbench.history.series import trials_of_machines
from rnnbench.results import StoreError, append_record, fingerprint, read_run

OLD = Path(__file__).parents[1] / "results" / "runs_of_schema_1" / "scaling"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return fake.write_run(tmp_path / "run", list(fake.whole_run())[:5])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "history"


def test_a_run_of_an_older_schema_is_added_with_typed_columns(root: Path) -> None:
    assert json.loads((OLD / "run.json").read_text())["schema"] == 1
    addition = History(root).add(OLD)
    assert (addition.what, addition.warnings) == ("added", ())
    rows = read_run(OLD).rows()
    history = History(root)
    assert history.sql("SELECT trial, outcome, bound_median_s, chunk, baseline FROM rows ORDER BY trial").rows == tuple(
        sorted(tuple(row[name] for name in ("trial", "outcome", "bound_median_s", "chunk", "baseline")) for row in rows)
    )
    types = dict(row[:2] for row in history.sql("DESCRIBE rows").rows)
    assert types["bound_median_s"] == "DOUBLE"
    assert types["chunk"] == "BIGINT"
    assert types["baseline"] == "BOOLEAN"
    assert types["started"] == "TIMESTAMP"
    assert types["bound_process_medians"] == "DOUBLE[]"


def test_process_medians_are_kept(root: Path, run: Path) -> None:
    History(root).add(run)
    record = read_run(run).records[0]
    kept = History(root).sql(f"SELECT bound_process_medians FROM rows WHERE trial = '{record.trial}'").rows
    assert kept == ((list(record.timing.latency["bound"].process_medians),),)


def test_the_table_of_runs_says_what_rows_have_in_common(root: Path, run: Path) -> None:
    History(root).add(run)
    read = read_run(run).info
    ((name, started, versions, trials),) = History(root).sql("SELECT run, started, versions, trials FROM runs").rows
    assert (name, started.isoformat() + "Z", json.loads(versions), trials) == (read.run, read.started, read.versions, 5)


def test_nothing_is_added_twice_under_another_folder(root: Path, run: Path, tmp_path: Path) -> None:
    History(root).add(run)
    shutil.copytree(run, tmp_path / "renamed")
    assert History(root).add(tmp_path / "renamed").what == "already there"
    assert History(root).sql("SELECT count(*) FROM rows").rows == ((5,),)


def test_a_resumed_run_replaces_itself_and_an_older_copy_does_not(root: Path, run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "before")
    History(root).add(run)
    append_record(run, fake.record(chunk=99))
    assert History(root).add(run).what == "updated"
    assert History(root).add(tmp_path / "before").what == "already there"
    assert History(root).sql("SELECT count(*), count(DISTINCT run_id) FROM rows").rows == ((6, 1),)


def test_a_run_that_ended_since_replaces_itself(root: Path, tmp_path: Path) -> None:
    records = [fake.record()]
    going_on = fake.write_run(tmp_path / "run", records, finished=None)
    ended = fake.write_run(tmp_path / "ended" / "run", records)
    assert [History(root).add(run).what for run in (going_on, ended, going_on)] == ["added", "updated", "already there"]


def test_an_entry_names_the_targets_that_are_baselines(root: Path, tmp_path: Path) -> None:
    records = [fake.record(), fake.record("fakebase", "ops", baseline=True)]
    assert History(root).add(fake.write_run(tmp_path / "run", records)).entry.baseline == ("fakebase:ops",)


def test_a_time_without_a_zone_is_utc(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        tzset()
        assert utc_of("2026-01-31T12:00:00", read_run(run)) == "2026-01-31T12:00:00"
        assert utc_of("2026-01-31T12:00:00+09:00", read_run(run)) == "2026-01-31T03:00:00"
    tzset()


@pytest.mark.parametrize("folder", ["runs", "checks"])
def test_an_entry_under_another_name_is_damaged(root: Path, run: Path, folder: str) -> None:
    """A copy of it would count a second time."""
    history = History(root)
    (history.add if folder == "runs" else history.add_checks)(run)
    (file, *_) = sorted((root / folder).iterdir())
    shutil.copy(file, file.with_stem("copy"))
    found = History(root)
    assert [warning.split(":")[0] for warning in found.warnings] == [str(file.with_stem("copy"))]
    assert len({entry.run_id for entry in found.runs}) == len(found.runs)
    assert len({entry.name for entry in found.checks}) == len(found.checks)


def _add(root: Path, run: Path) -> None:
    History(root).add(run)


def test_processes_that_add_at_once_add_once(root: Path, run: Path) -> None:
    context = multiprocessing.get_context("fork")
    adders = [context.Process(target=_add, args=(root, run), daemon=True) for _ in range(3)]
    for adder in adders:
        adder.start()
    join(*adders)
    assert [adder.exitcode for adder in adders] == [0, 0, 0]
    assert History(root).warnings == ()
    assert History(root).sql("SELECT count(*) FROM rows").rows == ((5,),)


def test_a_reader_sees_a_run_while_another_process_replaces_it(
    root: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are new and its entry is old. The reader waits until that process has written both."""
    History(root).add(run)
    append_record(run, fake.record(chunk=99))
    write, lock, waits = store.write_bytes, store.locked, Event()
    seen: list[tuple[tuple[int, ...], tuple[str, ...]]] = []

    def read() -> None:
        history = History(root)
        seen.append((tuple(entry.trials for entry in history.runs), history.warnings))

    def lock_and_tell(path: Path, *, shared: bool = False) -> AbstractContextManager[None]:
        if shared:
            waits.set()
        return lock(path, shared=shared)

    def write_once_another_waits(path: Path, content: bytes) -> None:
        if path.suffix == ".json":
            reader.start()
            assert waits.wait(PATIENCE_S)
        write(path, content)

    reader = Thread(target=read)
    monkeypatch.setattr(store, "locked", lock_and_tell)
    monkeypatch.setattr(store, "write_bytes", write_once_another_waits)
    assert History(root).add(run).what == "updated"
    join(reader)
    assert seen == [((6,), ())]


@pytest.mark.first(3)
@pytest.mark.parametrize("time", ["9999-99-99T", "no time", "9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00Z"])
@pytest.mark.parametrize("key", ["started", "finished"])
def test_a_run_whose_time_cannot_be_is_refused(root: Path, run: Path, key: str, time: str) -> None:
    for file in run.glob("run.json*"):
        file.write_text(json.dumps({**json.loads(file.read_text()), key: time}))
    with pytest.raises(
        StoreError, match=r"is (no time in ISO 8601|outside of the years 1970 to 9998); restore its run\.json"
    ):
        History(root).add(run)
    assert not root.exists()


def test_a_damaged_line_is_named_and_skipped(root: Path, run: Path) -> None:
    file = run / "records.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([lines[0], b'{"schema": 2, "tri\n', *lines[2:]]))
    addition = History(root).add(run)
    assert any("records.jsonl:2" in warning and "left out" in warning for warning in addition.warnings)
    assert addition.entry.trials == 4


@pytest.mark.first(1)
@pytest.mark.parametrize("content", [b"", b"PAR1", None])
@pytest.mark.parametrize("name", ["rows", "runs"])
def test_a_torn_file_is_named_and_made_again(root: Path, run: Path, name: str, content: bytes | None) -> None:
    History(root).add(run)
    (file,) = (root / name).iterdir()
    file.write_bytes(content if content is not None else file.read_bytes()[:-7])
    history = History(root)
    assert history.sql("SELECT count(*) FROM rows").rows == ((0,),)
    assert str(file) in history.warnings[0]
    assert History(root).add(run).what != "already there"
    assert History(root).warnings == ()
    assert History(root).sql("SELECT count(*) FROM rows").rows == ((5,),)


@pytest.mark.parametrize("name", ["runs", "comparisons", "checks"])
def test_a_folder_that_cannot_be_read_is_no_empty_one(root: Path, run: Path, name: str) -> None:
    History(root).add(run)
    if (root / name).is_dir():
        shutil.rmtree(root / name)
    (root / name).touch()
    with pytest.raises(StoreError, match=rf"/{name}: cannot be read: Not a directory; see what lies there"):
        _ = History(root).warnings


def test_an_entry_that_a_newer_rnnbench_wrote_is_told_and_stays(root: Path, run: Path) -> None:
    History(root).add(run)
    (file,) = (root / "runs").iterdir()
    newer = json.dumps({**json.loads(file.read_text()), "schema_version": 2, "new": "field"})
    file.write_text(newer)
    history = History(root)
    assert history.runs == ()
    (warning,) = history.warnings
    assert warning.startswith(f"{file}: skipped: it has schema 2")
    assert warning.endswith("upgrade rnnbench to read it")
    with pytest.raises(StoreError, match="upgrade rnnbench to read it"):
        History(root).add(run)
    assert file.read_text() == newer


@pytest.mark.first(1)
@pytest.mark.parametrize("time", ["no time", "9999-12-31T23:59:59", "0001-01-01T00:00:00", "2026-01-01T00:00:00Z"])
def test_an_entry_whose_time_cannot_be_is_damaged(root: Path, run: Path, time: str) -> None:
    """Weeks are subtracted from it, and it is compared with times without a zone."""
    History(root).add(run)
    (file,) = (root / "runs").iterdir()
    file.write_text(json.dumps({**json.loads(without_digest(file.read_bytes())[0]), "started": time}))
    history = History(root)
    assert history.runs == ()
    assert history.warnings == (f"{file}: damaged, and skipped; add its run again",)
    assert History(root).add(run).what == "added"
    assert History(root).warnings == ()


def test_an_entry_with_the_digest_of_an_earlier_rnnbench_is_read(root: Path, run: Path) -> None:
    added = History(root).add(run).entry
    (file,) = (root / "runs").iterdir()
    file.write_text(json.dumps({**json.loads(without_digest(file.read_bytes())[0]), "sha256": "0" * 64}))
    assert (History(root).runs, History(root).warnings) == ((added,), ())


def test_rows_of_another_machine_than_the_entry_says_are_in_no_series(root: Path, run: Path) -> None:
    History(root).add(run)
    (file,) = (root / "runs").iterdir()
    for machine in ("another", "it's"):
        file.write_text(json.dumps({**json.loads(without_digest(file.read_bytes())[0]), "machine": machine}))
        assert find_changes(History(root)) == ()


@pytest.mark.first(4)
@pytest.mark.parametrize(
    "statement",
    [
        "COPY rows TO '{file}'",
        "SET threads = 4",
        "SELECT * FROM read_text('{secret}')",
        "SELECT 1; SELECT 2",
        "EXPLAIN ANALYZE COPY rows TO '{file}'",
        "CREATE TABLE mine AS SELECT 1",
        "ATTACH '{file}' AS other",
        "INSTALL httpfs",
        "SELECT * FROM glob('{folder}/*')",
        "SELEC",
        "",
        "SELECT no_such_column FROM rows",
    ],
)
def test_sql_reads_the_history_and_nothing_else(root: Path, run: Path, tmp_path: Path, statement: str) -> None:
    History(root).add(run)
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    before = {file: file.read_bytes() for file in root.rglob("*") if file.is_file()}
    (parquet,) = (root / "rows").iterdir()
    for file in (tmp_path / "written", parquet):
        with pytest.raises(StoreError, match=r"query failed|answers one SELECT"):
            History(root).sql(statement.format(file=file, secret=secret, folder=tmp_path))
        assert not (tmp_path / "written").exists()
    assert {file: file.read_bytes() for file in root.rglob("*") if file.is_file()} == before


def test_statements_of_one_history_share_a_database_also_after_one_that_fails(
    root: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening one takes longer than most statements."""
    opened, open_database = list[str](), database.open_database
    monkeypatch.setattr(database, "open_database", lambda purpose: opened.append(purpose) or open_database(purpose))
    History(root).add(run)
    history = History(root)
    for _ in range(2):
        assert history.sql("SELECT count(*) FROM rows").rows == ((5,),)
        with pytest.raises(StoreError, match=r"query failed: .*; `DESCRIBE rows` shows the columns of the table"):
            history.sql("SELECT no_such_column FROM rows")
        assert len(history.arrays("SELECT trial FROM rows")["trial"]) == 5
    assert len(opened) == 1


@pytest.mark.parametrize("value", ["INTERVAL 100000000 MONTH", "'\udcff'"])
def test_what_python_cannot_hold_is_told(root: Path, value: str) -> None:
    with pytest.raises(StoreError, match="the query failed: Python cannot hold a value of it: "):
        History(root).sql(f"SELECT {value}")


@pytest.mark.parametrize("is_relative", [True, False])
def test_a_history_in_a_folder_whose_name_is_no_utf8_is_told(
    tmp_path: Path, run: Path, is_relative: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / os.fsdecode(b"odd\xff")).mkdir()
    monkeypatch.chdir(folder)
    root = Path("history") if is_relative else folder / "history"
    History(root).add(run)
    with pytest.raises(StoreError, match="the name of a folder is not UTF-8; rename the folder"):
        History(root).sql("SELECT * FROM rows")


def test_a_time_with_a_zone_is_a_value_or_told_in_a_sentence(root: Path) -> None:
    """That depends on what is installed."""
    try:
        History(root).sql("SELECT now()")
    except StoreError as error:
        told = str(error)
    else:
        told = ""
    assert told in ("", f"the query failed: {ZONES}")


def test_a_history_without_runs_has_empty_tables(root: Path) -> None:
    assert History(root).sql("SELECT (SELECT count(*) FROM rows), (SELECT count(*) FROM runs)").rows == ((0, 0),)


def test_rows_are_a_data_frame(root: Path, run: Path) -> None:
    pytest.importorskip("pandas")
    History(root).add(run)
    frame = History(root).frame()
    assert list(frame["trial"]) == [record.trial for record in read_run(run).records]


AHEAD = "8026-01-31T12:00:00Z"


@pytest.fixture
def with_future(root: Path, run: Path, tmp_path: Path) -> Path:
    """The history has a run of the past and one that a wrong clock dated."""
    ahead = fake.write_run(tmp_path / "ahead", list(fake.whole_run())[:3], started=AHEAD, finished=AHEAD, seed=1)
    assert History(root).add(ahead).what == "added"
    return ahead


def test_a_machine_keeps_its_series_over_an_update_and_once_more_of_it_is_read(tmp_path: Path) -> None:
    earlier = {"cpu": "AMD EPYC", "cores": 2, "memory": 25_276_510_208, "kernel": "6.1.0"}
    now = {**earlier, "processor": {"model": "1"}, "vector_extensions": "avx2"}
    described = [earlier, now, {**now, "kernel": "6.2.0", "memory": 25_276_400_000}]
    history = made_history.make(tmp_path, 6, machine=lambda night: described[night // 2])
    assert {entry.machine for entry in history.runs} == {fingerprint(now)}
    assert history.sql("SELECT DISTINCT machine FROM rows").rows == ((fingerprint(now),),)
    ((machine, trials),) = trials_of_machines(history)
    assert (machine, len(trials.runs)) == (fingerprint(now), 6)


def test_the_series_of_two_machines_that_were_taken_for_one_stays_by_itself(tmp_path: Path) -> None:
    earlier = {"cpu": "AMD EPYC", "cores": 2}
    now = [{**earlier, "processor": {"model": model}, "vector_extensions": "avx2"} for model in ("1", "17")]
    history = made_history.make(tmp_path, 3, machine=lambda night: [earlier, *now][night])
    assert [entry.machine for entry in history.runs] == [fingerprint(one) for one in (earlier, *now)]


def test_a_run_of_the_future_is_left_out_and_named(root: Path, run: Path, with_future: Path) -> None:
    """It would be the newest one for as long."""
    History(root).add(run)
    history = History(root)
    assert [entry.run for entry in history.runs] == [run.name]
    assert history.sql("SELECT count(*) FROM rows").rows == ((5,),)
    (warning,) = history.warnings
    assert "ahead is dated 8026-01-31T12:00:00 UTC, in the future, and is left out; if a clock" in warning
    file = Path(warning.partition(": ")[0])
    file.unlink()
    assert History(root).warnings == ()


def test_of_many_runs_of_the_future_the_first_are_named_and_the_others_counted(root: Path, run: Path) -> None:
    history = History(root)
    history.add(run)
    entry = json.loads(next((root / "runs").iterdir()).read_text())
    del entry["content_digest"]
    for number in range(20):
        future = {**entry, "run_id": f"{number:016x}", "started": f"8026-01-{number + 1:02}T02:00:00"}
        rows = root / "rows" / f"{future['run_id']}.parquet"
        shutil.copy(root / "rows" / f"{entry['run_id']}.parquet", rows)
        (root / "runs" / f"{future['run_id']}.json").write_text(json.dumps(future))
    warnings = History(root).warnings
    assert len(warnings) == 6
    assert "is dated 8026-01-01T02:00:00 UTC, in the future" in warnings[0]
    assert warnings[-1] == "15 more runs of the history left out for a wrong date"


def test_a_run_from_before_the_clock_was_set_is_left_out_and_named(root: Path, run: Path, tmp_path: Path) -> None:
    """It would be the first night of its series, and a step between it and the next one that of another version."""
    History(root).add(fake.write_run(tmp_path / "early", [fake.record()], started="1970-01-01T00:01:00Z", seed=1))
    assert [entry.run for entry in History(root).runs] == ["early"], "of all runs, the clock may be the same"
    History(root).add(run)
    history = History(root)
    assert [entry.run for entry in history.runs] == [run.name]
    (warning,) = history.warnings
    assert "early is dated 1970-01-01T00:01:00 UTC, before rnnbench was written, and is left out" in warning


def test_a_history_that_is_all_of_the_future_is_used(root: Path, with_future: Path) -> None:
    """The clock of the machine that reads it may be the wrong one."""
    history = History(root)
    assert [entry.run for entry in history.runs] == ["ahead"]
    assert history.warnings == ()


def test_a_run_is_another_one_with_another_name_start_or_seed() -> None:
    """Two machines begin runs of one name in one second: their seeds differ."""
    info = fake.info()
    other = {"run": "other", "started": "2026-01-01T00:00:00+00:00", "seed": info.seed + 1}
    changed = [info.model_copy(update={key: value}) for key, value in other.items()]
    assert len({run_id(SimpleNamespace(info=one)) for one in (info, *changed)}) == 4


def test_one_flipped_bit_gives_the_entry_or_a_damaged_one(root: Path, run: Path) -> None:
    """A digit of a date is a digit of another date, and the figures of the run would be another night's."""
    History(root).add(run)
    (file,) = (root / "runs").iterdir()
    entry = History(root).runs[0]
    content = file.read_bytes()
    for bit in range(0, 8 * len(content), 7):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(flipped)
        read = store.read_cached(file, lambda path: store._entry_in(path, type(entry)))
        assert read in (None, entry), bit


def test_rows_of_several_versions_of_rnnbench_are_one_table_and_those_of_one_are_read_together(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    selects = ("1.5 AS a", "2.5 AS a", "'3.5' AS a, true AS b", "NULL::INTEGER[] AS c")
    files = [tmp_path / f"{number}.parquet" for number in range(len(selects))]
    with duckdb.connect() as writing:
        for file, select in zip(files, selects, strict=True):
            writing.execute(f"COPY (SELECT {select}) TO '{file}' (FORMAT parquet)")
        assert sorted(map(len, _of_one_schema(writing, files))) == [1, 1, 2]
    rows = Database(files, {"a": "DOUBLE"}, {}, {}).query("SELECT a, b, c FROM rows ORDER BY a")
    assert rows.rows == ((1.5, None, None), (2.5, None, None), (3.5, True, None), (None, None, None))
