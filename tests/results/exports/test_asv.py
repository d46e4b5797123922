"""The folder for asv: one commit a run, in the order of time, and nothing else's folder."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import fake_records as fake
import fake_shards as made
import pytest
from waiting import PATIENCE_S, join

from rnnbench.results import StoreError, merge_shards, read_run, write_merged
from rnnbench.results.exports import EXPORTS, asv


def add(folder: Path, root: Path, day: int, *, name: str = "", started: str = "") -> None:
    run = fake.write_run(
        root / (name or f"day-{day}"), [fake.record()], started=started or f"2026-01-{day:02}T00:00:00Z"
    )
    EXPORTS["asv"].write(read_run(run), folder)


def commits(folder: Path) -> list[str]:
    log = ["git", f"--git-dir={folder}/runs.git", "log", "--reverse", "--format=%s %at %b"]
    return subprocess.run(log, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout.splitlines()


def test_each_run_is_a_commit_at_its_time_with_its_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2001-01-01T00:00:00Z")
    for day in (1, 2):
        add(tmp_path / "asv", tmp_path, day)
    assert [line for line in commits(tmp_path / "asv") if line.startswith("day")] == [
        "day-1 1767225600 fakelib-package 1.2.3",
        "day-2 1767312000 fakelib-package 1.2.3",
    ]


def test_a_run_that_is_exported_twice_is_there_once(tmp_path: Path) -> None:
    for day in (1, 2, 1):
        add(tmp_path / "asv", tmp_path, day)
    results = sorted((tmp_path / "asv" / "results").glob("*/*-rnnbench.json"))
    assert len(results) == 2
    assert {json.loads(file.read_text())["date"] for file in results} == {1767225600000, 1767312000000}


def test_runs_of_one_name_or_of_one_second_are_told_apart(tmp_path: Path) -> None:
    add(tmp_path / "asv", tmp_path / "first", 1, name="night")
    add(tmp_path / "asv", tmp_path / "second", 2, name="night")
    add(tmp_path / "asv", tmp_path, 2, name="other")
    subjects = [line for line in commits(tmp_path / "asv") if line.startswith(("night", "other"))]
    assert subjects == [
        "night 1767225600 fakelib-package 1.2.3",
        "night 1767312000 fakelib-package 1.2.3",
        "other 1767312000 fakelib-package 1.2.3",
    ]


def test_a_benchmark_that_a_later_run_has_not_is_still_there_with_its_kind(tmp_path: Path) -> None:
    for day, chunk in ((1, 4), (2, 8)):
        started = f"2026-01-0{day}T00:00:00Z"
        run = fake.write_run(tmp_path / f"day-{day}", [fake.record(chunk=chunk)], started=started)
        EXPORTS["asv"].write(read_run(run), tmp_path / "asv")
    benchmarks = json.loads((tmp_path / "asv" / "results" / "benchmarks.json").read_text())
    kinds = {name: (of["type"], of["unit"]) for name, of in benchmarks.items() if name != "version"}
    for chunk in (4, 8):
        of_chunk = {name.rpartition(".")[2]: kind for name, kind in kinds.items() if f"-c{chunk}-" in name}
        assert of_chunk["bound"] == of_chunk["build"] == ("time", "seconds")
        assert of_chunk["memory"] == of_chunk["artifact"] == ("memory", "bytes")


def test_settings_of_the_users_git_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".gitconfig").write_text("[safe]\nbareRepository = explicit\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for day in (1, 2):
        add(tmp_path / "asv", tmp_path, day)
    assert len(list((tmp_path / "asv" / "results").glob("*/*-rnnbench.json"))) == 2


def test_each_machine_of_merged_shards_has_its_own_results(tmp_path: Path) -> None:
    shards = [made.make_shard(tmp_path, n, machine=made.OTHER if n == 2 else made.ONE) for n in (1, 2, 3)]
    EXPORTS["asv"].write(write_merged(merge_shards(shards), tmp_path / "results").run, tmp_path / "asv")
    machines = [json.loads(file.read_text()) for file in (tmp_path / "asv" / "results").glob("*/machine.json")]
    assert sorted((machine["cpu"], machine["num_cpu"]) for machine in machines) == [
        ("Fake CPU 7", "4"),
        ("Fake CPU 9000", "2"),
    ]


def test_a_run_before_the_last_one_is_refused(tmp_path: Path) -> None:
    add(tmp_path / "asv", tmp_path, 2)
    with pytest.raises(StoreError, match="already has the later run day-2"):
        add(tmp_path / "asv", tmp_path, 1)


def test_a_folder_of_something_else_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "asv.conf.json").write_text("{}")
    with pytest.raises(StoreError, match="no folder that an export to asv made"):
        add(tmp_path / "mine", tmp_path, 1)
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["asv.conf.json"]


def test_a_run_without_a_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no time at which the run began"):
        add(tmp_path / "asv", tmp_path, 1, started="once upon a time")


def test_without_git_the_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreError, match="needs git"):
        add(tmp_path / "asv", tmp_path, 1)


def test_a_hostile_name_names_no_other_file(tmp_path: Path) -> None:
    record = fake.record().model_copy(update={"trial": "../../x\x1b[31m(<b>)" + "y" * 500})
    run = fake.write_run(tmp_path / "run", [record])
    EXPORTS["asv"].write(read_run(run), tmp_path / "asv")
    (name, *_) = json.loads((tmp_path / "asv" / "results" / "benchmarks.json").read_text())
    assert not set(name) & set('<>:"/\\^|?*(\x1b')
    assert len(name) < 200


def test_a_git_that_hangs_is_ended_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a network folder whose server is gone. Here a pipe stands in the place of a file that git reads."""
    add(tmp_path / "asv", tmp_path, 1)
    packed = tmp_path / "asv" / "runs.git" / "packed-refs"
    os.mkfifo(packed)
    monkeypatch.setattr(asv, "GIT_LIMIT_S", 0.5)
    with pytest.raises(StoreError, match=r"git \w+ did not end within 0.5 s; see what lies there"):
        add(tmp_path / "asv", tmp_path, 2)


def test_a_hook_in_the_repository_does_not_run(tmp_path: Path) -> None:
    add(tmp_path / "asv", tmp_path, 1)
    hook = tmp_path / "asv" / "runs.git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    add(tmp_path / "asv", tmp_path, 2)
    assert [line.split()[0] for line in commits(tmp_path / "asv") if line.startswith("day")] == ["day-1", "day-2"]


@pytest.mark.parametrize("killed_in", ["init", "commit-tree", "update-ref"])
def test_an_export_that_was_interrupted_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_in: str
) -> None:
    git = asv._git

    def interrupted(folder: Path, *arguments: str, time: int = 0, text: str = "") -> str:
        if arguments[0] == killed_in:
            raise KeyboardInterrupt
        return git(folder, *arguments, time=time, text=text)

    with monkeypatch.context() as patch:
        patch.setattr(asv, "_git", interrupted)
        with pytest.raises(KeyboardInterrupt):
            add(tmp_path / "asv", tmp_path, 1)
    add(tmp_path / "asv", tmp_path, 1)
    assert [line.split()[0] for line in commits(tmp_path / "asv") if line.startswith("day")] == ["day-1"]


def test_exports_at_once_keep_every_run(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    run_of = {day: (tmp_path / "asv", tmp_path / str(day), 1) for day in (1, 2, 3)}
    exports = [
        context.Process(target=add, args=arguments, kwargs={"name": f"day-{day}"}, daemon=True)
        for day, arguments in run_of.items()
    ]
    for export in exports:
        export.start()
    join(*exports)
    assert sorted(line.split()[0] for line in commits(tmp_path / "asv") if line.startswith("day")) == [
        "day-1",
        "day-2",
        "day-3",
    ]


def test_settings_that_the_user_added_for_asv_stay(tmp_path: Path) -> None:
    config = tmp_path / "asv" / "asv.conf.json"
    add(tmp_path / "asv", tmp_path, 1)
    config.write_text(json.dumps({**json.loads(config.read_text()), "show_commit_url": "https://example.org/"}))
    add(tmp_path / "asv", tmp_path, 2)
    assert json.loads(config.read_text())["show_commit_url"] == "https://example.org/"


@pytest.mark.parametrize("name", ["ends in a space ", "two  spaces", "-m", "größe 大 🙂", "x" * 3_000])
def test_a_run_with_an_odd_name_is_there_once(tmp_path: Path, name: str) -> None:
    run = fake.write_run(tmp_path / "run", [fake.record()])
    odd = read_run(run)
    odd = replace(odd, info=odd.info.model_copy(update={"run": name}))
    for _ in range(2):
        EXPORTS["asv"].write(odd, tmp_path / "asv")
    assert sum("fakelib-package" in line for line in commits(tmp_path / "asv")) == 1


@pytest.mark.parametrize("damage", ["", "[1]", "{", "nothing"])
def test_damaged_benchmarks_are_named_and_no_series_is_lost(tmp_path: Path, damage: str) -> None:
    for day in (1, 2):
        add(tmp_path / "asv", tmp_path, day)
    file = tmp_path / "asv" / "results" / "benchmarks.json"
    before = file.read_bytes()
    file.write_text(damage)
    with pytest.raises(
        StoreError, match=r"benchmarks\.json: is damaged; restore it, or delete it and export every run"
    ):
        add(tmp_path / "asv", tmp_path, 3)
    assert file.read_text() == damage
    file.unlink()
    for day in (1, 2, 3):
        add(tmp_path / "asv", tmp_path, day)
    assert file.read_bytes() == before


def test_an_export_that_was_killed_at_its_first_file_goes_on(tmp_path: Path) -> None:
    (tmp_path / "asv").mkdir()
    (tmp_path / "asv" / ".asv.conf.json.123-456.part").touch()
    add(tmp_path / "asv", tmp_path, 1)
    assert not list((tmp_path / "asv").glob(".*"))
