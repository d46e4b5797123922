"""From pip's output to the reason why pip failed."""

from __future__ import annotations

import os
import re

from rnnbench.disk import DISK_ERRORS

_GIVEN_UP = re.compile(r"Retry\(total=0, .*after connection broken by")
"""pip's line about its last attempt to reach a package index. It then says that the index has no such package."""
NO_INDEX = (
    "the package index cannot be reached; see whether there is a network, and which index `pip config list` names"
)


def has_no_index(output: str) -> bool:
    """Whether pip failed because it reached no package index."""
    return _GIVEN_UP.search(output) is not None


def error_of_disk_in(output: str) -> str:
    """What pip, or the maker of an environment, says of a disk that is full or broken; empty where it says nothing.

    Both remove what they have written, so the disk may have room again by now.
    """
    return next((os.strerror(number) for number in sorted(DISK_ERRORS) if f"[Errno {number}]" in output), "")


def errors_of(output: str, most: int) -> str:
    """The last `most` errors of pip, and of a pip that it ran. The end of the output if there are none."""
    lines = [line.strip() for line in output.splitlines()]
    return " ".join([line for line in lines if line.startswith("ERROR")][-most:]) or output.strip()[-300:]
