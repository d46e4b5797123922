"""The suite's side of the process that reads a model file. See `file_worker`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

from rnnbench.model_files import FileDescription, FileSection, ModelFileError, StateCheck
from rnnbench.optional import MissingExtraError
from rnnbench.worker.file_worker import CheckFile, DescribeFile
from rnnbench.worker.launcher import Host, WorkerError, WorkerProcess
from rnnbench.worker.protocol import Command, Reply
from rnnbench.worker.supervisor import own_folder

READ_LIMIT_S = 60.0
"""Longest that reading a file, or the calls of its check, may take. Reading 1,000,000 fields takes about 10 s."""
MEMORY = 1 << 30
"""Bytes that the process may have, beside COPIES of the file."""
COPIES = 4
"""How many times the file's size reading needs: its bytes, protobuf's objects, and the copies of ONNX's checker."""
COPIES_TO_RUN = 12
"""How many times the weights' size a call needs: as they are, and several times in float64."""
TOO_SLOW: Mapping[str, str] = {
    "reading": f"reading it takes more than {READ_LIMIT_S:.0f} s, so it is not read; it may be damaged, else export a "
    "smaller network",
    "calling": (
        f"its calls in float64 take more than {READ_LIMIT_S:.0f} s, so it is not known whether its states are states. "
        "Its oracle computes node by node, and loops of many passes take long: export fewer passes or steps a call"
    ),
}
"""The message after a limit of time ended the process, by what the process was doing."""
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Each thread of a library reserves memory."""


def describe_file(path: Path) -> FileDescription:
    """Describe the content of a model file. It is read in a process with limits of memory and time.

    Raises ModelFileError, and MissingExtraError if the package that reads it is not installed.
    """
    size = 0
    with suppress(OSError, ValueError):
        size = path.stat().st_size
    memory = MEMORY + COPIES * min(size, MEMORY)
    return _reply_of_process(path, "reading", DescribeFile(path, memory), memory)


def check_file(path: Path, description: FileDescription, section: FileSection) -> StateCheck:
    """Check that the declared states of a file behave as states, with calls in float64 in a limited process.

    Raises ModelFileError, also if the file cannot be computed in float64 or called as `section` says.
    """
    memory = MEMORY + COPIES_TO_RUN * description.weight_bytes
    return _reply_of_process(path, "calling", CheckFile(path, description, section, memory), memory)


def _reply_of_process(path: Path, doing: str, command: Command[Reply], memory: int) -> Reply:
    with own_folder() as folder:
        host = Host(folder / "file.log", _ONE_THREAD)
        with closing(WorkerProcess("rnnbench.worker.file_worker", command, host)) as worker:
            try:
                return worker.ready(READ_LIMIT_S, memory)
            except WorkerError as error:
                raise _error_of(path, doing, error) from error


def _error_of(path: Path, doing: str, error: WorkerError) -> ModelFileError | MissingExtraError:
    if error.outcome == "unsupported":
        return ModelFileError(error.reason)
    if error.outcome == "unavailable":
        return MissingExtraError(error.reason)
    if error.outcome == "timed-out":
        return ModelFileError(f"{path}: {TOO_SLOW[doing]}")
    return ModelFileError(f"{path}: {doing} it failed ({error.outcome}): {error.reason}")
