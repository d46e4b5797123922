"""What an empty CUDA session takes of a GPU's memory: a process that makes a context and waits until its input ends."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

from rnnbench.devices.cuda_driver import CudaDriver
from rnnbench.devices.device import UnmeasuredError
from rnnbench.devices.nvml import VARIABLES, process_bytes

READY = b"ready\n"


def program_bytes(pid: int) -> int:
    """Bytes of a process on the GPU, less those of an empty session. Raises UnmeasuredError."""
    return max(0, process_bytes(pid) - empty_session_bytes())


@cache
def empty_session_bytes() -> int:
    """Bytes on the GPU of a process that has a context and nothing else. Raises UnmeasuredError."""
    command = [sys.executable, "-m", "rnnbench.devices.cuda_session"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env={**os.environ, **VARIABLES}) as session:
        assert session.stdin is not None, "it is a pipe"
        assert session.stdout is not None, "it is a pipe"
        answer = session.stdout.readline()
        try:
            if answer != READY:
                raise UnmeasuredError(answer.decode(errors="replace").strip() or "An empty CUDA session ended at once.")
            return process_bytes(session.pid)
        finally:
            session.stdin.close()


def main() -> None:
    """Make a context, print READY, and wait for the end of the input."""
    try:
        CudaDriver()
    except UnmeasuredError as error:
        print(error)
        return
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
