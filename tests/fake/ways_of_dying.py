"""Ways in which a third party's code can die, hang, lie or leave something behind. A way runs where its route says.

Each is what adapters, compilers and runtimes have been seen to do, or what the operating system lets them do. `Kind`
says with which outcomes a trial may end that goes that way.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import errno
import faulthandler
import gc
import io
import locale
import mmap
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NoReturn

import numpy as np

FOREVER_S = 3600
TEXT_BYTES = 2 << 20
"""Of a message that is far too long. The log of its worker gets all of it."""


class GoOn:
    """What a way returns that harms nothing at once: the adapter goes on as an honest one does."""


go_on = GoOn()


class Kind(Enum):
    RAISES = auto()
    """An exception: the trial fails, its process does not."""
    NO_MEMORY = auto()
    EXITS = auto()
    """Asks the interpreter to exit."""
    DIES = auto()
    """The process ends."""
    BREAKS_CHANNEL = auto()
    """The channel carries what is no reply."""
    HANGS = auto()
    SURVIVES = auto()
    """Leaves something behind that does not hinder the trial itself."""
    HARMS_ITSELF = auto()
    """Breaks its own process so far that whatever follows in it may fail."""
    LIES = auto()
    """Returns something else than it may."""


@dataclass(frozen=True)
class Way:
    kind: Kind
    does: Callable[[], Any]


WAYS: dict[str, Way] = {}


def way(kind: Kind) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Adds a function to the table, under its name."""

    def add(does: Callable[[], Any]) -> Callable[[], Any]:
        WAYS[does.__name__.strip("_").replace("_", "-")] = Way(kind, does)
        return does

    return add


# Exceptions.


def _raises(name: str, make: Callable[[], BaseException], kind: Kind = Kind.RAISES) -> None:
    def does() -> NoReturn:
        raise make()

    WAYS[name] = Way(kind, does)


class StrRaises(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class StrExits(Exception):
    def __str__(self) -> str:
        raise SystemExit("no words")


class NotPicklable(Exception):
    def __init__(self) -> None:
        super().__init__("cannot be pickled")
        self.lock = threading.Lock()

    def __reduce__(self) -> NoReturn:
        raise TypeError("never")


class OwnBaseException(BaseException):
    pass


def _with_a_cause_of_itself() -> Exception:
    error = RuntimeError("its own cause")
    error.__cause__ = error
    return error


def _with_a_thousand_causes() -> Exception:
    error = RuntimeError("the first")
    for number in range(1000):
        following = RuntimeError(f"number {number}")
        following.__cause__ = error
        error = following
    return error


def _with_odd_notes() -> Exception:
    error = RuntimeError("has odd notes")
    error.__notes__ = [StrRaises(), 3, "\ud800"]  # type: ignore[attr-defined]
    return error


_raises("raises", lambda: RuntimeError("the runtime lost its device"))
_raises("str-raises", StrRaises)
_raises("str-exits", StrExits)
_raises("surrogates", lambda: RuntimeError("\udcff\ud800 lost"))
_raises("control-characters", lambda: RuntimeError("a\0b\x1b[2J\x1b]0;title\x07\u202e\r"))
_raises("long-text", lambda: RuntimeError("x" * TEXT_BYTES))
_raises("many-lines", lambda: RuntimeError("\n" * (TEXT_BYTES >> 3)))
_raises("markup", lambda: RuntimeError("[red]|</td><script>`![](x)"))
_raises("not-picklable", NotPicklable)
_raises("group", lambda: ExceptionGroup("many", [ValueError(number) for number in range(100)]))
_raises("stop-iteration", lambda: StopIteration(3))
_raises("too-many-files", lambda: OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
_raises("timeout-error", lambda: TimeoutError("a lock of its own"))
_raises("broken-pipe", lambda: BrokenPipeError("a pipe of its own"))
_raises("connection-reset", lambda: ConnectionResetError("a socket of its own"))
_raises("end-of-file", EOFError)
_raises("import-error", lambda: ImportError("libruntime.so.3: cannot open shared object file"))
_raises("own-cause", _with_a_cause_of_itself)
_raises("thousand-causes", _with_a_thousand_causes)
_raises("odd-notes", _with_odd_notes)
_raises("odd-name", lambda: type("\udcff\n|", (Exception,), {})("odd"))
_raises("memory-error", MemoryError, Kind.NO_MEMORY)
_raises("system-exit", lambda: SystemExit("enough"), Kind.EXITS)
_raises("system-exit-0", lambda: SystemExit(0), Kind.EXITS)
_raises("keyboard-interrupt", KeyboardInterrupt, Kind.EXITS)
_raises("generator-exit", GeneratorExit, Kind.EXITS)
_raises("base-exception", OwnBaseException, Kind.EXITS)
_raises("cancelled", asyncio.CancelledError, Kind.EXITS)


@way(Kind.RAISES)
def recursion() -> Any:
    return recursion()


@way(Kind.RAISES)
def warning_as_error() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.warn("deprecated", stacklevel=1)


@way(Kind.RAISES)
def decoding() -> Any:
    return b"\xff".decode()


# Memory.


@way(Kind.NO_MEMORY)
def grows() -> Any:
    _take_memory()


@way(Kind.NO_MEMORY)
def grows_in_a_child() -> Any:
    if (child := os.fork()) == 0:
        _take_memory()
    os.waitpid(child, 0)


def _take_memory() -> NoReturn:
    """As much as a limit of 500 MiB does not allow, in steps; no more, since other programs run here."""
    kept = []
    for _ in range(40):
        kept.append(np.ones(8 << 20))
        time.sleep(0.05)
    time.sleep(FOREVER_S)
    raise AssertionError(len(kept))


@way(Kind.NO_MEMORY)
def address_space_limit() -> Any:
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(open("/proc/self/statm").read().split()[0]) * mmap.PAGESIZE  # noqa: SIM115
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), before[1]))
    try:
        np.ones(64 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


# The process ends.


@way(Kind.DIES)
def os_exit_0() -> Any:
    os._exit(0)


@way(Kind.DIES)
def os_exit_7() -> Any:
    os._exit(7)


@way(Kind.DIES)
def aborts() -> Any:
    os.abort()


@way(Kind.DIES)
def reads_address_0() -> Any:
    ctypes.string_at(0)


@way(Kind.DIES)
def stack_overflow() -> Any:
    """In C: a function that calls itself (x86-64 and AArch64)."""
    code = b"\xe8\xfb\xff\xff\xff" if os.uname().machine == "x86_64" else b"\xff\x83\x00\xd1\xff\xff\xff\x17"
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()


@way(Kind.DIES)
def faulthandler_crash() -> Any:
    faulthandler.enable()
    faulthandler._sigsegv()  # type: ignore[attr-defined]


@way(Kind.DIES)
def becomes_another_program() -> Any:
    os.execv("/bin/true", ["true"])


@way(Kind.DIES)
def a_thread_exits() -> Any:
    threading.Thread(target=lambda: os._exit(3)).start()
    time.sleep(FOREVER_S)


@way(Kind.DIES)
def kills_its_group() -> Any:
    os.killpg(0, signal.SIGKILL)
    time.sleep(FOREVER_S)


@way(Kind.DIES)
def an_alarm_comes() -> Any:
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(FOREVER_S)


@way(Kind.DIES)
def processor_time_limit() -> Any:
    used = int(sum(os.times()[:2])) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (used, used))
    while True:
        pass


@way(Kind.DIES)
def dies_while_a_child_holds_the_channel() -> Any:
    subprocess.Popen(["sleep", str(FOREVER_S)], pass_fds=[_channel()], start_new_session=True)
    os._exit(5)


@way(Kind.DIES)
def a_cpp_exception() -> Any:
    """That nobody catches: std::bad_alloc, thrown by the C++ library."""
    ctypes.CDLL("libstdc++.so.6")._ZSt17__throw_bad_allocv()


@way(Kind.DIES)
def a_thread_reads_address_0() -> Any:
    threading.Thread(target=ctypes.string_at, args=(0,)).start()
    time.sleep(FOREVER_S)


@way(Kind.DIES)
def dies_while_a_fork_lives() -> Any:
    """It ignores signals, and has all descriptors: the channel, and the pipe of a build."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        _ignore_signals()
        os.write(writing, b".")
        time.sleep(FOREVER_S)
    os.read(reading, 1)
    os._exit(5)


@way(Kind.DIES)
def writes_half_a_line_and_dies() -> Any:
    _write(b'{"reply": ')
    os._exit(0)


FATAL = (
    *("SEGV", "BUS", "FPE", "ILL", "KILL", "TERM", "HUP", "QUIT", "TRAP", "SYS", "USR1", "USR2", "VTALRM", "PROF"),
    *("XCPU", "POLL", "STKFLT", "PWR"),
)


def _signalled(number: int) -> Way:
    def does() -> None:
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)  # A process that `nohup` started ignores SIGHUP.
        os.kill(os.getpid(), number)
        time.sleep(FOREVER_S)

    return Way(Kind.DIES, does)


WAYS |= {f"sig{name.lower()}": _signalled(getattr(signal, f"SIG{name}")) for name in FATAL}
WAYS["realtime-signal"] = _signalled(40)


@way(Kind.DIES)
def closes_every_descriptor() -> Any:
    os.closerange(0, 4096)
    return go_on


# The channel.


def _channel() -> int:
    return int(sys.argv[-1])


def _write(data: bytes) -> None:
    os.set_blocking(_channel(), True)
    while data:
        data = data[os.write(_channel(), data) :]


def _writes(name: str, data: bytes) -> None:
    def does() -> GoOn:
        _write(data)
        return go_on

    WAYS[name] = Way(Kind.BREAKS_CHANNEL, does)


_writes("writes-rubbish", b"no JSON\n")
_writes("writes-bytes", bytes(range(256)) * 16 + b"\n")
_writes("writes-half-a-line", b'{"reply": ')
_writes("writes-a-reply-of-its-own", b'{"reply": {}}\n')
_writes("writes-nested-json", b"[" * 100_000 + b"\n")
_writes("writes-an-odd-failure", b'{"failed": {"outcome": "well", "reason": 3}}\n')
_writes("writes-a-number", b"1e999\n")


@way(Kind.BREAKS_CHANNEL)
def writes_a_huge_line() -> Any:
    piece = b"x" * (1 << 20)
    while True:
        _write(piece)


@way(Kind.BREAKS_CHANNEL)
def shuts_the_channel() -> Any:
    socket.socket(fileno=os.dup(_channel())).shutdown(socket.SHUT_RDWR)
    return go_on


@way(Kind.HANGS)
def writes_for_ever() -> Any:
    while True:
        _write(b"x")
        time.sleep(0.02)


@way(Kind.HANGS)
def reads_the_channel() -> Any:
    while True:
        os.read(_channel(), 1)


# Hanging.


@way(Kind.HANGS)
def sleeps() -> Any:
    time.sleep(FOREVER_S)


@way(Kind.HANGS)
def spins() -> Any:
    while True:
        pass


@way(Kind.HANGS)
def holds_the_interpreter() -> Any:
    """Without giving the interpreter's lock to other threads."""
    ctypes.PyDLL(None).sleep(FOREVER_S)


@way(Kind.HANGS)
def stops() -> Any:
    """Until somebody lets it go on: sampling does so before each command."""
    while True:
        os.kill(os.getpid(), signal.SIGSTOP)


def _ignore_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


@way(Kind.HANGS)
def ignores_signals() -> Any:
    _ignore_signals()
    time.sleep(FOREVER_S)


@way(Kind.HANGS)
def locks_itself_out() -> Any:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


@way(Kind.HANGS)
def waits_for_a_child() -> Any:
    subprocess.run(["sleep", str(FOREVER_S)], check=False)


@way(Kind.HANGS)
def catches_everything() -> Any:
    while True:
        with suppress(BaseException):
            time.sleep(FOREVER_S)


@way(Kind.HANGS)
def becomes_a_program_that_sleeps() -> Any:
    os.execvp("sleep", ["sleep", str(FOREVER_S)])


# Processes that stay.


@way(Kind.SURVIVES)
def a_child_stays() -> Any:
    subprocess.Popen(["sleep", str(FOREVER_S)])
    return go_on


@way(Kind.SURVIVES)
def a_child_in_its_own_session() -> Any:
    subprocess.Popen(["sleep", str(FOREVER_S)], start_new_session=True)
    return go_on


@way(Kind.SURVIVES)
def a_child_holds_the_channel() -> Any:
    subprocess.Popen(["sleep", str(FOREVER_S)], pass_fds=[_channel()], start_new_session=True)
    return go_on


@way(Kind.SURVIVES)
def a_daemon() -> Any:
    """Forked twice, in a session of its own."""
    if (child := os.fork()) == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(FOREVER_S)
        os._exit(0)
    os.waitpid(child, 0)
    return go_on


@way(Kind.SURVIVES)
def many_children() -> Any:
    """Each forks another, up to 32."""
    if os.fork() == 0:
        for _ in range(31):
            if os.fork() != 0:
                break
        time.sleep(FOREVER_S)
        os._exit(0)
    return go_on


@way(Kind.SURVIVES)
def zombies() -> Any:
    for _ in range(20):
        if os.fork() == 0:
            os._exit(0)
    return go_on


@way(Kind.SURVIVES)
def a_fork_holds_everything() -> Any:
    """All descriptors, in a session of its own, and it ignores signals."""
    if os.fork() == 0:
        os.setsid()
        _ignore_signals()
        time.sleep(FOREVER_S)
        os._exit(0)
    return go_on


@way(Kind.SURVIVES)
def a_child_without_the_environment() -> Any:
    subprocess.Popen(["/bin/sleep", str(FOREVER_S)], env={}, start_new_session=True, stdout=subprocess.DEVNULL)
    return go_on


# What it changes in its process.

_kept: list[Any] = []


@way(Kind.SURVIVES)
def many_threads() -> Any:
    for _ in range(100):
        threading.Thread(target=time.sleep, args=(FOREVER_S,), daemon=True).start()
    return go_on


@way(Kind.SURVIVES)
def a_thread_raises() -> Any:
    thread = threading.Thread(target=WAYS["str-raises"].does)
    thread.start()
    thread.join()
    return go_on


@way(Kind.SURVIVES)
def deletes_its_folder() -> Any:
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)
    return go_on


@way(Kind.SURVIVES)
def clears_its_environment() -> Any:
    os.environ.clear()
    return go_on


@way(Kind.SURVIVES)
def numpy_raises() -> Any:
    np.seterr(all="raise", under="ignore")
    return go_on


@way(Kind.SURVIVES)
def handles_signals() -> Any:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)
    return go_on


@way(Kind.SURVIVES)
def forgets_its_children() -> Any:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    return go_on


@way(Kind.SURVIVES)
def leaves_a_watchdog() -> Any:
    faulthandler.dump_traceback_later(FOREVER_S, exit=True, file=2)
    return go_on


@way(Kind.SURVIVES)
def collects_no_garbage() -> Any:
    gc.disable()
    gc.set_threshold(0)
    return go_on


@way(Kind.SURVIVES)
def leaves_a_loop() -> Any:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.set_event_loop(loop)
    return go_on


@way(Kind.SURVIVES)
def raises_when_collected() -> Any:
    class Raises:
        def __del__(self) -> None:
            raise OwnBaseException

    Raises()
    return go_on


@way(Kind.SURVIVES)
def exits_at_exit() -> Any:
    atexit.register(os._exit, 0)
    return go_on


@way(Kind.SURVIVES)
def a_thread_exits_the_interpreter() -> Any:
    thread = threading.Thread(target=sys.exit, args=(3,))
    thread.start()
    thread.join()
    return go_on


@way(Kind.SURVIVES)
def removes_its_temporary_folder() -> Any:
    shutil.rmtree(tempfile.gettempdir(), ignore_errors=True)
    return go_on


@way(Kind.SURVIVES)
def prints_into_nothing() -> Any:
    sys.stdout = sys.stderr = io.StringIO()
    return go_on


@way(Kind.SURVIVES)
def masks_and_lowers() -> Any:
    """What cannot be raised again without rights, too."""
    os.umask(0o777)
    os.nice(3)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return go_on


@way(Kind.SURVIVES)
def speaks_another_language() -> Any:
    locale.setlocale(locale.LC_ALL, "C")
    os.environ.update(LANG="tr_TR.ISO-8859-9", LC_ALL="tr_TR.ISO-8859-9", PYTHONIOENCODING="ascii")
    return go_on


@way(Kind.SURVIVES)
def reads_address_0_at_exit() -> Any:
    atexit.register(ctypes.string_at, 0)
    return go_on


@way(Kind.SURVIVES)
def closes_its_output() -> Any:
    sys.stdout.close()
    return go_on


@way(Kind.SURVIVES)
def has_no_output() -> Any:
    sys.stdout = sys.stderr = None  # type: ignore[assignment]
    return go_on


@way(Kind.SURVIVES)
def prints_much() -> Any:
    os.write(1, b"\x1b[31m\0\xff" * 500_000)
    print("x" * TEXT_BYTES)
    return go_on


@way(Kind.SURVIVES)
def prints_as_it_likes() -> Any:
    if sys.stdout is not None:  # Another one may have taken it away.
        sys.stdout.write = OwnBaseException  # type: ignore[assignment, method-assign]
    return go_on


@way(Kind.SURVIVES)
def closes_the_descriptors_of_its_output() -> Any:
    """The next file that its process opens gets the number 1: what is printed then goes into that."""
    os.closerange(1, 3)
    return go_on


@way(Kind.SURVIVES)
def blocks_signals() -> Any:
    _ignore_signals()
    return go_on


@way(Kind.SURVIVES)
def raises_in_hooks() -> Any:
    sys.excepthook = sys.unraisablehook = threading.excepthook = WAYS["str-exits"].does  # type: ignore[assignment]
    return go_on


@way(Kind.SURVIVES)
def sets_libraries_as_it_likes() -> Any:
    np.set_printoptions(threshold=0, precision=0)
    warnings.simplefilter("error")
    sys.setswitchinterval(1000)
    sys.setrecursionlimit(1_000_000)
    sys.path.insert(0, "/nowhere")
    return go_on


@way(Kind.HARMS_ITSELF)
def may_write_no_file() -> Any:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    return go_on


@way(Kind.HARMS_ITSELF)
def finds_no_module() -> Any:
    sys.path.clear()
    sys.meta_path.clear()
    return go_on


@way(Kind.HARMS_ITSELF)
def takes_every_descriptor() -> Any:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    while True:
        _kept.append(os.open(os.devnull, os.O_RDONLY))


@way(Kind.HARMS_ITSELF)
def recurses_little() -> Any:
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]
    sys.setrecursionlimit(depth + 30)
    return go_on


@way(Kind.HARMS_ITSELF)
def empties_its_modules() -> Any:
    sys.modules.clear()
    return go_on


@way(Kind.HARMS_ITSELF)
def refuses_everything() -> Any:
    def refuse(event: str, arguments: Any) -> None:
        if event in ("open", "os.listdir", "import", "subprocess.Popen"):
            raise OwnBaseException(event)

    sys.addaudithook(refuse)
    return go_on


@way(Kind.HARMS_ITSELF)
def traces_and_raises() -> Any:
    def trace(*_: Any) -> NoReturn:
        raise RuntimeError("a tracer's own mistake")

    sys.settrace(trace)
    return go_on


@way(Kind.HARMS_ITSELF)
def replies_twice() -> Any:
    """A fork that returns in both processes: each goes on as the worker."""
    os.fork()
    return go_on


@way(Kind.HARMS_ITSELF)
def closes_the_channel() -> Any:
    os.close(_channel())
    return go_on


@way(Kind.HARMS_ITSELF)
def may_open_ten_files() -> Any:
    resource.setrlimit(resource.RLIMIT_NOFILE, (10, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return go_on


# What it returns.


class Raising:
    def __getattr__(self, name: str) -> NoReturn:
        raise StrRaises


class Exiting:
    def __getattribute__(self, name: str) -> NoReturn:
        raise SystemExit("enough")


class Endless:
    """A mapping whose keys never end."""

    def __getitem__(self, name: object) -> Any:
        return self

    def __iter__(self) -> Any:
        while True:
            yield "y"


def _returns(name: str, make: Callable[[], Any]) -> None:
    WAYS[name] = Way(Kind.LIES, make)


_returns("returns-none", lambda: None)
_returns("returns-text", lambda: "\udcff")
_returns("returns-a-number", lambda: float("nan"))
_returns("returns-a-class", lambda: Raising)
_returns("returns-what-raises", Raising)
_returns("returns-what-exits", Exiting)
_returns("returns-nan", lambda: {"y": np.full((4, 1, 4), np.nan, np.float32)})
_returns("returns-objects", lambda: {"y": np.array([Raising()], object)})
_returns("returns-endless", Endless)
