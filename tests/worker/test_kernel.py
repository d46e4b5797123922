"""A process is killed with all that it forks meanwhile."""

from __future__ import annotations

import subprocess

from waiting import PATIENCE_S

from rnnbench.worker.kernel import kill_until_gone


def test_what_is_forked_while_others_are_killed_is_killed_too() -> None:
    first, second = (subprocess.Popen(["sleep", "600"]) for _ in range(2))
    looks = iter([{first.pid}, {second.pid}, set[int]()])
    kill_until_gone(lambda: next(looks), PATIENCE_S)
    assert (first.wait(PATIENCE_S), second.wait(PATIENCE_S)) == (-9, -9)


def test_killing_what_does_not_end_ends_at_its_limit() -> None:
    nobody = 2**22 + 1  # No process has a number as large (proc_sys_kernel(5), pid_max).
    kill_until_gone(lambda: {nobody}, 0.01)
