"""The changes that a command leaves in the process of a trial's worker: found by a comparison before and after it.

Settings are put back, so that each command starts with the same ones. Descriptors, threads, children and shared memory
cannot be put back. If a trial leaves more of them than `MOST_LEFT`, its process is used for no other trial.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from rnnbench.measure import SharedSegments, read_holdings
from rnnbench.outside_text import describe_error
from rnnbench.results import CheckResult, Finding, FindingKind
from rnnbench.temporary import keep_folder
from rnnbench.worker.finding_log import FindingLog
from rnnbench.worker.process_settings import (
    REPLACED_FUNCTIONS,
    RESULT_SETTINGS,
    SCHEDULING,
    Values,
    changed_beyond_imports,
    changed_settings,
    read_settings,
    restore_settings,
)
from rnnbench.worker.protocol import Failed
from rnnbench.worker.server import attempt, flush_output

Reply = TypeVar("Reply")

SHARED, PRINTED = "bytes of shared memory", "bytes printed"
MOST_LEFT: Mapping[str, int] = {
    "descriptors": 32,
    "threads": 32 + 4 * (os.cpu_count() or 1),
    "children": 8,
    SHARED: 64 << 10,
    PRINTED: 64 << 10,
}
"""The most of each that a command may leave in addition to what was there. Commands in `STARTS` have no limit.

- Descriptors: OpenVINO keeps one per program, and no backend kept more than two. A leak of the checks is larger.
- Threads: the pools of JAX have 15 on two cores.
- Children: no backend's calls leave any. The limit leaves room for a backend that starts helpers once.
- Bytes printed: the suite keeps as much of a worker's log.
"""
_OURS = frozenset({*sys.stdlib_module_names, "rnnbench", "numpy", "psutil", "pydantic"})
_NEEDED = ("numpy", "psutil", "rnnbench")
"""Packages that every worker needs in `sys.modules`: they import parts of themselves later, by name."""


class WatchedWork(StrEnum):
    """The work of a trial's worker, as findings name it."""

    IMPORT = "the import of the framework"
    LOAD = "the load and the first calls"
    CHECK = "the checks"
    PREPARE = "the preparation of sampling"
    SAMPLE = "the sampled calls"
    VERIFY = "the check after sampling"


STARTS = frozenset({WatchedWork.IMPORT, WatchedWork.LOAD, WatchedWork.PREPARE})
"""Work that may start thread pools and helper processes, open caches, print a runtime's messages, and change the
settings that imports may change."""
SHARED_PROCESS = frozenset({WatchedWork.PREPARE, WatchedWork.SAMPLE, WatchedWork.VERIFY})
"""Work in processes that hold other trials too."""
JUDGED = frozenset({WatchedWork.SAMPLE, WatchedWork.VERIFY})
"""Work whose replies are figures or verdicts. The checks are examined one by one (`explained`)."""


@dataclass(frozen=True)
class ProcessState:
    """A process at one moment."""

    settings: Values
    held: Mapping[str, int]
    """How much the process holds and has printed, by the names of `MOST_LEFT`."""
    standard: tuple[str, ...]
    """The targets of its descriptors 0 to 2."""
    modules: int
    """The number of modules that it has imported."""


class ProcessWatch:
    """Compares the process before and after each command of its trials."""

    def __init__(self, findings: FindingLog) -> None:
        self.findings = findings
        self._segments = SharedSegments()
        self._left: Counter[tuple[str, str]] = Counter()
        """How much each trial's timed calls have left so far, by trial and name."""
        self._reported: set[tuple[str, str, str]] = set()
        self._sampled: ProcessState | None = None
        """The process after the last command, if that command sampled and changed no setting."""
        self._timed_on: object = None
        """The niceness, policy and cores of the last sampled calls."""

    def read(self) -> ProcessState:
        """The state of this process now. Reading it takes 1 ms, and 3 µs per descriptor and thread."""
        flush_output()
        held = {**read_holdings(), SHARED: self._segments.nbytes(), PRINTED: _printed()}
        return ProcessState(read_settings(), held, tuple(map(_target, range(3))), len(sys.modules))

    def around(self, stage: WatchedWork, trial: str, work: Callable[[], Reply]) -> Reply | Failed:
        """Run `work`. Returns its reply, or `Failed` if it raises or leaves a process that other trials cannot use."""
        before = self._before(stage)
        reply = attempt(work, "run-failed")
        try:
            after = self.read()
            gone = [name for name in _NEEDED if name not in sys.modules]
        except Exception as error:  # noqa: BLE001 without descriptors or modules, reading fails in any way
            what = describe_error(error)
            return Failed("run-failed", f"{stage} left a process that cannot be read: {what}", harmed=True)
        if gone:
            return Failed("run-failed", f"{stage} left a process without its modules {', '.join(gone)}", harmed=True)
        unlike = self._compare_settings(stage, trial, before, after)
        if stage is WatchedWork.SAMPLE:
            self._timed_on = before.settings[SCHEDULING]
            self._sampled = after if before.settings == after.settings else None
        if stage in JUDGED and (replaced := _replaced(before, after)):
            return Failed("run-failed", f"{stage} replaced {REPLACED_FUNCTIONS} ({replaced}): they measure and compare")
        left = self._compare_held(stage, trial, before, after)
        if stage not in SHARED_PROCESS or not (harm := ", ".join((*unlike, *left))):
            return reply
        if isinstance(reply, Failed):
            return replace(reply, harmed=True)
        return Failed("run-failed", f"{stage} left a process that no other trial can use: {harm}", harmed=True)

    def _before(self, stage: WatchedWork) -> ProcessState:
        """The process before a command.

        Between two commands of sampling the process is stopped, so its state after the first is used again. A change
        that happens in between is attributed to the second command.
        """
        sampled, self._sampled = self._sampled, None
        keep_folder()
        return sampled if sampled is not None and stage is WatchedWork.SAMPLE else self.read()

    def explained(self, trial: str, results: Iterable[tuple[str, CheckResult]]) -> Iterator[tuple[str, CheckResult]]:
        """Yield each result. A check that changed a setting of `RESULT_SETTINGS` is reported, also where it failed."""
        before = read_settings(RESULT_SETTINGS)
        modules = len(sys.modules)
        for name, result in results:
            compare = changed_beyond_imports if _imported_since(modules) else changed_settings
            modules = len(sys.modules)
            after = read_settings(RESULT_SETTINGS)
            changed = compare(before, after)
            restore_settings(before, changed)
            before = read_settings(RESULT_SETTINGS) if changed else after
            sentences = [f"left {setting} changed{_detail(what)}" for setting, what in changed.items()]
            for setting, sentence in zip(changed, sentences, strict=True):
                self._report(f"the check {name!r}", trial, setting, sentence)
            if REPLACED_FUNCTIONS in changed:
                result = CheckResult(verdict="fail", detail=f"{'; '.join(sentences)}: the check compares with these")
            elif sentences and result.verdict == "fail":
                result = result.model_copy(update={"detail": f"{'; '.join(sentences)}. {result.detail}"})
            yield name, result

    def _compare_settings(self, stage: WatchedWork, trial: str, before: ProcessState, after: ProcessState) -> list[str]:
        """Report changed settings and put them back. Returns the names of those that could not be put back."""
        compare = changed_beyond_imports if stage in STARTS or _imported_since(before.modules) else changed_settings
        changed = compare(before.settings, after.settings)
        for name, what in changed.items():
            if not (stage is WatchedWork.VERIFY and name == SCHEDULING and after.settings[name] == self._timed_on):
                self._report(stage, trial, name, f"left {name} changed{_detail(what)}")
        if before.standard != after.standard:
            self._report(stage, trial, "standard", "left standard input, output or error somewhere else")
        if not changed:
            return []
        restore_settings(before.settings, changed)
        return list(changed_settings(_only(before.settings, changed), read_settings(changed)))

    def _compare_held(self, stage: WatchedWork, trial: str, before: ProcessState, after: ProcessState) -> list[str]:
        """Report what exceeds `MOST_LEFT`. Returns what is too much for another trial."""
        if stage in STARTS:
            return []
        too_much = []
        for name, most in MOST_LEFT.items():
            left = after.held[name] - before.held[name]
            if stage is WatchedWork.SAMPLE:
                self._left[trial, name] += left
                left = self._left[trial, name]
            if left > most:
                self._report(stage, trial, name, f"left {left:,} {name} more than before")
                if name != PRINTED:
                    too_much.append(f"{left:,} more {name}")
        return too_much

    def _report(self, who: str, trial: str, name: str, sentence: str) -> None:
        """Add a finding, once per trial and process: every block of calls would give it again."""
        if (trial, who, name) not in self._reported:
            self._reported.add((trial, who, name))
            self.findings.add([Finding(kind=FindingKind.PROCESS, detail=f"{who} {sentence}")])


def _replaced(before: ProcessState, after: ProcessState) -> str:
    """The functions that were replaced in between; empty if none was."""
    changed = changed_settings(_only(before.settings, [REPLACED_FUNCTIONS]), after.settings)
    return changed.get(REPLACED_FUNCTIONS, "")


def _imported_since(modules: int) -> bool:
    """Whether a module that is neither Python's nor the suite's was imported after the first `modules` modules."""
    return any(name.partition(".")[0] not in _OURS for name in list(sys.modules)[modules:])


def _only(values: Values, names: Iterable[str]) -> Values:
    return {name: values[name] for name in names}


def _detail(what: str) -> str:
    return f": {what}" if what else ""


def _target(descriptor: int) -> str:
    with suppress(OSError):
        return os.readlink(f"/proc/self/fd/{descriptor}")
    return ""


def _printed() -> int:
    """Bytes of the worker's log; 0 if standard output is no file."""
    with suppress(OSError):
        status = os.fstat(1)
        return status.st_size if os.path.isfile("/proc/self/fd/1") else 0
    return 0
