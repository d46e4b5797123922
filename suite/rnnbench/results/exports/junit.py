"""JUnit XML: one test for each trial. It does not pass where `rnnbench run` exits with 1 or 3.

A trial that is unsupported or unavailable is skipped, a nonconforming one is a failure, and one that failed to build or
to run is an error. An expected failure is skipped, and one that passed is a failure, as in `pytest CASE`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TextIO
from xml.etree import ElementTree as Xml

from rnnbench.results.exports.export import Export
from rnnbench.results.exports.measured import ExportedTrial, exported_trials, started
from rnnbench.results.record import FAILURES, Record
from rnnbench.results.run import Run
from rnnbench.results.text import visible


def _write(run: Run, stream: TextIO) -> None:
    root = Xml.Element("testsuites", name=visible(run.info.run))
    trials = sorted(exported_trials(run), key=_case)
    for case, of_case in groupby(trials, _case):
        suite = Xml.SubElement(root, "testsuite", name=visible(case))
        time = started(run.info)
        if time is not None:
            suite.set("timestamp", f"{time:%Y-%m-%dT%H:%M:%S}")
        suite.extend(map(_test, of_case))
        _count(suite)
    _count(root)
    Xml.indent(root, " ")
    stream.write('<?xml version="1.0" encoding="utf-8"?>\n')
    stream.write(Xml.tostring(root, encoding="unicode") + "\n")


def _case(trial: ExportedTrial) -> str:
    return trial.entry.record.case


def _test(trial: ExportedTrial) -> Xml.Element:
    record = trial.entry.record
    test = Xml.Element("testcase", classname=visible(f"{record.case}.{record.backend}.{record.route}"), name=trial.name)
    properties = Xml.SubElement(test, "properties")
    for name, value in _properties(trial):
        Xml.SubElement(properties, "property", name=visible(name), value=visible(value))
    verdict = _verdict(record)
    if verdict is not None:
        tag, kind, message = verdict
        result = Xml.SubElement(test, tag, type=kind, message=visible(message))
        result.text = "\n".join(visible(line) for line in _details(record))
    return test


def _verdict(record: Record) -> tuple[str, str, str] | None:
    """The element that says so, its type and its message; None where the test passed."""
    if record.passes_unexpectedly:
        passed = [expected.what for expected in record.expected_failures if expected.verdict == "passed"]
        message = f"an expected failure passed: {', '.join(passed)}; remove its entry from expectations.yaml"
        ended = "" if record.outcome == "ok" else f"; and the trial is {record.outcome}: {record.reason}"
        return "failure", "unexpected-pass", message + ended
    if record.fails_as_expected:
        reasons = dict.fromkeys(f"{expected.reason} {expected.upstream}" for expected in record.expected_failures)
        return "skipped", "expected-failure", "; ".join(reasons)
    if record.outcome in ("unsupported", "unavailable"):
        return "skipped", record.outcome, record.reason or record.support.reason or record.outcome
    if record.outcome == "nonconforming":
        return "failure", record.outcome, record.reason or f"failed checks: {', '.join(record.failed_checks)}"
    if record.outcome in FAILURES:
        return "error", record.outcome, f"at {record.stage}: {record.reason}"
    return None


def _details(record: Record) -> Iterator[str]:
    for name in record.failed_checks:
        yield f"{name}: {record.conformance[name].detail}"
    if record.support.upstream:
        yield f"upstream: {record.support.upstream}"


def _properties(trial: ExportedTrial) -> Iterator[tuple[str, str]]:
    record = trial.entry.record
    yield "outcome", record.outcome
    if trial.entry.not_believed:
        yield "not_believed", trial.entry.not_believed
    if record.same_as:
        yield "same_as", record.same_as
    for figure in trial.figures:
        yield f"{figure.name}_{figure.unit}", repr(figure.value)
    for name, check in record.conformance.items():
        yield f"check.{name}", check.verdict
    for package, version in record.version.items():
        yield f"version.{package}", version


def _count(suite: Xml.Element) -> None:
    for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(list(suite.iter(tag)))))


EXPORT = Export("junit", ".xml", "JUnit XML: each trial is a test", _write)
