"""What the fuzzer is let loose on: case files, expected failures, records, `run.json`, command lines, and MLIR."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import yaml
from fuzzer import Subject
from rich.console import Console
from stablehlo_files import FILES as MODULES

from rnnbench.backends import Probe, names
from rnnbench.cases import Case, CaseError, Target, expected_failures_for, expected_failures_of, load_case
from rnnbench.cli import main
from rnnbench.conformance import CHECKS_BY_NAME
from rnnbench.content_digest import without_digest
from rnnbench.model_files import ModelFileError, describe, oracle_of
from rnnbench.plan import probe_or_stand_in
from rnnbench.reports import (
    COMMENT_CHARACTERS,
    ReportError,
    comparison_markdown,
    print_conformance,
    print_summary,
    write_report,
)
from rnnbench.results import Run, StoreError, compare_runs, read_run, sound, view_runs
from rnnbench.results.compressed import COMPRESSED, RECORDS, Decompressed
from rnnbench.results.exports import EXPORTS, Export

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "cases").rglob("*.yaml"))
RUNS = sorted((ROOT / "results").glob("*/run.json"))
TARGETS = (Target("numpy", "eager"), Target("fake", "honest"))
MAX_TRIALS = 500
"""A fuzzed axis may make a matrix of thousands of points, which takes as long as such a matrix takes."""


def case_files(folder: Path) -> Subject:
    """Case files: read, expanded into trials, their ids and parameters made."""
    file = folder / "fuzzed.yaml"

    def read(data: bytes) -> None:
        file.write_bytes(data)
        for trial in load_case(file, max_trials=MAX_TRIALS).trials(TARGETS, MAX_TRIALS):
            _ = trial.id

    whole = [path.read_bytes() for path in CASES if path.name != "expectations.yaml"]
    short = [_short(yaml.safe_load(seed)) for seed in whole]
    seeds = [*whole[:2], *(yaml.safe_dump(value, sort_keys=False).encode() for value in short)]
    return Subject("case files", seeds, read, (CaseError,), short)


def _short(case: Any) -> Any:
    """The case without what makes it long: it is then read ten times as fast."""
    if isinstance(case, dict):
        return {key: _short(value) for key, value in case.items() if key != "description"}
    return [_short(value) for value in case[:2]] if isinstance(case, list) else case


def expected_failures(folder: Path) -> Subject:
    """Files of expected failures: read, and held against trials."""
    file = folder / "fuzzed-expectations.yaml"
    case = load_case(ROOT / "cases" / "smoke.yaml")
    probes = _probes()

    def read(data: bytes) -> None:
        file.write_bytes(data)
        entries = expected_failures_for([case], probes, CHECKS_BY_NAME, file, names=names())[case.name]
        for trial in _smoke_trials(case):
            expected_failures_of(trial, probes[trial.target.backend].versions, entries)

    seeds = [path.read_bytes() for path in CASES if path.name == "expectations.yaml"]
    values = [yaml.safe_load(seed) for seed in seeds]
    alone = [{**value, "expectations": [entry]} for value in values for entry in value["expectations"]]
    seeds += [yaml.safe_dump(value).encode() for value in alone]
    return Subject("expected failures", seeds, read, (CaseError,), alone)


@cache
def _probes() -> dict[str, Probe]:
    backends = ("numpy", "fake", "iree", "tvm", "tensorflow", "torch", "onnxruntime")
    return {name: probe_or_stand_in(name) for name in backends}


@cache
def _smoke_trials(case: Case) -> list[Any]:
    return case.trials((*TARGETS, Target("iree", "linalg"), Target("tvm", "relax")))[:12]


def records(folder: Path) -> Subject:
    """Lines of `records.jsonl`, one among others: read, viewed, exported, summed up; some also reported."""
    run = _run_folder(folder / "records")
    others = _lines()[0] + b"\n"
    (run / "records.jsonl").write_bytes(others)
    _report(read_run(run), folder)  # What it imports takes longer than an input may.

    def read(data: bytes) -> None:
        (run / "records.jsonl").write_bytes(others + data + b"\n")
        _use(read_run(run), folder, of=data)

    return Subject("records", _lines(), read, (StoreError, ReportError), [_json(line) for line in _lines()])


def run_infos(folder: Path) -> Subject:
    """`run.json`: read, viewed and reported with records of a run."""
    run = _run_folder(folder / "infos")
    (run / "records.jsonl").write_bytes(b"\n".join(_lines()[:2]) + b"\n")
    seeds = [without_digest(file.read_bytes())[0] for file in RUNS]

    def read(data: bytes) -> None:
        (run / "run.json").write_bytes(data)
        _use(read_run(run), folder, of=data)

    return Subject("run.json", seeds, read, (StoreError, ReportError), [_json(seed) for seed in seeds])


REPORTED_OF = 200
"""One in so many readable runs is reported too: a report takes some hundred times as long as all the rest."""


def _use(run: Run, folder: Path, of: bytes) -> None:
    """What commands make of a run: `report`, `export`, `compare`, and the summaries of `run` and `check`."""
    view_runs([run])
    (exported,), _ = sound([run])
    for export in EXPORTS.values():
        if isinstance(export, Export):
            with suppress(StoreError):  # Some tools read no file without a figure.
                export.write(exported, io.StringIO())
    if sum(of) % REPORTED_OF == 0:
        _report(run, folder)


def _report(run: Run, folder: Path) -> None:
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), width=120)
    print_summary(run, console)
    print_conformance(run, console)
    comparison_markdown(compare_runs(run, run), COMMENT_CHARACTERS)
    write_report([run], folder / "report")
    shutil.rmtree(folder / "report")


def _run_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    shutil.copy(RUNS[0], folder / "run.json")
    return folder


@cache
def _lines() -> list[bytes]:
    """Records of each outcome, route and case that the committed runs have, none too long.

    They have no digest, which would refuse all others that are made of them.
    """
    kept: dict[tuple[str, ...], bytes] = {}
    for file in RUNS:
        for written in _content(file.parent).splitlines():
            line = without_digest(written)[0]
            content = _json(line)
            kept.setdefault((content["outcome"], content["params"]["state"], content["backend"]), line)
    return sorted(kept.values(), key=len)[:40]


def _content(run: Path) -> bytes:
    if (run / RECORDS).exists():
        return (run / RECORDS).read_bytes()
    with (run / COMPRESSED).open("rb") as file:
        return io.BufferedReader(Decompressed(file)).read()


def _json(text: bytes) -> Any:
    import json

    return json.loads(text)


CASE = """\
schema: 1
name: tiny
model: {cell: lstm, input: 3, hidden: 4}
workload: {steps: 8, chunk: [2, 4]}
strategy: {time: looped, state: stitched}
"""
COMMANDS = (
    "run tiny.yaml --backend=fake:honest --processes 2 --no-baseline",
    "run tiny.yaml --backend numpy --set model.hidden=8 --set workload.chunk=[1,2] --filter chunk=1 --max-trials 50",
    "run --resume latest --results results",
    "run tiny.yaml --backend=fake --only 0a1b2c3d --expectations e.yaml --keep-artifacts",
    "check tiny.yaml --backend=numpy:* --jobs 2 --endurance 0.5 --no-shrink",
    "check tiny.yaml --backend fake:honest --set matrix={} --set limits.trial=10s",
    "list tiny.yaml --backend=numpy,fake:honest --filter state=stitched,chunk=2|4",
    "list tiny.yaml --set strategy.time=unrolled:2",
    "report run run --results . --reports reports",
    "export run --format jsonl -o rows.jsonl",
    "export run --format=csv",
    "compare run run --threshold 0.05 --across-machines",
    "ab tiny.yaml --backend=fake:honest --a one --b two==1.0 --budget 10s --threshold 0.1 --environments e",
    "doctor --fidelity --backend=numpy",
    "backends",
    "schema",
    "--help",
    "--version",
    "check -h",
)
_WORDS = """
--set --set= --filter --filter= --only= --backend= --backend --results --reports= --budget= -o --resume=latest
--max-trials= --jobs= --processes=0 --endurance=nan --threshold=inf - -- -x model model.hidden= model.hidden=[1,2,3]
workload.chunk=all matrix.exclude=[{chunk:2}] name=x model..x=1 .=1 = a=b=c schema=2 limits.trial=-1s measure.period=1ms
model.hidden={a:[} hidden=a =1 time chunk=1| tiny.yaml run broken missing.yaml latest . numpy: : numpy:nope nope fake:*
absent fake,,numpy 1e999 -1 0 99999999999999999999 nan 10s 1h [red]x[/]
"""
WORDS = (*_WORDS.split(), "", "é", "\udcff", "\n", "\x1b[2J", "x" * 300)


def command_lines(folder: Path) -> Subject:
    """Arguments of the command, in a folder with a case, a run and a broken one. No trial is run: see `unable_to_run`.

    Mutated as bytes, split at spaces. A path that would leave the folder is made one that does not.
    """
    (folder / "tiny.yaml").write_text(CASE)
    run = _run_folder(folder / "run")
    (run / "records.jsonl").write_bytes(b"\n".join(_lines()[:6]) + b"\n")
    (folder / "broken").mkdir()
    (folder / "broken" / "run.json").write_text("{")

    def read(data: bytes) -> None:
        arguments = os.fsdecode(data.replace(b"\0", b"").replace(b"/", b"_").replace(b"..", b".")).split(" ")
        out, err = _stream("strict"), _stream("backslashreplace")
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "argv", ["rnnbench", *arguments])
            with suppress(SystemExit):
                main()
        out.flush()
        err.flush()
        printed = err.buffer.getvalue()  # type: ignore[attr-defined]
        assert b"Traceback" not in printed, printed[-300:]
        for written in folder.glob("results/*Z-*"):
            shutil.rmtree(written)

    seeds = [text.encode() for text in COMMANDS]
    words = [word.encode("utf-8", "surrogateescape") for word in WORDS]
    seeds += [b" ".join([seed, word]) for seed in seeds[:13] for word in words]
    seeds += [b" ".join([seed, word, another]) for seed in seeds[:13:3] for word in words[:17] for another in words]
    return Subject("command lines", seeds, read, ())


def _stream(errors: str) -> io.TextIOWrapper:
    """As Python opens the standard streams."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors)


def stablehlo_files(folder: Path) -> Subject:
    """Modules of StableHLO: described, and computed where they are read."""
    pytest.importorskip("iree.compiler")
    file = folder / "fuzzed.mlir"

    def read(data: bytes) -> None:
        file.write_bytes(data)
        description, oracle = describe(file), oracle_of(file)
        arrays = description.of_role("input", "state_in", "constant")
        shapes = {one.name: [1 if size is None else int(size) for size in one.shape or ()] for one in arrays}
        oracle.run({one.name: np.ones(shapes[one.name], one.dtype) for one in arrays})

    return Subject("MLIR", [text.encode() for text in MODULES.values()], read, (ModelFileError,))


@contextmanager
def unable_to_run(folder: Path) -> Iterator[None]:
    """Whatever would run a trial, make an environment or measure the machine ends the command instead."""

    def ends(*_: object, **__: object) -> None:
        raise click.exceptions.Exit(0)

    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name in (
            "rnnbench.pipeline.run_trials",
            "rnnbench.pipeline.check_trials",
            "rnnbench.pipeline.open_side",
            "rnnbench.fidelity.measure_fidelity",
            "rnnbench.measure.examine_machine",
            "rnnbench.plan.build_support_matrix",
        ):
            patch.setattr(name, ends)
        patch.setattr("rnnbench.disk.os.fsync", lambda descriptor: None)
        # A picture takes half a second to write.
        patch.setattr("matplotlib.figure.Figure.savefig", lambda self, file, **_: None)
        patch.chdir(folder)
        yield


SUBJECTS: tuple[Callable[[Path], Subject], ...] = (
    case_files,
    expected_failures,
    records,
    run_infos,
    command_lines,
    stablehlo_files,
)
