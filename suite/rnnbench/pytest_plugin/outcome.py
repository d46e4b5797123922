"""What pytest says of a trial: its outcome, its properties, and a text for the person who must fix it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rnnbench.cases import expected_failures_of
from rnnbench.conformance import CHECK_SENTENCES
from rnnbench.pipeline import record_of
from rnnbench.reports import multiple
from rnnbench.results import NO_ANSWER, CheckResult, Record
from rnnbench.spelling import count
from rnnbench.stages import Sampled

if TYPE_CHECKING:
    from rnnbench.pytest_plugin.item import TrialItem


def conclude(item: TrialItem, sampled: Sampled, log: Path) -> None:
    """Note the record as the item's properties, and fail where the trial did. An expected failure must fail."""
    record = record_of(sampled, expected_failures=item.expected_failures)
    item.user_properties += properties(record)
    message: list[str] = []
    # With --runxfail pytest's xfail() returns, and the trial counts as any other.
    if record.passes_unexpectedly and not item.config.getoption("runxfail"):
        message = _unexpected_pass(item, record)
    elif record.fails_as_expected:
        pytest.xfail(
            "; ".join(dict.fromkeys(f"{figure.reason} {figure.upstream}" for figure in record.expected_failures))
        )
    if record.outcome != "ok" and not (record.fails_as_expected and message):
        message += _failure(item, record, log)
    if message:
        pytest.fail("\n".join(message), pytrace=False)


def properties(record: Record) -> list[tuple[str, object]]:
    """What a JUnit file keeps of a record, as texts by name."""
    params = {key: value for key, value in record.params.model_dump().items() if key != "model"}
    texts = {
        "trial": record.trial,
        "outcome": record.outcome,
        "stage": record.stage,
        "backend": record.backend,
        "route": record.route,
        **record.params.model,
        **params,
        "support": record.support.level,
        "support.reason": record.support.reason,
        "lowered": record.artifact.lowered if record.artifact else "",
        "origin": record.artifact.origin if record.artifact else "",
        "rnnbench": record.rnnbench,
    }
    texts["not_believed"] = record.not_believed
    texts |= {f"version.{name}": version for name, version in record.version.items()}
    for name, figure in record.conformance.items():
        texts[f"check.{name}"] = figure.verdict
        if figure.rounding is not None:
            texts[f"check.{name}.rounding"] = f"{figure.rounding:.3g}"
    for expectation in record.expected_failures:
        texts[f"expected.{expectation.what}"] = f"{expectation.verdict}: {expectation.reason} {expectation.upstream}"
    return [(name, str(value)) for name, value in texts.items() if value not in ("", None)]


def _failure(item: TrialItem, record: Record, log: Path) -> list[str]:
    ended = f"{record.outcome}, at {record.stage}: {record.reason}"
    lines = _failed_checks(record) if record.outcome == "nonconforming" else [ended]
    lines += ["", "program    " + _program(record)]
    if record.outcome != "nonconforming" and log.exists() and log.stat().st_size:
        lines.append(f"log        {log}")
    return [*lines, f"reproduce  {reproduce(item, record)}"]


def _unexpected_pass(item: TrialItem, record: Record) -> list[str]:
    """An expected failure that passed, under the name that pytest has for that."""
    entries = expected_failures_of(item.trial, record.version, item.expected_failures)
    lines = ["[XPASS(strict)] fixed upstream? An expected failure passed:", ""]
    for figure in record.expected_failures:
        if figure.verdict == "passed":
            places = [entry.place for entry in entries if figure.what in (*entry.check, entry.outcome)]
            lines.append(f"{figure.what}  {figure.reason} {figure.upstream} ({', '.join(places)})")
    return [*lines, "", "Remove the entry from expectations.yaml, or end its range of versions.", ""]


def _failed_checks(record: Record) -> list[str]:
    failed = {name: record.conformance[name] for name in record.failed_checks}
    ran = [figure for figure in record.conformance.values() if figure.verdict not in NO_ANSWER]
    width = max(map(len, failed), default=0)
    head = f"nonconforming: {len(failed)} of {count(len(ran), 'check')} failed: {', '.join(failed)}"
    asked = [f"{name:<{width}}  {CHECK_SENTENCES[name]}" for name in failed if name in CHECK_SENTENCES]
    found = [f"{name:<{width}}  {_figures(figure)}" for name, figure in failed.items()]
    return [head, "", *found, "", "Of a program that passes, this is true:", *asked]


def _figures(figure: CheckResult) -> str:
    if figure.rounding is None:
        return figure.detail
    return f"{figure.detail} ({multiple(figure.rounding)} × expected rounding)"


def _program(record: Record) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in record.version.items())
    params = record.params
    graph = f", {params.launch}" if params.launch != "stream" else ""
    strategy = f"{params.time}, {params.state}{graph}, {count(params.chunk, 'step')} a call"
    became = f"; lowered form: {record.artifact.lowered}" if record.artifact else ""
    emulated = f"; emulated: {record.support.reason}" if record.support.level == "emulated" else ""
    return f"{record.target} ({versions}), strategy: {strategy}{became}{emulated}"


def reproduce(item: TrialItem, record: Record) -> str:
    """The command that checks this trial alone, and looks for the smallest that fails alike; or that times it, too."""
    command = ["run", "--no-baseline"] if record.stage == "sample" else ["check"]
    words = ["rnnbench", *command, item.case_path, f"--backend={item.trial.target}"]
    for setting in item.config.getoption("rnnbench_set"):
        words += ["--set", setting]
    endurance = item.config.getoption("rnnbench_endurance")
    if command == ["check"] and endurance is not None:
        words.append(f"--endurance={endurance:g}")
    return shlex.join([*words, "--only", item.trial.digest])
