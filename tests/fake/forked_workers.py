"""Workers that are forked from the tests' own process, which has imported what they run.

A fresh interpreter takes half a second of the processor to import the suite, and a run of one trial starts three. What
only a fresh one shows (its memory, its imports, its environment as the kernel keeps it) is for tests with real workers.
"""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import IO, NoReturn

import pytest

from rnnbench.explain import worker as explain_worker
from rnnbench.sampling import roof_worker
from rnnbench.worker import launcher, trial_worker
from rnnbench.worker.adapter_process import _Forked
from rnnbench.worker.adapter_worker import _leave_the_suite

MAINS: dict[str, Callable[[], None]] = {
    "rnnbench.worker": trial_worker.main,
    "rnnbench.sampling.roof_worker": roof_worker.main,
    "rnnbench.explain.worker": explain_worker.main,
}
"""What a process of each module runs. Processes of other modules are started."""


def fork_workers(patch: pytest.MonkeyPatch) -> None:
    """From now on the launcher forks the workers that would have the interpreter of this process."""
    patch.setattr(launcher, "subprocess", SimpleNamespace(Popen=_started, DEVNULL=subprocess.DEVNULL))


def _started(command: Sequence[str], **how: object) -> object:
    interpreter, _, module, channel = command
    if interpreter != sys.executable or module not in MAINS:
        return subprocess.Popen(command, **how)
    return _forked(module, int(channel), **how)


def _forked(module: str, channel: int, *, stdout: IO[bytes], env: Mapping[str, str], **_: object) -> _Forked:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _become_worker(module, channel, stdout.fileno(), env)
    return _Forked(pid)


def _become_worker(module: str, channel: int, log: int, variables: Mapping[str, str]) -> NoReturn:
    """The stack above is the tests'."""
    try:
        faulthandler.disable()
        _leave_the_suite({channel, log})
        for descriptor in (1, 2):
            os.dup2(log, descriptor)
        os.close(log)
        os.environ.clear()
        os.environ.update(variables)
        warnings.resetwarnings()
        sys.argv = [module, str(channel)]
        if fake := sys.modules.get("rnnbench_fake"):
            fake._opened_in = 0  # A test of this process may have opened a program. A started worker has not.
        MAINS[module]()
        os._exit(0)
    finally:
        os._exit(1)
