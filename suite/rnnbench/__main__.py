"""`rnnbench` and `python -m rnnbench`. From its first line on, a signal ends the command with status 130."""

import os
import signal
import sys
from types import FrameType


def _end(number: int, frame: FrameType | None) -> None:
    """No command has begun, or it has ended: there is nothing to clean up. An import may catch an exception."""
    os.write(2, b"Interrupted.\n")
    os._exit(130)


def main() -> None:
    """The command's imports take longer than many a command. They come after the signals' handlers."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` ignores it.
            signal.signal(number, _end)
    try:
        from rnnbench.cli import main as run_command
    except ModuleNotFoundError as error:
        from rnnbench.optional import broken_installation

        if not (sentence := broken_installation(error)):
            raise
        print(f"rnnbench: {sentence}", file=sys.stderr)
        sys.exit(2)
    run_command()


if __name__ == "__main__":
    main()
