"""The commands that show an alert again, to be copied into a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rnnbench.devices import KINDS
from rnnbench.history import MEASURES, SILENCE, CheckEntry, Detection, RunEntry
from rnnbench.reports.escape import Markdown
from rnnbench.results import case_file_in, parse_versions, settings_in, sql_literal, visible, words_of

_SHOWN_FACTS = {"outcome": "outcome, reason", "measured": "outcome", "failed_checks": "outcome, failed_checks"}
"""Columns that show a fact, where it is not the column of its name."""


@dataclass(frozen=True)
class Commands:
    """Commands for a history. Its runs and checks know the files of the cases."""

    runs: Sequence[RunEntry]
    checks: Sequence[CheckEntry] = ()

    def block(self, detection: Detection) -> Markdown:
        """A block of code: compare the versions, find the first bad one, show the series."""
        lines = self.lines(detection)
        longest = max((len(ticks) for line in lines for ticks in re.findall("`+", line)), default=0)
        fence = "`" * max(3, longest + 1)
        return Markdown("\n".join([f"{fence}sh", *lines, fence]))

    def lines(self, detection: Detection) -> list[str]:
        """Each is a command."""
        return [visible(line) for line in self._lines(detection)]

    def _lines(self, detection: Detection) -> Iterator[str]:
        if detection.what == SILENCE or not detection.members:
            yield "rnnbench history list"
            return
        trial = detection.members[0]
        if detection.evidence == "checked":
            yield self._check(detection, trial)
            return
        case, _, rest = trial.partition("/")
        selected = (*self._case(case), "--backend", rest.partition("/")[0], "--only", trial)
        changed = [(package, *versions) for package, *versions in _packages(detection) if all(versions)]
        if changed:
            a, b = (" ".join(f"{package}=={versions[side]}" for package, *versions in changed) for side in (0, 1))
            yield _command("ab", *selected, "--a", a, "--b", b)
        else:
            yield _command("run" if detection.is_level else "check", *selected)
        if len(changed) == 1:
            ((_, good, bad),) = changed
            yield _command("bisect", *selected, "--good", good, "--bad", bad)
        yield _command("history", "sql", _query(detection, trial))

    def _check(self, detection: Detection, trial: str) -> str:
        """The check of one trial in an environment with the packages that failed."""
        cases = next((check.cases for check in reversed(self.checks) if check.run == detection.run), ())
        versions = parse_versions(detection.versions[1])
        changed = [package for package, _, new in _packages(detection) if new] or list(versions)
        requirements = " ".join(f"{package}=={versions[package]}" for package in changed)
        target = trial.partition("/")[2].partition("/")[0]
        named = cases or ("cases/conformance",)
        return _command("check", *named, *_on_device(trial), "--backend", target, "--only", trial, "--in", requirements)

    def _case(self, case: str) -> tuple[str, ...]:
        """The file of a case and the settings (`--set`), as the newest run that names it was started with."""
        for run in reversed(self.runs):
            words = words_of(run.command)
            if (file := case_file_in(words, case)) is not None:
                return (file, *settings_in(words))
        return (f"cases/{case}.yaml",)


def _on_device(trial: str) -> Iterator[str]:
    """The setting for the device of a trial, which its id has: a night checks its cases on its own devices."""
    named = re.search(r"-([a-z]+)-t\d+-[0-9a-f]{8}$", trial)
    if named and named[1] in KINDS and not KINDS[named[1]].everywhere:
        yield from ("--set", f"target.device={named[1]}")


def _command(*words: str) -> str:
    return " ".join(("rnnbench", *map(_quoted, words)))


def _quoted(word: str) -> str:
    """For a shell; between double quotes where the word has only single ones, as SQL has."""
    return f'"{word}"' if "'" in word and not set(word) & set('"$`\\!') else shlex.quote(word)


def _packages(detection: Detection) -> Iterator[tuple[str, str, str]]:
    """Packages that changed, with their versions before and after; empty where there is none."""
    before, after = map(parse_versions, detection.versions)
    for package in sorted({*before, *after}):
        if before.get(package) != after.get(package):
            yield package, before.get(package, ""), after.get(package, "")


def _query(detection: Detection, trial: str) -> str:
    value = (
        f"{MEASURES[detection.what].sql} AS value"
        if detection.is_level
        else _SHOWN_FACTS.get(detection.what, detection.what)
    )
    where = f"trial = {sql_literal(trial)} AND machine = {sql_literal(detection.machine)}"
    return f"SELECT started, versions, {value} FROM rows WHERE {where} ORDER BY started"
