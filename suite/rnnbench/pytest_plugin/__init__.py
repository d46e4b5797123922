"""The pytest plugin: with `pytest cases/ --rnnbench-backend=iree,tvm` each trial of the cases is a test.

pytest imports this file wherever rnnbench is installed, whatever is tested there. So it imports nothing of the suite,
and every hook does nothing until a case is asked for; what they lead to is in the other files of this folder.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rnnbench.pytest_plugin.collect import CaseCollector

MARKER = "rnnbench"
_MARKER_HELP = (
    f"{MARKER}(backend, route, time, state, chunk, …): a trial of an rnnbench case. "
    f"Select with -m \"{MARKER}(backend='iree', chunk=16)\"."
)
FOLDER = pytest.StashKey[Path]()
"""Where the workers of this session keep what they share, once one has run."""
_FOLDER_OF_NODE = "rnnbench_folder"
SUFFIXES = (".yaml", ".yml")
MAX_SECONDS = 3600
NAMED = 10
"""Trials of one kind that the summary names."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup(MARKER, "rnnbench: trials of cases as tests")
    group.addoption(
        "--rnnbench-backend",
        action="append",
        default=[],
        metavar="NAME[:ROUTE],…",
        help="Collect case files, with one test for each trial on these backends: name (its default route), "
        "name:route, or name:* (all routes).",
    )
    group.addoption(
        "--rnnbench-set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="Replace a value of the cases, for example model.hidden=256.",
    )
    group.addoption(
        "--rnnbench-endurance",
        type=_seconds,
        metavar="SECONDS",
        help="Seconds for each long check (drift, memory), as in `rnnbench check`; 0 leaves them out. "
        "Default: as in the cases.",
    )
    parser.addini("rnnbench_backend", "Backends to use if --rnnbench-backend is not given.", "args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER_HELP)
    if config.getoption("rnnbench_backend") and not is_xdist_worker(config):
        from rnnbench.pytest_plugin.collect import check_backends

        check_backends(config)


def pytest_report_header(config: pytest.Config) -> list[str]:
    if not requested_backends(config):
        return []
    from rnnbench.pytest_plugin.collect import header

    return header(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CaseCollector | None:
    """A case file is collected where backends are asked for, or where it is itself named on the command line."""
    if file_path.suffix not in SUFFIXES:
        return None
    if not (requested_backends(parent.config) or parent.session.isinitpath(file_path)):
        return None
    from rnnbench.pytest_plugin.collect import CaseCollector, looks_like_case

    return CaseCollector.from_parent(parent, path=file_path) if looks_like_case(file_path) else None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """A process of pytest-xdist has ended; its siblings may still use the folder that they share."""
    output = getattr(node, "workeroutput", {})
    if _FOLDER_OF_NODE in output:
        node.config.stash[FOLDER] = Path(output[_FOLDER_OF_NODE])  # type: ignore[attr-defined]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which trials passed though the time of some checks was over too soon to mean anything."""
    late = [
        report.nodeid
        for report in terminalreporter.getreports("passed")
        if any(name.startswith("check.") and value == "too-short" for name, value in report.user_properties)
    ]
    if late:
        terminalreporter.section("rnnbench: not fully checked")
        terminalreporter.write_line(
            "These passed, but some of their checks had too little time to mean anything (their property is "
            "too-short). Give more by limits.trial in the case, or by --rnnbench-endurance."
        )
        for nodeid in late[:NAMED]:
            terminalreporter.write_line(f"  {nodeid}")
        if len(late) > NAMED:
            terminalreporter.write_line(f"  … and {len(late) - NAMED} more")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What compilers left behind goes with the session; the logs stay as long as pytest keeps its temporary folders."""
    folder = session.config.stash.get(FOLDER, None)
    if folder is None:
        return
    if is_xdist_worker(session.config):
        session.config.workeroutput[_FOLDER_OF_NODE] = str(folder)  # type: ignore[attr-defined]
        return
    from rnnbench.worker import RunFolders

    RunFolders.of_run(folder).clear()


def _seconds(text: str) -> float:
    """Raises argparse's error, which pytest tells with the option's name."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MAX_SECONDS:
        raise ArgumentTypeError(f"expected 0 to {MAX_SECONDS} seconds, got '{text}'")
    return seconds


def is_xdist_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def requested_backends(config: pytest.Config) -> list[str]:
    """The value of --rnnbench-backend, or else of the configuration file."""
    requested: list[str] = config.getoption("rnnbench_backend") or config.getini("rnnbench_backend")
    return requested
