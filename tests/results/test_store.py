"""Runs survive kills, resumes and other versions, and say what is wrong where they do not."""

from __future__ import annotations

import json
import os
import re
import shutil
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path

import fake_records as fake
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples

from rnnbench.content_digest import DIGEST, without_digest
from rnnbench.disk import copy_of
from rnnbench.results import SCHEMA, Store, StoreError, append_record, dates, read_run, records_file, write_info
from rnnbench.results.journal import INFO, RECORDS
from rnnbench.results.store import run_name

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return fake.write_run(tmp_path / "results" / "20260131T120000Z-fake_case", list(fake.whole_run())[:3])


def test_what_is_written_is_read(run: Path) -> None:
    written = list(fake.whole_run())[:3]
    read = read_run(run)
    assert read.records == tuple(written)
    assert read.info == fake.info()
    assert read.warnings == ()


def test_the_last_record_of_a_trial_wins(run: Path) -> None:
    first = read_run(run).records[0]
    again = first.model_copy(update={"outcome": "crashed", "stage": "sample", "reason": "resumed and fell over"})
    append_record(run, again)
    records = read_run(run).records
    assert len(records) == 3
    assert records[0] == again


@given(cut=st.integers(1, 400))
@examples(25)
def test_a_line_torn_by_a_kill_is_left_out_and_told(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    run = fake.write_run(tmp_path_factory.mktemp("torn"), list(fake.whole_run())[:2])
    file = run / RECORDS
    file.write_bytes(file.read_bytes() + fake.record().model_dump_json().encode()[:cut])
    read = read_run(run)
    assert len(read.records) == 2
    assert re.search(rf"{RECORDS}:3: .* cut short after {cut} bytes", read.warnings[0])


def test_a_record_appended_after_a_torn_line_is_whole(run: Path) -> None:
    file = run / RECORDS
    file.write_bytes(file.read_bytes()[:-40])
    append_record(run, fake.record(chunk=99))
    read = read_run(run)
    assert read.warnings == ()
    assert [r.params.chunk for r in read.records][-1] == 99
    assert len(read.records) == 3


@pytest.mark.parametrize("left", ["nothing", "a folder", "a file"])
def test_no_record_is_written_into_a_folder_that_is_no_longer_the_runs(run: Path, left: str) -> None:
    """It was renamed, and a worker made one of this name again for its log."""
    run.rename(run.with_name("renamed"))
    if left == "a folder":
        (run / "logs").mkdir(parents=True)
    elif left == "a file":
        run.touch()
    go_on = f"this name again, and go on with: rnnbench run --resume {run}"
    with pytest.raises(StoreError, match="was removed or renamed while its run was on") as refused:
        append_record(run, fake.record())
    assert str(refused.value).endswith(go_on)
    assert not (run / RECORDS).exists()


@pytest.mark.parametrize("left", [None, 0, 2])
def test_lines_that_an_ended_run_has_lost_as_a_whole_are_told(run: Path, left: int | None) -> None:
    """Such a file has no damaged line. None: it is gone."""
    write_info(run, fake.info().model_copy(update={"records": 3}))
    assert read_run(run).warnings == ()
    file = run / RECORDS
    if left is None:
        file.unlink()
    else:
        file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:left]))
    lost = f"{file}: has records of {left or 0} trials, and the run ended with 3; restore the file"
    assert read_run(run).warnings == (f"{lost} (`rnnbench run --resume` does the other trials again)",)


def test_a_whole_last_line_without_its_end_is_kept(run: Path) -> None:
    file = run / RECORDS
    file.write_bytes(file.read_bytes().removesuffix(b"\n"))
    assert len(read_run(run).records) == 3
    append_record(run, fake.record(chunk=99))
    assert len(read_run(run).records) == 4


def test_a_torn_line_longer_than_one_read_is_cut_off(run: Path) -> None:
    file = run / RECORDS
    file.write_bytes(file.read_bytes() + b'{"reason": "' + b"x" * 200_000)
    append_record(run, fake.record(chunk=99))
    assert len(read_run(run).records) == 4


def test_a_damaged_line_among_others_is_named_and_left_out(run: Path) -> None:
    file = run / RECORDS
    lines = file.read_bytes().split(b"\n")
    file.write_bytes(b"\n".join([lines[0], lines[1][:30], *lines[2:]]))
    read = read_run(run)
    first, _, third = list(fake.whole_run())[:3]
    assert read.records == (first, third)
    (warning,) = read.warnings
    assert re.search(rf"{RECORDS}:2: not JSON: .*the line was left out", warning)


@pytest.mark.parametrize("line", [b"", b"[1, 2]", b"\xff\xfe", b"{}x", b'{"schema": 2}', b"[" * 100_000])
def test_a_line_that_is_no_record_is_named_and_left_out(run: Path, line: bytes) -> None:
    file = run / RECORDS
    file.write_bytes(line + b"\n" + file.read_bytes())
    read = read_run(run)
    assert read.records == tuple(list(fake.whole_run())[:3])
    (warning,) = read.warnings
    assert f"{RECORDS}:1: " in warning


def test_a_line_of_another_run_is_named_and_left_out_and_one_without_a_run_is_kept(run: Path) -> None:
    seed = read_run(run).info.seed
    own, other, old = (fake.record("fakemlir", chunk=chunk) for chunk in (2, 4, 8))
    append_record(run, own.model_copy(update={"run_seed": seed}))
    before = len(read_run(run).records)
    append_record(run, own.model_copy(update={"run_seed": seed + 1, "reason": "pasted"}))
    append_record(run, other.model_copy(update={"run_seed": seed + 1}))
    append_record(run, old)
    read = read_run(run)
    assert len(read.records) == before + 1
    assert read.by_trial[own.trial].reason != "pasted"
    assert old.trial in read.by_trial
    assert len(read.warnings) == 2
    assert (
        f"a record of another run, with the seed {seed + 1} and not {seed}; the line was left out" in read.warnings[0]
    )


@pytest.mark.proof
def test_one_flipped_bit_of_a_line_is_told_and_makes_no_other_record(run: Path) -> None:
    file = run / RECORDS
    written, content = read_run(run).records, file.read_bytes()
    first = content.index(b"\n")
    for bit in range(0, 8 * first, 97):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(flipped)
        read = read_run(run)
        assert read.warnings, f"bit {bit}"
        assert set(map(str, read.records)) <= set(map(str, written)), f"bit {bit}"


@pytest.mark.parametrize("figure", ["median", "p99", "process_medians"])
def test_an_edited_line_is_left_out_until_its_digest_is_deleted(run: Path, figure: str) -> None:
    """Figures that fit each other, and that nobody measured."""
    file = run / RECORDS
    first, *others = file.read_text().splitlines(keepends=True)
    content = json.loads(first)
    latency = content["timing"]["latency"]["bound"]
    latency[figure] = [2 * value for value in latency[figure]] if figure == "process_medians" else 2 * latency[figure]
    file.write_text("".join([json.dumps(content) + "\n", *others]))
    (warning,) = read_run(run).warnings
    assert re.search(
        rf"{RECORDS}:1: not as it was written: .* delete `{DIGEST}` from it; the line was left out", warning
    )
    assert len(read_run(run).records) == 2
    del content[DIGEST]
    file.write_text("".join([json.dumps(content) + "\n", *others]))
    assert read_run(run).warnings == ()
    assert len(read_run(run).records) == 3


def test_a_damaged_digit_of_a_schema_costs_its_line_and_not_the_run(run: Path) -> None:
    file = run / RECORDS
    file.write_text(file.read_text().replace(f'"schema":{SCHEMA}', f'"schema":{SCHEMA + 4}', 1))
    read = read_run(run)
    assert len(read.records) == 2
    assert "not as it was written" in read.warnings[0]


def test_a_run_json_that_is_not_as_it_was_written_is_told_and_used(run: Path) -> None:
    """People correct the time of a run there."""
    file = run / INFO
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "started": "2026-02-01T12:00:00Z"}))
    read = read_run(run)
    assert read.info.started == "2026-02-01T12:00:00Z"
    (warning,) = read.warnings
    assert re.search(rf"{INFO}: not as it was written: .* delete `{DIGEST}` from it", warning)
    del content[DIGEST]
    file.write_text(json.dumps(content))
    assert read_run(run).warnings == ()


def test_what_another_program_wrote_in_utf_16_is_damaged(run: Path) -> None:
    """Nobody could say whether it is as it was written: its digest is not found."""
    before = read_run(run)
    for file in (run / INFO, run / RECORDS):
        file.write_bytes(file.read_bytes().decode().encode("utf-16"))
    read = read_run(run)
    assert (read.info, read.records) == (before.info, ())
    assert "run.json: torn or edited; run.json.copy was read instead" in read.warnings[0]
    assert any("records.jsonl:1: not JSON" in warning for warning in read.warnings)


def test_a_link_that_leads_nowhere_is_no_run_without_records(run: Path) -> None:
    for target in ("nowhere", RECORDS):
        (run / RECORDS).unlink()
        (run / RECORDS).symlink_to(target)
        with pytest.raises(StoreError, match=r"records\.jsonl: cannot be read"):
            read_run(run)


def test_a_run_whose_run_json_is_a_folder_says_that_there_is_a_copy(run: Path) -> None:
    (run / INFO).unlink()
    (run / INFO).mkdir()
    with pytest.raises(StoreError, match=r"move what lies there, and copy run\.json\.copy to run\.json"):
        read_run(run)


def test_of_many_damaged_lines_the_first_are_named(run: Path) -> None:
    file = run / RECORDS
    file.write_bytes(b"x\n" * 1000 + file.read_bytes())
    read = read_run(run)
    assert len(read.records) == 3
    assert len(read.warnings) == 6
    assert read.warnings[-1].endswith("995 more damaged lines left out")


def test_a_file_of_damaged_lines_alone_is_not_read_to_its_end(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_file, "MOST_DAMAGED", 20)
    file = run / RECORDS
    file.write_bytes(file.read_bytes() + b"\n" * 1000)
    read = read_run(run)
    assert read.records == tuple(list(fake.whole_run())[:3])
    assert (
        read.warnings[-1] == f"{file}:24: the file is no file of records; this line and all that follow were left out; "
        "restore the file"
    )


def test_a_line_longer_than_any_record_is_left_out(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnnbench.results.records_file.LONGEST_LINE", 1 << 16)
    file = run / RECORDS
    file.write_bytes(b"x" * 200_000 + b"\n" + file.read_bytes())
    read = read_run(run)
    assert len(read.records) == 3
    assert re.search(rf"{RECORDS}:1: a line of 200001 bytes is no record", read.warnings[0])


def test_a_line_without_an_end_is_not_read_to_its_end(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Terabytes of zeros are a compressed file of some megabytes."""
    monkeypatch.setattr(records_file, "LONGEST_LINE", 1 << 16)
    monkeypatch.setattr(records_file, "MOST_SKIPPED", 1 << 18)
    file = run / RECORDS
    whole = file.read_bytes()
    for line, kept in ((bytes(1 << 19), 3), (bytes(1 << 17), 4)):
        file.write_bytes(whole + line + b"\n" + fake.record(chunk=99).model_dump_json().encode() + b"\n")
        read = read_run(run)
        assert len(read.records) == kept
        assert ("the file is no file of records; this line and all that" in read.warnings[-1]) == (kept == 3)


@pytest.mark.parametrize("line", [b"x" * 9_999, b"[" * 9_999, fake.record(chunk=1).model_dump_json().encode()])
def test_damaged_lines_and_lines_of_one_trial_are_read_up_to_a_sum(
    run: Path, monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    """Twenty thousand damaged lines of a gigabyte, or a billion lines of one trial, are a small compressed file."""
    file = run / RECORDS
    monkeypatch.setattr(records_file, "MOST_SKIPPED", 1 << 16)
    last = fake.record(chunk=99).model_dump_json().encode()
    bound = records_file.MOST_SKIPPED // len(line)
    for times, is_read in ((bound - 1, True), (bound + 3, False)):
        file.write_bytes(b"".join(each + b"\n" for each in [*[line] * times, last]))
        read = read_run(run)
        assert (99 in [record.params.chunk for record in read.records]) == is_read
        assert bool(read.unread) != is_read


@pytest.mark.parametrize(
    ("version", "advice"),
    [(SCHEMA + 1, "upgrade rnnbench"), (0, "rnnbench that wrote it"), (None, "rnnbench that wrote it")],
)
@pytest.mark.parametrize("name", [INFO, RECORDS])
def test_another_schema_says_what_to_do(run: Path, name: str, version: int | None, advice: str) -> None:
    file = run / name
    text = file.read_bytes().splitlines()[0] if name == RECORDS else file.read_bytes()
    content = json.loads(without_digest(text)[0])
    file.write_text(json.dumps({**content, "schema": version}) + "\n")
    with pytest.raises(StoreError, match=rf"{name}.*schema {version}.*reads schemas .*{SCHEMA}.*{advice}"):
        read_run(run)


def test_a_record_of_a_newer_schema_says_which_version_reads_it(run: Path) -> None:
    content = json.loads(fake.record().model_dump_json())
    (run / RECORDS).write_text(json.dumps({**content, "schema": SCHEMA + 1, "rnnbench": "7.1.0"}) + "\n")
    with pytest.raises(StoreError, match=r"rnnbench 7\.1\.0 or later can"):
        read_run(run)


def test_unknown_fields_are_ignored_with_one_warning_that_names_them(run: Path) -> None:
    file = run / RECORDS
    lines = [json.loads(without_digest(line)[0]) for line in file.read_bytes().splitlines()]
    for content in lines:
        content["moon"] = "full"
        content["environment"]["tide"] = 2
    file.write_text("".join(json.dumps(content) + "\n" for content in lines))
    info = json.loads(without_digest((run / INFO).read_bytes())[0])
    (run / INFO).write_text(json.dumps({**info, "weather": {"rain": True}}))
    read = read_run(run)
    assert read.records == tuple(list(fake.whole_run())[:3])
    about_info, about_records = read.warnings
    assert re.search(rf"{INFO}: fields .* were ignored: weather; a newer", about_info)
    assert re.search(rf"{RECORDS}: fields .* ignored: environment\.tide, moon; a", about_records)


def test_half_a_surrogate_pair_is_a_question_mark_wherever_it_stands(run: Path) -> None:
    content = json.loads(fake.record().model_dump_json())
    content["environment"]["ti\ud800de"] = 2
    (run / RECORDS).write_text(json.dumps({**content, "route": "a\udfffb", "reason": "\U0001f600"}) + "\n")
    read = read_run(run)
    assert (read.records[0].route, read.records[0].reason) == ("a?b", "\U0001f600")
    assert "environment.ti?de" in read.warnings[0]


def test_half_a_surrogate_pair_as_bytes_is_no_json(run: Path) -> None:
    """A run with such a text could not be written again, as `merge` and `--resume` do."""
    half, whole = "a\udfffb".encode("utf-8", "surrogatepass"), (run / INFO).read_bytes()
    line = fake.record().model_dump_json().encode()
    (run / RECORDS).write_bytes(line.replace(b'"fakelib"', b'"' + half + b'"') + b"\n")
    assert re.search(rf"{RECORDS}:1: not JSON: ", read_run(run).warnings[-1])
    (run / INFO).write_bytes(without_digest(whole)[0].replace(b'"fake_case"', b'"' + half + b'"'))
    copy_of(run / INFO).unlink(missing_ok=True)
    with pytest.raises(StoreError, match=f"{INFO}: not JSON: "):
        read_run(run)


@pytest.mark.parametrize("levels", [100, 300, 900])
def test_a_file_with_hundreds_of_levels_is_damaged(run: Path, levels: int) -> None:
    """It can be read, and could not be written again when a run ends."""
    content = without_digest((run / INFO).read_bytes())[0]
    assert b'"cores": 2' in content
    (run / INFO).write_bytes(content.replace(b'"cores": 2', b'"cores": ' + b"[" * levels + b"]" * levels))
    with pytest.raises(StoreError, match=rf"{INFO}: has more than 64 levels of arrays and objects; restore the file"):
        read_run(run)


def test_a_field_that_does_not_fit_is_named_beside_unknown_ones(run: Path) -> None:
    content = json.loads(fake.record().model_dump_json())
    content["params"]["chunk"] = "sixteen"
    (run / RECORDS).write_text(json.dumps({**content, "moon": 1}) + "\n")
    assert re.search(rf"{RECORDS}:1: not a Record of schema {SCHEMA}: params\.chunk: ", read_run(run).warnings[-1])


def test_a_field_that_does_not_fit_is_named(run: Path) -> None:
    content = json.loads(fake.record().model_dump_json())
    content["params"]["chunk"] = "sixteen"
    (run / RECORDS).write_text(json.dumps(content) + "\n")
    assert re.search(rf"{RECORDS}:1: not a Record of schema {SCHEMA}: params\.chunk: ", read_run(run).warnings[-1])


def test_a_run_without_records_is_read_with_a_warning(tmp_path: Path) -> None:
    read = read_run(fake.write_run(tmp_path, []))
    assert read.records == ()
    assert "before its first trial" in read.warnings[0]


def test_a_folder_that_is_no_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"is not a run: it has no run\.json"):
        read_run(tmp_path)
    with pytest.raises(StoreError, match="is not a run: it does not exist"):
        read_run(tmp_path / "absent")


def test_a_folder_that_may_not_be_read_is_not_called_empty(tmp_path, monkeypatch):
    """Root may read every folder."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(StoreError, match="cannot be read: Permission denied; check its permissions"):
        Store(tmp_path).resolve(tmp_path)


def test_write_info_replaces_the_whole_file_and_leaves_its_copy_alone_beside_it(run: Path) -> None:
    write_info(run, fake.info(finished=None))
    assert read_run(run).info.finished is None
    assert sorted(p.name for p in run.iterdir()) == [RECORDS, INFO, f"{INFO}.copy"]


def test_a_run_is_found_by_path_by_name_and_as_latest(run: Path) -> None:
    runs = Store(run.parent)
    newest = fake.write_run(run.parent / "20260201T000000Z-fake_case", [])
    fake.write_run(run.parent / "reference", [])
    (run.parent / "20270101T000000Z-not_a_run").mkdir()
    assert runs.resolve(run) == run
    assert runs.resolve(run.name) == run
    assert runs.resolve("reference") == run.parent / "reference"
    assert runs.resolve("latest") == newest
    assert runs.read("latest").name == newest.name
    assert runs.runs() == [run, newest]


def test_the_run_of_another_user_is_told_and_hides_no_run_of_ones_own(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = run.parent / "20270101T000000Z-secret"
    secret.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: path != secret)
    runs = Store(run.parent)
    assert runs.resolve("latest") == run
    (warning,) = runs.left_out("latest")
    assert warning.startswith(f"{secret}: may not be read, so it is not taken for the latest run")
    shutil.rmtree(run)
    with pytest.raises(StoreError, match=f"no run is the latest: {secret}: may not be read"):
        runs.resolve("latest")


def test_a_run_that_a_wrong_clock_dated_in_the_future_is_not_the_latest(run: Path) -> None:
    runs = Store(run.parent)
    ahead = fake.write_run(run.parent / "80260131T120000Z-fake_case", [])
    assert runs.resolve("latest") == run
    assert runs.read("latest").warnings == runs.left_out("latest")
    (warning,) = runs.left_out("latest")
    assert warning.startswith(f"{ahead}: dated in the future, so it is not taken for the latest run")
    assert runs.left_out(ahead) == ()
    assert runs.read(ahead).warnings == read_run(ahead).warnings


def test_a_run_from_before_the_clock_was_set_is_told_where_the_latest_is_asked_for(run: Path) -> None:
    """It may be the one that was meant."""
    runs = Store(run.parent)
    early = fake.write_run(run.parent / "19700101T000100Z-fake_case", [])
    assert runs.resolve("latest") == run
    (warning,) = runs.left_out("latest")
    assert warning.startswith(f"{early}: dated before rnnbench was written, so it is not taken for the latest run")


def test_where_all_runs_are_of_the_future_the_last_is_the_latest(tmp_path: Path) -> None:
    """The clock of the machine that reads them may be the wrong one."""
    first, last = (fake.write_run(tmp_path / f"{year}0131T120000Z-fake_case", []) for year in (8026, 8027))
    assert Store(tmp_path).resolve("latest") == last != first
    assert Store(tmp_path).left_out("latest") == ()


def test_where_there_is_no_run_none_is_left_out(tmp_path: Path) -> None:
    assert Store(tmp_path).left_out("latest") == ()
    assert Store(tmp_path / "absent").left_out("latest") == ()


def test_by_a_clock_that_began_in_1970_no_run_is_of_the_future(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All good runs would be left out, with the advice to rename them."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Clock:
            return cls(1970, 1, 1, 0, 5, tzinfo=tz)

    monkeypatch.setattr(dates, "datetime", Clock)
    fake.write_run(run.parent / "19700101T000030Z-fake_case", [])
    assert Store(run.parent).resolve("latest") == run
    assert Store(run.parent).left_out("latest") == ()


def test_a_run_that_is_not_there_gives_the_nearest_name(run: Path) -> None:
    runs = Store(run.parent)
    with pytest.raises(StoreError, match=f"did you mean '{run.name}'"):
        runs.resolve(run.name[:-2])
    with pytest.raises(StoreError, match="did you mean 'latest'"):
        runs.resolve("lastest")
    other = fake.write_run(run.parent / "elsewhere" / "reference", [])
    with pytest.raises(StoreError, match=f"did you mean '{other}'"):
        runs.resolve(other.with_name("refernce"))
    with pytest.raises(StoreError, match="or 'latest'"):
        runs.resolve("zebra")
    with pytest.raises(StoreError, match="or 'latest'"):
        runs.resolve("x" * 300)  # longer than a file system allows
    with pytest.raises(StoreError, match="so none is the latest"):
        Store(run.parent / "none").resolve("latest")


def test_new_runs_are_named_by_time_and_case_and_never_share_a_folder(tmp_path: Path) -> None:
    runs = Store(tmp_path / "results")
    (runs.root / "20260131T120000Z-fake_case-2").mkdir(parents=True)
    name = run_name(["fake_case"], NOON)
    begun = [runs.begin_folder() for _ in range(3)]
    assert len(set(begun)) == 3
    assert runs.runs() == []
    assert sorted(runs.begun()) == sorted(begun)
    paths = [runs.put_run(folder, name, fake.info()) for folder in begun]
    assert [p.name for p in paths] == [
        "20260131T120000Z-fake_case",
        "20260131T120000Z-fake_case-3",
        "20260131T120000Z-fake_case-4",
    ]
    assert [read_run(p).info.run for p in paths] == [p.name for p in paths]
    assert runs.runs() == paths
    assert runs.begun() == []


def test_a_name_is_in_utc_and_stays_short(tmp_path: Path) -> None:
    assert run_name(["a", "b"], NOON.astimezone(timezone(timedelta(hours=9)))) == "20260131T120000Z-a+b"
    assert run_name(["x/../y"], NOON) == "20260131T120000Z-x_.._y"
    long = run_name([f"fake_case_{n}" for n in range(40)], NOON)
    assert len(long) <= 100
    assert long.endswith("fake_case_0+39_more")
    of_side = run_name(["fake_case" * 40], NOON, "-b")
    assert (len(of_side), of_side[-2:]) == (len(run_name(["fake_case" * 40], NOON)), "-b")
    assert len(run_name(["f" * 500], NOON)) == 100
    for name in ("\N{SNOWMAN}" * 90, "\N{GOTHIC LETTER AHSA}" * 75, "\N{HANGUL SYLLABLE GA}" * 500):
        assert (tmp_path / run_name([name], NOON)).mkdir() is None


def test_a_results_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    for attempt in (
        lambda: Store(blocked).begin_folder(),
        lambda: Store(blocked / "deeper").begin_folder(),
        lambda: write_info(blocked, fake.info()),
    ):
        with pytest.raises(StoreError, match=r"cannot write to .*a file.*name another place with --results"):
            attempt()


def test_a_record_is_on_the_disk_when_append_returns(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    append_record(run, fake.record(chunk=99))
    assert synced == [(run / RECORDS).stat().st_size]


def test_records_that_are_a_link_are_read_and_not_appended_to(run: Path) -> None:
    """A run that was made elsewhere may have a link to any file of its user: its torn tail is cut off otherwise."""
    outside = run.parent / "outside.txt"
    outside.write_text("a line without an end")
    (run / RECORDS).unlink()
    (run / RECORDS).symlink_to(outside)
    assert read_run(run).records == ()
    with pytest.raises(StoreError, match="is a link to another file"):
        append_record(run, next(iter(fake.whole_run())))
    assert outside.read_text() == "a line without an end"


@pytest.mark.parametrize("name", [RECORDS, "run.json"])
def test_a_pipe_in_the_place_of_a_file_is_a_sentence(run: Path, name: str) -> None:
    (run / name).unlink()
    os.mkfifo(run / name)
    with pytest.raises(StoreError):
        read_run(run)


@pytest.mark.parametrize(
    ("content", "got"), [("null", "null"), ("[1]", "an array"), ("3", "a number"), ("true", "true")]
)
def test_what_is_no_object_is_told_in_the_words_of_json(run: Path, content: str, got: str) -> None:
    (run / RECORDS).write_text(f"{content}\n")
    assert any(f"expected a JSON object, got {got}" in warning for warning in read_run(run).warnings)
