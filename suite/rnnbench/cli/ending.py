"""The ending of every command: one sentence for a mistake, a full disk or a signal, and the exit status."""

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

from rnnbench.abandoned_calls import any_left
from rnnbench.address_space import load_products_within_limit
from rnnbench.cli.exit_status import INTERRUPTED, MISTAKE, UNREAD
from rnnbench.cli.output import make_streams_usable, tell
from rnnbench.disk import BROKEN_DISK_ERRORS, is_disk_error
from rnnbench.optional import broken_installation

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end a command: of Ctrl-C, of CI and `timeout`, and of a closed terminal unless ignored (`nohup`)."""
LIMIT_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})
"""Errors of a limit of files, processes or memory. They are no trial's fault."""
AGAIN_S = 0.05
"""Seconds after which an interrupt is raised again that was dropped in a destructor or a callback of compiled code."""
_MEND = {
    errno.EROFS: "make its disk writable",
    errno.EFBIG: "raise the limit of a file's size (`ulimit -f`)",
    **dict.fromkeys(BROKEN_DISK_ERRORS, "see whether its disk is broken"),
}
"""The advice for errors of a disk that is not full."""
_MOUNT = "mount /proc: rnnbench reads there what the kernel says of the machine and of processes"
_MORE_MEMORY = "raise its limit (`ulimit -v`, or that of the container), or end other programs"
_TEMPORARY = "free space on the disk of one of them, or name another folder with TMPDIR"
_OTHER_PLACE = "see what lies there and who may use it, or name another place"


class _Shown(StringIO):
    """Captures click's message about a mistake. It counts as a terminal, or click would drop a value's escape codes."""

    def isatty(self) -> bool:
        return True


class Ending:
    """The sentence about what a command leaves behind, for an early end."""

    def __init__(self) -> None:
        self._remains: Callable[[], str] | None = None

    def leaves(self, remains: Callable[[], str]) -> None:
        """From now on, `remains` returns a sentence about what is on the disk and how to continue."""
        self._remains = remains

    def sentence(self) -> str:
        """The sentence about what remains; empty if nothing does."""
        if self._remains is None:
            return ""
        try:
            return f" {self._remains()}"
        except Exception:  # noqa: BLE001 an error here must not hide why the command ended
            return ""


def leaves(remains: Callable[[], str]) -> None:
    """Set the sentence about what remains for the running command's ending."""
    click.get_current_context().ensure_object(Ending).leaves(remains)


def run_leaves(folder: Path, how_to_go_on: str) -> None:
    """Set this sentence for a command that writes a run in `folder`. `how_to_go_on` is its end."""

    def remains() -> str:
        from rnnbench.results import read_run
        from rnnbench.spelling import count

        return f"{folder} has {count(len(read_run(folder).records), 'finished trial')}{how_to_go_on}"

    leaves(remains)


def end_well(command: Callable[[Ending], object]) -> None:
    """Run a command, and end the process with the right message and status."""
    try:
        _end(command)
    except SystemExit as ended:
        if any_left():
            _end_without_python(ended.code)
        raise


def _end(command: Callable[[Ending], object]) -> NoReturn:
    """Run a command, print the message, and raise SystemExit."""
    make_streams_usable()
    load_products_within_limit()
    ending = Ending()
    try:
        with _signals_interrupt() as interrupts:
            status = _run_or_exit(command, ending, interrupts)
    except KeyboardInterrupt:  # It came while the message about another end was printed.
        _end_interrupted(ending)
    sys.exit(status if isinstance(status, int) else 0)


def _run_or_exit(command: Callable[[Ending], object], ending: Ending, interrupts: Sequence[int]) -> object:
    """Run the command and return its value. For any other end, print the message and raise SystemExit."""
    try:
        return _uninterrupted(command, ending, interrupts)
    except (KeyboardInterrupt, click.Abort):  # click has already ended the line with ^C
        _end_interrupted(ending)
    except click.ClickException as error:
        if isinstance(error, click.MissingParameter):
            error = click.MissingParameter(_example(error.ctx), error.ctx, error.param, error.param_hint)
        elif isinstance(error, click.BadOptionUsage):
            message = f"{error.message.rstrip('.')}. {_example(error.ctx)}".strip()
            error = click.BadOptionUsage(error.option_name, message, error.ctx)
        error.show(shown := _Shown())
        _say(shown.getvalue().rstrip("\n"))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        _drop_output()
        if not ending.sentence():
            sys.exit(UNREAD)
        _say(f"Interrupted: nobody reads the output any more.{ending.sentence()}")
        sys.exit(INTERRUPTED)
    except Exception as error:
        try:
            sentence = _mistake(error)
        except (OSError, MemoryError, ImportError) as another:  # Of an import in it, as where /proc is empty.
            sentence = _mistake(another)
        if sentence is None:
            raise
        _say(f"rnnbench: {sentence.rstrip('.')}{ending.sentence() and '.' + ending.sentence()}")
        sys.exit(MISTAKE)


def _example(context: click.Context | None) -> str:
    """The example in a command's help; empty if it has none."""
    text = (context.command.help or "").partition("Example:")[2] if context else ""
    example = " ".join(line.strip(" \\") for line in text.strip().partition("\n\n")[0].splitlines())
    return f"For example: {example}" if example else ""


def _end_interrupted(ending: Ending) -> NoReturn:
    _say(f"Interrupted.{ending.sentence()}")
    _forget_interrupt()
    sys.exit(INTERRUPTED)


def _uninterrupted(command: Callable[[Ending], object], ending: Ending, interrupts: Sequence[int]) -> object:
    """Run the command and return its value. An error after an interrupt becomes a KeyboardInterrupt.

    A library may turn an interrupt into an error of its own, as Pydantic's core does.
    """
    try:
        return command(ending)
    except Exception as error:
        if interrupts:
            raise KeyboardInterrupt from error
        raise


def _mistake(error: Exception) -> str | None:
    """The sentence of an error that the user can mend; None for a bug."""
    if isinstance(error, OSError):  # Nothing is imported for it: no further file may be opened.
        return _of_system(error)
    if isinstance(error, RuntimeError) and "start new thread" in str(error):  # Of `threading`, without a number.
        return _of_system(OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)))
    if _lacks_memory(error):
        return f"there is no memory for this command; {_MORE_MEMORY}"
    if isinstance(error, ModuleNotFoundError):  # What is imported next may need the same module.
        return broken_installation(error) or None
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
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):  # Of `Path.resolve`, until 3.12.
        return f"{error}; {_OTHER_PLACE}"
    return None


def _of_system(error: OSError) -> str | None:
    """The sentence of an error of the system."""
    if is_disk_error(error):
        what = error.filename or "the output"
        mend = _MEND.get(error.errno or 0, "free space on its disk")
        does = "use" if error.errno in BROKEN_DISK_ERRORS else "write"  # The others are of writing alone.
        return f"cannot {does} {what}: {error.strerror}; {mend}, or choose another one"
    if error.filename and not isinstance(error.filename, int) and error.errno not in LIMIT_ERRORS:
        what_to_do = _MOUNT if str(error.filename).startswith("/proc/") else _OTHER_PLACE
        return f"cannot use {error.filename}: {error.strerror}; {what_to_do}"
    if isinstance(error, FileNotFoundError) and "temporary directory" in str(error):  # Of `tempfile`.
        return f"{error.strerror}; {_TEMPORARY}"
    if isinstance(error, FileNotFoundError) and not _has_folder():
        return "the folder in which this command runs was removed; change to another one"
    if error.errno in LIMIT_ERRORS:
        what_to_do = "raise it (`ulimit -n` for open files, `ulimit -u` for processes), or end other programs"
        return f"a limit of this machine or of its user is reached: {error.strerror}; {what_to_do}"
    return None


def _lacks_memory(error: BaseException) -> bool:
    """Whether an error, or what it came from, is one of memory: the loader tells it as a failed import of a library."""
    of_library = isinstance(error, ImportError) and "failed to map segment" in str(error)
    if of_library or isinstance(error, MemoryError):
        return True
    before = error.__cause__ or error.__context__
    return before is not None and _lacks_memory(before)


def _has_folder() -> bool:
    """Whether the working folder of the command exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


@contextmanager
def _signals_interrupt() -> Iterator[Sequence[int]]:
    """Raise KeyboardInterrupt at the first signal, and end the process and its workers at once at a second one.

    Yields the list of signals that have come.
    """
    interrupts: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        for signal_number in before:
            signal.signal(signal_number, _end_at_once)
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
    """Raise an interrupt again that Python has dropped.

    Python only prints an exception that the caller cannot handle ("Exception ignored in"). Without a timer that raises
    the interrupt again, the command would go on, and a second signal would end it without a message.
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

    CPython remembers an interrupt within `exec` of a text, as dataclasses use it, and later ends itself by SIGINT even
    if the interrupt was caught (`unhandled_keyboard_interrupt`). Another `exec` makes it forget.
    """
    exec("")


def _signals() -> list[signal.Signals]:
    """The signals of SIGNALS that are not ignored."""
    return [n for n in SIGNALS if n != signal.SIGHUP or signal.getsignal(n) is not signal.SIG_IGN]


def _end_at_once(number: int, frame: FrameType | None) -> None:
    """End the process. The kernel kills its workers with it."""
    os._exit(INTERRUPTED)


def _end_without_python(status: object) -> NoReturn:
    """End the process at once, since a library does not return. The supervisor removes what it leaves."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status if isinstance(status, int) else 0)


@atexit.register
def _end_quietly() -> None:
    """Ignore signals while the interpreter ends: the command has ended, and its status must stay.

    Python removes its handlers before it ends, and the process would then die of the signal.
    """
    with suppress(ValueError):
        for number in _signals():
            signal.signal(number, signal.SIG_IGN)


def _say(sentence: str) -> None:
    """Print a sentence on standard error. Errors are ignored: it may be a file on a full disk.

    What was given with several lines is shown in one.

    Without memory, or where no further file can be opened, what makes a sentence safe cannot be imported. It is one of
    this module then.
    """
    for given in (argument for argument in sys.argv if "\n" in argument):
        for part in (given, given.partition("=")[2]):
            sentence = sentence.replace(part, part.replace("\n", "\\n")) if "\n" in part else sentence
    with suppress(OSError):
        try:
            tell(sentence, is_error=True)
        except (OSError, MemoryError, ImportError):
            os.write(2, f"{sentence}\n".encode("ascii", "backslashreplace"))


def _drop_output() -> None:
    """Drop further output, since its reader has gone. Otherwise Python would complain again when it flushes."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
