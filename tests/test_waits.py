"""No test waits for ever: what waits for a process or a thread says for how long."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ENDS = {"run", "call", "check_call", "check_output"}
"""Functions of `subprocess` that return when the process has ended."""
WAITS = {"wait", "join", "communicate", "result"}
"""Methods of processes, threads and futures that wait for as long as it takes where they are given nothing."""
MAY_WAIT = re.compile(r"subprocess\.|communicate|\.(?:wait|join|result)\(\s*\)")
ALLOWED = {
    ("fake/ways_of_dying.py", "subprocess.run"),  # hangs, as it is to
    ("fake/ways_of_dying.py", "thread.join"),  # within a worker, which has a limit
    ("fake/moved_work.py", "self.device.queue.join"),  # what is queued ends by itself
    ("pipeline/test_batches.py", "both.wait"),  # a barrier that was made with a limit
}


def waits_for_ever(code: str) -> Iterator[str]:
    """What is called, of each call that has no limit."""
    if not MAY_WAIT.search(code):  # To parse a file takes a thousand times as long.
        return
    calls = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr in ENDS | WAITS:
            called, named = ast.unparse(call.func), {keyword.arg for keyword in call.keywords}
            ends = called in {f"subprocess.{name}" for name in ENDS} and not named & {"timeout", None}
            talks = call.func.attr == "communicate" and len(call.args) < 2 and not named & {"timeout", None}
            if ends or talks or (call.func.attr in WAITS and not call.args and not named):
                yield called


@pytest.mark.parametrize(
    ("code", "called"),
    [
        ("subprocess.run(command, check=True)", ["subprocess.run"]),
        ("subprocess.run(command, timeout=300)", []),
        ("process.communicate()", ["process.communicate"]),
        ("process.communicate(b'text')", ["process.communicate"]),
        ("process.communicate(b'text', 300), process.communicate(timeout=300)", []),
        ("one.join(3), ', '.join(names), both.wait(timeout=1)", []),
    ],
)
def test_a_call_without_a_limit_is_seen(code: str, called: list[str]) -> None:
    assert list(waits_for_ever(code)) == called


def test_every_wait_has_a_limit() -> None:
    found = {
        (str(path.relative_to(TESTS)), called)
        for path in TESTS.rglob("*.py")
        for called in waits_for_ever(path.read_text())
    }
    assert found - ALLOWED == set()
    assert found >= ALLOWED, "what is allowed is there"


def test_no_planted_fault_waits_for_another_thread() -> None:
    """A check calls it hundreds of times, and the other thread may have gone: one whole limit for each of the calls."""
    named = {path.name for path in TESTS.glob("fake/faulty_*.py") if "Barrier(" in path.read_text()}
    assert named == set()
