"""`rnnbench export` writes a run to standard output, to a file or to a folder, and says what is wrong."""

from __future__ import annotations

import json
import os
import pty
from io import BufferedWriter, BytesIO
from pathlib import Path

import fake_records as fake
import pytest
from click.testing import CliRunner, Result
from killed_runs import fork
from waiting import PATIENCE_S

from rnnbench.cli.export import _write, export
from rnnbench.results import COLUMNS, StoreError, read_run
from rnnbench.results.exports import EXPORTS, BinaryExport, FolderExport

FILES = [name for name, format_ in EXPORTS.items() if not isinstance(format_, FolderExport)]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    fake.write_run(tmp_path / "20260131T120000Z-fake_case", [fake.record(chunk=1), fake.record(chunk=16)])
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(export, arguments)


def test_csv_goes_to_standard_output(results: Path) -> None:
    lines = run("latest", "--results", str(results)).stdout.splitlines()
    assert lines[0] == ",".join(column.name for column in COLUMNS)
    assert len(lines) == 3


def test_json_lines_go_to_a_file(results: Path) -> None:
    file = results / "rows.jsonl"
    assert run("latest", "--format=jsonl", "-o", str(file), "--results", str(results)).exit_code == 0
    assert [json.loads(line)["chunk"] for line in file.read_text().splitlines()] == [1, 16]


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_what_standard_output_has(results: Path, name: str) -> None:
    shown = run("latest", f"--format={name}", "--results", str(results))
    file = results / "exported"
    written = run("latest", f"--format={name}", "-o", str(file), "--results", str(results))
    assert (shown.exit_code, written.exit_code, written.stdout) == (0, 0, f"{name}  {file}\n")
    assert file.read_bytes() == shown.stdout_bytes
    again = run("latest", f"--format={name}", "-o", str(file), "--results", str(results))
    assert again.stdout == f"{name}  {file}, in place of the earlier file\n"
    assert sorted(path.name for path in results.iterdir()) == ["20260131T120000Z-fake_case", "exported"]


def test_what_a_small_binary_format_writes_has_left_the_process(results: Path) -> None:
    """Otherwise a full disk, or a reader that has gone, would be noticed after the command's end."""
    chosen = BinaryExport("small", ".small", "", lambda run, stream: stream.write(b"small"))
    stream = BufferedWriter(written := BytesIO())
    _write(chosen, read_run(next(results.iterdir())), stream)
    assert written.getvalue() == b"small"


@pytest.mark.parametrize("name", ["run.json", "records.jsonl", "a link"])
def test_a_file_of_a_run_is_never_replaced(results: Path, name: str) -> None:
    """Records cannot be made again."""
    (folder,) = results.iterdir()
    (results / "a link").symlink_to(folder / "records.jsonl")
    file = results / name if name == "a link" else folder / name
    before = file.read_bytes()
    refused = run("latest", "-o", str(file), "--results", str(results))
    assert refused.exit_code == 2
    assert "and is not replaced; name another file" in refused.stderr.replace("\n", " ")
    assert file.read_bytes() == before
    assert run("latest", "-o", str(folder / "new.csv"), "--results", str(results)).exit_code == 0


def test_the_help_has_a_line_for_each_format() -> None:
    lines = [line.split(maxsplit=1) for line in run("--help").stdout.partition("Formats:\n")[2].splitlines()]
    assert lines == [[name, each.description] for name, each in EXPORTS.items()]


def test_an_unknown_format_names_the_known_ones(results: Path) -> None:
    failed = run("latest", "--format=xml", "--results", str(results))
    assert failed.exit_code == 2
    assert f"unknown format 'xml'; expected one of {', '.join(EXPORTS)}" in failed.stderr


def test_a_file_that_cannot_be_written_is_named(results: Path) -> None:
    failed = run("latest", "-o", str(results / "no" / "rows.csv"), "--results", str(results))
    assert isinstance(failed.exception, StoreError)
    assert "cannot write" in str(failed.exception)
    assert not (results / "no").exists()


def test_a_folder_is_no_file(results: Path) -> None:
    failed = run("latest", "-o", str(results), "--results", str(results))
    assert isinstance(failed.exception, StoreError)
    assert f"{results} is a folder; name a file in it" in str(failed.exception)


def test_a_file_that_is_half_written_leaves_the_one_before(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = results / "rows.csv"
    file.write_text("before")

    def break_off(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("csv.DictWriter.writerow", break_off)
    failed = run("latest", "-o", str(file), "--results", str(results))
    assert f"cannot write {file}: No space left on device" in str(failed.exception)
    assert file.read_text() == "before"


def test_a_pipe_is_written_into_and_stays_a_pipe(results: Path) -> None:
    pipe = results / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert run("latest", "-o", str(pipe), "--results", str(results)).exit_code == 0
    assert os.read(reader, 100).startswith(b"run,shard,started,")
    os.close(reader)
    assert pipe.is_fifo()


def test_a_link_stays_a_link(results: Path) -> None:
    link = results / "link.csv"
    link.symlink_to(results / "rows.csv")
    assert run("latest", "-o", str(link), "--results", str(results)).exit_code == 0
    assert link.is_symlink()
    assert (results / "rows.csv").read_text().startswith("run,shard,started,")


def test_a_binary_format_is_not_written_to_a_terminal(results: Path) -> None:
    ours, theirs = pty.openpty()
    terminal = os.ttyname(theirs)
    process = fork(
        results,
        *("export", "latest", "--format=parquet", f"--results={results}"),
        preexec_fn=lambda: os.dup2(os.open(terminal, os.O_RDWR | os.O_NOCTTY), 1),
    )
    _, errors = process.communicate(timeout=PATIENCE_S)
    os.close(theirs)
    os.close(ours)
    assert process.returncode == 2
    assert "parquet is not text; write it to a file with -o 20260131T120000Z-fake_case.parquet" in errors


def test_impossible_figures_are_left_out_and_named(results: Path) -> None:
    broken = fake.record(chunk=4)
    zero = broken.timing.latency["bound"].model_copy(update={"median": 0.0})
    fake.write_run(results / "20260201T120000Z-broken", [fake.with_latencies(broken, bound=zero)])
    shown = run("latest", "--format=bencher", "--results", str(results))
    assert set(json.loads(shown.stdout)[broken.trial]) == {"public-latency", "build-time", "memory", "file-size"}
    assert "timing.latency.bound is impossible" in shown.stderr


def test_a_format_of_several_files_needs_a_folder(results: Path) -> None:
    failed = run("latest", "--format=asv", "--results", str(results))
    assert failed.exit_code == 2
    assert "asv is a folder of files; name it with -o FOLDER" in failed.stderr


def test_a_folder_is_named_and_whether_it_had_the_run_already(results: Path) -> None:
    folder = results.parent / "asv"
    told = [run("latest", "--format=asv", "-o", str(folder), "--results", str(results)).stdout for _ in range(2)]
    assert told == [f"asv  {folder}\n", f"asv  {folder}, in place of the earlier export of this run\n"]
