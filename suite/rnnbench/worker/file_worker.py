"""The worker that reads a model file. A hostile file that crashes its parser or fills memory ends only this process."""

from __future__ import annotations

import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rnnbench.model_files import (
    FileDescription,
    FileSection,
    ModelFileError,
    StateCheck,
    check_state,
    describe,
    oracle_of,
)
from rnnbench.optional import MissingExtraError
from rnnbench.worker.protocol import Command, Failed
from rnnbench.worker.server import run_worker

T = TypeVar("T")


@dataclass(frozen=True)
class DescribeFile(Command[FileDescription]):
    """Describe the file at `path`, with at most `memory` bytes of data."""

    path: Path
    memory: int


@dataclass(frozen=True)
class CheckFile(Command[StateCheck]):
    """Check the states of the file at `path`, called as `section` says, with at most `memory` bytes of data."""

    path: Path
    description: FileDescription
    section: FileSection
    memory: int


def _describe(command: DescribeFile) -> FileDescription | Failed:
    return _limited(command.memory, lambda: describe(command.path))


def _check(command: CheckFile) -> StateCheck | Failed:
    return _limited(command.memory, lambda: check_state(oracle_of(command.path), command.description, command.section))


def _limited(memory: int, work: Callable[[], T]) -> T | Failed:
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (memory if most == resource.RLIM_INFINITY else min(memory, most), most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        return work()
    except ModelFileError as error:
        return Failed("unsupported", str(error))
    except MissingExtraError as error:
        return Failed("unavailable", str(error))


def main() -> None:
    run_worker({DescribeFile: _describe, CheckFile: _check})


if __name__ == "__main__":
    main()
