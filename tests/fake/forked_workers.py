"""Workers that are forked from the tests' own process, which has imported what they run.

A fresh interpreter takes half a second of the processor to import the suite, and a run of one trial starts three. What
only a fresh one shows (its memory, its imports, its environment as the kernel keeps it) is for tests with real workers.

An environment that differs from this one by variables alone (`write_python`) is forked too. Its Python is a script that
runs: tests that do not fork workers start it.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from shlex import quote
from types import SimpleNamespace
from typing import NoReturn

import pytest

from rnnbench.backends import answers, registry
from rnnbench.backends.base import Artifact, Probe, ProgramFiles, Support
from rnnbench.explain import worker as explain_worker
from rnnbench.measure import blocks, roof
from rnnbench.optional import MissingExtraError
from rnnbench.pipeline import environment_worker
from rnnbench.plan import adapters
from rnnbench.sampling import dispatch_floor, roof_worker
from rnnbench.worker import launcher, prepared_program, trial_worker
from rnnbench.worker.adapter_process import ForkedChild
from rnnbench.worker.adapter_worker import leave_the_suite
from rnnbench.worker.protocol import Command, reply_type, type_adapter
from rnnbench.worker.replaced_functions import FUNCTIONS

_of_the_suite: list[object] = []
"""What a forked process never collects: it owns descriptors whose numbers are other files' by now."""


def _describe_environment() -> None:
    """The adapters' processes are those of the process that this one was forked from."""
    _of_the_suite.append(adapters._adapters)
    adapters._adapters = {}
    environment_worker.main()


MAINS: dict[str, Callable[[], None]] = {
    "rnnbench.worker": trial_worker.main,
    "rnnbench.sampling.roof_worker": roof_worker.main,
    "rnnbench.pipeline.environment_worker": _describe_environment,
    "rnnbench.explain.worker": explain_worker.main,
}
"""What a process of each module runs. Processes of other modules are started."""
ROOMY = 64 << 30
"""Bytes for a forked process that reads a model file: it has the tests' own memory, too."""
ROOF_PIECE_S = 1e-4
"""Of a timed piece of the roof's probe. Those of a run would take a quarter of a second of its process."""
REWARM_S, FLOOR_BLOCK_S, FLOOR_WARMUP_S, SETTLING_S = 5e-5, 1e-3, 4e-3, 2e-3
"""Of a window of the calls before each block, of a block of the smallest program, of its warm-up, and of the calls
before a look at whether results are remembered. Those of a run would take more of the processor than a trial's blocks.
"""

WATCHED = "rnnbench.measure"
"""The room of the suite in which a forked worker looks for replaced functions, beside Python's and NumPy's.

A started one looks in all that it has imported. Here that would be the whole suite, in pages of memory that are shared
with the tests' process until somebody looks: a quarter of what a worker takes of the processor.
"""

_variables: dict[str, Mapping[str, str]] = {sys.executable: {}}
"""What an interpreter adds to its environment, by its path. Other interpreters are started."""


def write_python(python: Path, variables: Mapping[str, str]) -> None:
    """Write a Python that is this one with further variables in its environment."""
    python.parent.mkdir(parents=True, exist_ok=True)
    added = " ".join(f"{name}={quote(text)}" for name, text in variables.items())
    python.write_text(f'#!/bin/sh\n{added} exec {quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    _variables[str(python)] = variables


def fork_workers(patch: pytest.MonkeyPatch) -> None:
    """From now on the launcher forks the workers that would have the interpreter of this process, or one written here.

    What each would make of the types of its messages is made here, once, and what most of them import is imported.
    """
    for module in ("llvmlite.binding", "numpy.random", "numpy.ma", "encodings.cp437", "rnnbench.rnn.stack_reference"):
        with suppress(ImportError):
            importlib.import_module(module)
    for backend in registry.names():
        with suppress(ImportError):
            registry.entry_of(backend).load()
    for answer in (Artifact, Probe, ProgramFiles, Support):
        answers.type_adapter(answer)
    for command in Command.__subclasses__():
        for message in (command, reply_type(command)):
            type_adapter(message)
    patch.setattr(roof, "PIECE_S", ROOF_PIECE_S)
    patch.setattr(blocks, "WARM_WINDOW_S", REWARM_S)
    patch.setattr(dispatch_floor, "BLOCK_S", FLOOR_BLOCK_S)
    patch.setattr(dispatch_floor, "WARMUP_S", FLOOR_WARMUP_S)
    patch.setattr(prepared_program, "SETTLING_S", SETTLING_S)
    with suppress(MissingExtraError):
        compiler = _compiler()
        patch.setattr(roof, "_Compiler", lambda: compiler)
    patch.setattr(launcher, "subprocess", SimpleNamespace(Popen=_started, DEVNULL=subprocess.DEVNULL))


@cache
def _compiler() -> roof._Compiler:
    """The one of all probes, which has compiled what those of float32 run."""
    compiler = roof._Compiler()
    compiler.function = cache(compiler.function)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(roof, "_Compiler", lambda: compiler)
        roof.RoofProbe((), "float32", 1).close()
    return compiler


def fork_file_readers(patch: pytest.MonkeyPatch) -> None:
    """From now on processes that read model files are forked, too. `worker/test_file_process.py` has started ones.

    Each would import all formats.
    """
    from rnnbench.worker import file_process, file_worker

    for module in ("onnx", "rnnbench.model_files.formats.registry"):
        importlib.import_module(module)
    patch.setitem(MAINS, "rnnbench.worker.file_worker", file_worker.main)
    patch.setattr(file_process, "MEMORY", ROOMY)


def _started(command: Sequence[str], **how: object) -> object:
    interpreter, _, module, channel = command
    if interpreter not in _variables or module not in MAINS:
        return subprocess.Popen(command, **how)
    how["env"] = {**how["env"], **_variables[interpreter]}
    return _forked(module, int(channel), **how)


def _forked(module: str, channel: int, *, stdout: int, env: Mapping[str, str], **_: object) -> ForkedChild:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _become_worker(module, channel, stdout, env)
    return ForkedChild(pid)


def _become_worker(module: str, channel: int, log: int, variables: Mapping[str, str]) -> NoReturn:
    """The stack above is the tests'."""
    try:
        faulthandler.disable()
        leave_the_suite({channel, log})
        for descriptor in (1, 2):
            os.dup2(log, descriptor)
        os.close(log)
        os.environ.clear()
        os.environ.update(variables)
        tempfile.tempdir = None  # Its folder is that of its variables.
        warnings.resetwarnings()
        sys.argv = [module, str(channel)]
        if fake := sys.modules.get("rnnbench_fake"):
            fake._opened_in = 0  # A test of this process may have opened a program. A started worker has not.
        FUNCTIONS._modules |= {name for name in sys.modules if not name.startswith(WATCHED)}
        MAINS[module]()
        os._exit(0)
    finally:
        os._exit(1)
