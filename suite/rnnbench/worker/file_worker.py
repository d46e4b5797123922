"""The worker that reads a model file: hostile bytes may crash or fill a parser, and then end this process alone."""

from __future__ import annotations

import resource
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rnnbench.model_files import FileDescription, ModelFileError, describe
from rnnbench.optional import MissingExtraError
from rnnbench.worker.channel import ChannelClosedError
from rnnbench.worker.kernel import die_with_parent
from rnnbench.worker.protocol import Command, Failed
from rnnbench.worker.server import open_channel, serve


@dataclass(frozen=True)
class DescribeFile(Command[FileDescription]):
    """Describe the file at `path`, with at most `memory` bytes of data. The first command."""

    path: Path
    memory: int


def _describe(command: DescribeFile) -> FileDescription | Failed:
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    memory = command.memory if most == resource.RLIM_INFINITY else min(command.memory, most)
    resource.setrlimit(resource.RLIMIT_DATA, (memory, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        return describe(command.path)
    except ModelFileError as error:
        return Failed("unsupported", str(error))
    except MissingExtraError as error:
        return Failed("unavailable", str(error))


def main() -> None:
    """Carry out the commands of the channel until its other end closes."""
    die_with_parent()
    with suppress(ChannelClosedError):
        serve(open_channel(), {DescribeFile: _describe})


if __name__ == "__main__":
    main()
