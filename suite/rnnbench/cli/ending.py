"""How every command ends: one sentence for a mistake, a full disk or a signal, and its exit status."""

from __future__ import annotations

import atexit
import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from rnnbench.cli.exit_status import INTERRUPTED, MISTAKE
from rnnbench.cli.output import make_streams_usable, tell
from rnnbench.disk import PATH_ERRORS, is_disk_error

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C; what CI and `timeout` end a job with; and the end of a terminal, unless it is ignored (`nohup`)."""
LIMIT_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})
"""Errors of a limit of files, processes or memory. No trial is at fault."""


AGAIN_S = 0.05
"""Seconds until an interrupt is raised again that was dropped: in a destructor, or a callback of compiled code."""
_MEND = {
    errno.EROFS: "make its disk writable",
    errno.EFBIG: "raise the limit of a file's size (`ulimit -f`)",
    errno.EIO: "see whether its disk is broken",
}
"""What to do about an error of a disk that is not full."""
_OTHER_PLACE = "see what lies there and who may use it, or name another place"


class _Shown(StringIO):
    """What click shows of a mistake, with all that a value has: for other than terminals it drops their commands."""

    def isatty(self) -> bool:
        return True


class Ending:
    """What a command leaves behind, said where it ends early."""

    def __init__(self) -> None:
        self._remains: Callable[[], str] | None = None

    def leaves(self, remains: Callable[[], str]) -> None:
        """From here on, `remains` says what is on the disk and how to go on."""
        self._remains = remains

    def sentence(self) -> str:
        """What remains; empty if nothing does."""
        if self._remains is None:
            return ""
        try:
            return f" {self._remains()}"
        except Exception:  # noqa: BLE001 what cannot be counted must not hide why the command ended
            return ""


def leaves(remains: Callable[[], str]) -> None:
    """Tell the running command's ending what remains of it."""
    click.get_current_context().ensure_object(Ending).leaves(remains)


def run_leaves(folder: Path, how_to_go_on: str = "") -> None:
    """Tell the ending that the command writes the run in this folder."""

    def remains() -> str:
        from rnnbench.results import read_run
        from rnnbench.spelling import count

        return f"{folder} has {count(len(read_run(folder).records), 'finished trial')}{how_to_go_on}"

    leaves(remains)


def end_well(command: Callable[[Ending], object]) -> None:
    """Run a command to its end, whatever that is. Exits the process where the end is not a plain return."""
    make_streams_usable()
    ending = Ending()
    try:
        with _signals_interrupt() as interrupts:
            status = _told(command, ending, interrupts)
    except KeyboardInterrupt:  # It came while another end was told.
        _end_interrupted(ending)
    sys.exit(status if isinstance(status, int) else 0)


def _told(command: Callable[[Ending], object], ending: Ending, interrupts: Sequence[int]) -> object:
    """What the command returns. Any other end is told, and raises SystemExit."""
    try:
        return _uninterrupted(command, ending, interrupts)
    except (KeyboardInterrupt, click.Abort):  # click has ended the line that ^C is on
        _end_interrupted(ending)
    except click.ClickException as error:
        error.show(shown := _Shown())
        _say(shown.getvalue().rstrip("\n"))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        _drop_output()
        sys.exit(1)
    except Exception as error:
        sentence = _mistake(error)
        if sentence is None:
            raise
        _say(f"rnnbench: {sentence.rstrip('.')}{ending.sentence() and '.' + ending.sentence()}")
        sys.exit(MISTAKE)


def _end_interrupted(ending: Ending) -> NoReturn:
    _say(f"Interrupted.{ending.sentence()}")
    _forget_interrupt()
    sys.exit(INTERRUPTED)


def _uninterrupted(command: Callable[[Ending], object], ending: Ending, interrupts: Sequence[int]) -> object:
    """What the command returns. A library may turn an interrupt into an error of its own, as Pydantic's core does."""
    try:
        return command(ending)
    except Exception as error:
        if interrupts:
            raise KeyboardInterrupt from error
        raise


def _mistake(error: Exception) -> str | None:
    """The sentence of an error that the user can mend; None for a bug."""
    from rnnbench.backends import BackendError
    from rnnbench.fleet import FleetError
    from rnnbench.model_files import ModelFileError
    from rnnbench.optional import MissingExtraError
    from rnnbench.pipeline import CacheError, ReproductionError, SideError
    from rnnbench.reports import ReportError
    from rnnbench.results import StoreError
    from rnnbench.yaml_files import FileError

    if isinstance(
        error,
        BackendError
        | CacheError
        | FileError
        | FleetError
        | MissingExtraError
        | ModelFileError
        | ReportError
        | ReproductionError
        | SideError
        | StoreError,
    ):
        return str(error)
    if isinstance(error, OSError) and is_disk_error(error):
        what = error.filename or "the output"
        mend = _MEND.get(error.errno or 0, "make room on its disk")
        return f"cannot write {what}: {error.strerror}; {mend}, or choose another one"
    if isinstance(error, OSError) and error.errno in PATH_ERRORS and error.filename:
        return f"cannot use {error.filename}: {error.strerror}; {_OTHER_PLACE}"
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):  # Of `Path.resolve`, until 3.12.
        return f"{error}; {_OTHER_PLACE}"
    if isinstance(error, FileNotFoundError) and not _has_folder():
        return "the folder in which this command runs was removed; change to another one"
    if isinstance(error, OSError) and error.errno in LIMIT_ERRORS:
        what_to_do = (
            "raise it (`ulimit -n` is that of open files, `ulimit -u` that of processes), or end other programs"
        )
        return f"a limit of this machine or of its user is reached: {error.strerror}; {what_to_do}"
    return None


def _has_folder() -> bool:
    """Whether the folder in which the command runs is there."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


@contextmanager
def _signals_interrupt() -> Iterator[Sequence[int]]:
    """The first signal raises KeyboardInterrupt. Another one ends the process at once, and so its workers.

    Gives the signals that came.
    """
    interrupts: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        for each in before:
            signal.signal(each, _end_at_once)
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in _signals()}
    for number in before:
        signal.signal(number, interrupt)
    try:
        with _dropped_interrupts_come_again():
            yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _dropped_interrupts_come_again() -> Iterator[None]:
    """Python only prints an exception that its caller cannot pass on ("Exception ignored in"). An interrupt is raised
    anew a moment later, by a timer: the command would go on, and a second signal would end it without a word.
    """

    def ignored(dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_type is KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
        else:
            hook(dropped)

    def interrupt_again(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    hook, sys.unraisablehook = sys.unraisablehook, ignored
    handler = signal.signal(signal.SIGALRM, interrupt_again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        sys.unraisablehook = hook


def _forget_interrupt() -> None:
    """Let `python -m rnnbench` exit with a status.

    CPython notes an interrupt within `exec` of a text, as dataclasses run it, and ends itself by SIGINT though somebody
    caught it (`unhandled_keyboard_interrupt`). Another text makes it forget.
    """
    exec("")


def _signals() -> list[signal.Signals]:
    """Those of SIGNALS that end the command."""
    return [n for n in SIGNALS if n != signal.SIGHUP or signal.getsignal(n) is not signal.SIG_IGN]


def _end_at_once(number: int, frame: FrameType | None) -> None:
    """Workers die with this process: the kernel sees to that."""
    os._exit(INTERRUPTED)


@atexit.register
def _end_quietly() -> None:
    """A signal while the interpreter itself ends changes nothing: the command has ended, and has its status.

    Python forgets handlers of its own before it ends; the process would then die of the signal.
    """
    with suppress(ValueError):
        for number in _signals():
            signal.signal(number, signal.SIG_IGN)


def _say(sentence: str) -> None:
    """On a full disk, the file that gets the errors may be on it."""
    with suppress(OSError):
        tell(sentence, is_error=True)


def _drop_output() -> None:
    """The reader of the output has gone: Python would complain once more as it flushes."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
