"""Which job of `make test` runs a test of `tests/backends`.

A process has the tests of one job, or of several whose frameworks may be in one process: each start of a process and
each import of a framework takes seconds of the processor.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pytest

from rnnbench.backends import registry

FOLDER = Path(__file__).parents[1] / "backends"

FAKES = {"fake", "absent"}
"""What tests of the harness register, to fail in ways that no backend may."""
BACKENDS = [name for name in registry.names() if name not in FAKES]
JOBS = {*BACKENDS, *(f"iree-{part}" for part in ("vulkan", "torch", "tensorflow"))}
"""The Makefile names them."""
VARIABLE = "RNNBENCH_TEST_BACKEND"
"""The names of a process's jobs."""

OWNERS = {"shared": "onnxruntime"}
"""Whose tests those of a folder are, where it is not the backend's own."""
IN_OTHER_FOLDERS = {
    "numpy": ("shared/test_compound.py",),
    "iree-torch": ("torch/test_pt2_files.py", "torch/test_pt2_types.py"),
    "iree-tensorflow": ("tensorflow/test_file_types.py",),
    "tvm": ("torch/test_pt2_types.py",),
    "jax": ("shared/test_compound.py",),
    "tensorflow": ("shared/test_compound.py",),
}
"""Files with tests of a job that lie in another backend's folder."""


def job_of(test: str) -> str:
    """By the target in a test's parameters, or else by its folder; what has neither is the suite's own.

    Two of IREE's importers are apart: torch-mlir aborts in a process that has another copy of MLIR, and one that has
    JAX and TensorFlow beside IREE crashes when it ends. So is Vulkan: two of IREE's threads wait in Mesa's software
    driver from the first device to the end of the process, and that driver waits by asking over and over.
    """
    if "test_vulkan" in test or "iree:linalg-direct" in test:
        return "iree-vulkan"
    if "iree" in test and "torch" in test:
        return "iree-torch"
    if "iree:tensorflow" in test or ("iree/test_imported" in test and "tensorflow" in test):
        return "iree-tensorflow"
    target = re.search(rf"\[({'|'.join(BACKENDS)}):", test)
    named = target or re.search(r"backends/(\w+)/", test)
    return OWNERS.get(named[1], named[1]) if named else "numpy"


def collects(job: str, file: PurePosixPath) -> bool:
    """Whether a job looks into a file of `tests/backends`, or into a folder: that imports the folder's framework."""
    if len(file.parts) == 1 and file.suffix:
        return True
    folder, others = file.parts[0], [PurePosixPath(other) for other in IN_OTHER_FOLDERS.get(job, ())]
    of_others = file in others or file in [other.parent for other in others]
    return OWNERS.get(folder, folder) == job.partition("-")[0] or of_others


def is_run(test: str) -> bool:
    """Whether a job of `make test` runs this test."""
    file = PurePosixPath(test.partition("::")[0].partition("backends/")[2])
    return job_of(test) in JOBS and collects(job_of(test), file)


def jobs_here() -> tuple[str, ...]:
    """The jobs of this process, as `litert,tensorflow` in its environment; none where it has the tests of all."""
    return tuple(filter(None, os.environ.get(VARIABLE, "").split(",")))


def items_of(jobs: Sequence[str], items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Those that one of the jobs runs, with the tests outside of `tests/backends`, which are of no job.

    Raises UsageError where no job at all runs a test of `tests/backends`.
    """
    ours = [item for item in items if FOLDER in item.path.parents]
    if lost := [item.nodeid for item in ours if not is_run(item.nodeid)]:
        raise pytest.UsageError(f"no job runs {lost[0]} and {len(lost) - 1} others: see IN_OTHER_FOLDERS")
    left_out = {item.nodeid for item in ours if job_of(item.nodeid) not in jobs}
    return [item for item in items if item.nodeid not in left_out]
