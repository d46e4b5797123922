"""The settings of a process that a program may change: reading them, describing a change, undoing it.

A setting is an entry in `SETTINGS`. Reading all of them takes some 0.25 ms. `process_state` has the things that a
process holds, such as descriptors and threads.
"""

from __future__ import annotations

import decimal
import gc
import locale
import os
import random
import re
import resource
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.measure import put_clocks_back, replaced_clocks
from rnnbench.worker.c_settings import (
    describe_environment,
    describe_floating_point,
    describe_handlers,
    read_environment,
    read_floating_point,
    read_handlers,
    read_timers,
    restore_environment,
    restore_floating_point,
    restore_handlers,
    restore_timers,
    some_of,
)
from rnnbench.worker.replaced_functions import FUNCTIONS

Values = Mapping[str, Any]
"""The value of each setting, by name."""


@dataclass(frozen=True)
class Setting:
    """One setting of the process."""

    name: str
    """The name as it is written in a sentence: "the working folder"."""
    read: Callable[[], Any]
    """Returns an immutable copy of the value, which can be compared."""
    restore: Callable[[Any], object]
    """Sets an earlier value. May raise OSError if the kernel does not allow it."""
    describe: Callable[[Any, Any], str]
    """Describes the change from one value to another in some words."""


def read_settings(names: Container[str] | None = None) -> Values:
    """The current values of the settings with these names, or of all."""
    return {setting.name: setting.read() for setting in SETTINGS if names is None or setting.name in names}


def changed_settings(before: Values, after: Values) -> dict[str, str]:
    """The settings of `before` that differ in `after`, each with a description of the change."""
    return {
        setting.name: setting.describe(before[setting.name], after[setting.name])
        for setting in SETTINGS
        if setting.name in before and before[setting.name] != after[setting.name]
    }


def changed_beyond_imports(before: Values, after: Values) -> dict[str, str]:
    """Those of `changed_settings` that the import of a framework may not change.

    An import may add environment variables and paths, and may raise the recursion limit. It may not remove or lower
    them, since other trials in the process may need them.
    """
    changed = changed_settings(before, after)
    return {name: what for name, what in changed.items() if name not in _OF_IMPORTS or _took(name, before, after)}


def _took(name: str, before: Values, after: Values) -> bool:
    if name == RECURSION:
        return bool(after[name] < before[name])
    return name in (ENVIRONMENT, PATH) and not set(before[name]) <= set(after[name])


def restore_settings(values: Values, names: Iterable[str]) -> None:
    """Set these settings to their earlier values. A setting that the kernel does not allow to be set is skipped."""
    by_name = {setting.name: setting for setting in SETTINGS}
    for name in names:
        with suppress(OSError, ValueError, locale.Error):
            by_name[name].restore(values[name])


def _from_to(before: object, after: object) -> str:
    return f"{after} instead of {before}"


# NumPy, Python and the kernel.


def _restore_collector(state: tuple[bool, tuple[int, int, int]]) -> None:
    enabled, thresholds = state
    gc.set_threshold(*thresholds)
    if enabled:
        gc.enable()
    else:
        gc.disable()


def _read_numpy_random() -> tuple[Any, ...]:
    name, keys, *rest = np.random.get_state(legacy=True)
    return name, np.asarray(keys).tobytes(), *rest


def _restore_numpy_random(state: tuple[Any, ...]) -> None:
    name, keys, *rest = state
    np.random.set_state((name, np.frombuffer(keys, np.uint32), *rest))


def _read_error_state() -> tuple[Any, ...]:
    return np.geterr(), np.geterrcall(), np.getbufsize()


def _restore_error_state(state: tuple[Any, ...]) -> None:
    errors, call, size = state
    np.seterr(**errors)
    np.seterrcall(call)
    np.setbufsize(size)


def _restore_print_options(options: dict[str, Any]) -> None:
    np.set_printoptions(**{name: value for name, value in options.items() if name != "override_repr"})


def _read_warnings() -> tuple[Any, ...]:
    return tuple(warnings.filters), warnings.showwarning


def _restore_warnings(state: tuple[Any, ...]) -> None:
    warnings.filters[:], warnings.showwarning = list(state[0]), state[1]  # type: ignore[index]


def _read_path() -> tuple[str, ...]:
    return tuple(sys.path)


def _restore_path(path: tuple[str, ...]) -> None:
    sys.path[:] = path


_HOOKS: Mapping[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "sys.excepthook": (lambda: sys.excepthook, lambda hook: setattr(sys, "excepthook", hook)),
    "sys.unraisablehook": (lambda: sys.unraisablehook, lambda hook: setattr(sys, "unraisablehook", hook)),
    "threading.excepthook": (lambda: threading.excepthook, lambda hook: setattr(threading, "excepthook", hook)),
    "sys.settrace": (sys.gettrace, sys.settrace),
    "sys.setprofile": (sys.getprofile, sys.setprofile),
    "threading.settrace": (threading.gettrace, lambda hook: threading.settrace(hook)),
    "threading.setprofile": (threading.getprofile, lambda hook: threading.setprofile(hook)),
}


def _read_hooks() -> dict[str, Any]:
    return {name: read() for name, (read, _) in _HOOKS.items()}


def _restore_hooks(hooks: dict[str, Any]) -> None:
    for name, (_, restore) in _HOOKS.items():
        restore(hooks[name])


def _describe_named(before: dict[str, Any], after: dict[str, Any]) -> str:
    return some_of(name for name in before if before[name] is not after[name])


def _read_streams() -> dict[str, Any]:
    return {"sys.stdout": sys.stdout, "sys.stderr": sys.stderr}


def _restore_streams(streams: dict[str, Any]) -> None:
    sys.stdout, sys.stderr = streams["sys.stdout"], streams["sys.stderr"]


_LIMITS = {name: getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}


def _read_limits() -> dict[str, tuple[int, int]]:
    return {name: resource.getrlimit(which) for name, which in _LIMITS.items()}


def _restore_limits(limits: dict[str, tuple[int, int]]) -> None:
    """Restore the limits. A hard limit that was lowered stays lowered, since only root may raise it."""
    for name, (soft, hard) in limits.items():
        try:
            resource.setrlimit(_LIMITS[name], (soft, hard))
        except (OSError, ValueError):
            now = resource.getrlimit(_LIMITS[name])[1]
            resource.setrlimit(_LIMITS[name], (soft if now == resource.RLIM_INFINITY else min(soft, now), now))


def _describe_limits(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> str:
    return some_of(f"{n} {after[n][0]} instead of {before[n][0]}" for n in before if before[n] != after[n])


def _read_umask() -> int:
    """The umask, from /proc: `os.umask` would change it for a moment, while other threads may write files."""
    match = re.search(rb"^Umask:\s+(\d+)", Path("/proc/self/status").read_bytes(), re.MULTILINE)
    return int(match[1], 8) if match else -1


def _read_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "a folder that was removed"


def _read_temporary_folder() -> tuple[str, bool]:
    """The folder for temporary files, and whether it exists. Python looks for it once per process."""
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError:
        return "", False
    return folder, os.path.isdir(folder)


def _restore_temporary_folder(value: tuple[str, bool]) -> None:
    folder, was_there = value
    tempfile.tempdir = folder or None
    if was_there:
        os.makedirs(folder, mode=0o700, exist_ok=True)


def _describe_temporary_folder(before: tuple[str, bool], after: tuple[str, bool]) -> str:
    return "it was removed" if before[0] == after[0] else _from_to(before[0], after[0])


def _read_scheduling() -> tuple[Any, ...]:
    return os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), tuple(sorted(os.sched_getaffinity(0)))


def _restore_scheduling(values: tuple[Any, ...]) -> None:
    os.sched_setaffinity(0, values[2])
    if os.sched_getscheduler(0) != values[1]:
        os.sched_setscheduler(0, values[1], os.sched_param(0))
    if os.getpriority(os.PRIO_PROCESS, 0) != values[0]:
        os.setpriority(os.PRIO_PROCESS, 0, values[0])


def _describe_scheduling(before: tuple[Any, ...], after: tuple[Any, ...]) -> str:
    what = zip(("niceness", "policy", "cores"), before, after, strict=True)
    return ", ".join(f"{name} {_from_to(old, new)}" for name, old, new in what if old != new)


def _nothing_more(before: object, after: object) -> str:
    return ""


def _describe_functions(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    return some_of(name for name in after if name not in before) or "put back"


def _read_import_hooks() -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return tuple(sys.meta_path), tuple(sys.path_hooks)


def _restore_import_hooks(hooks: tuple[tuple[Any, ...], tuple[Any, ...]]) -> None:
    sys.meta_path[:], sys.path_hooks[:] = hooks


def _read_decimal() -> tuple[int, str]:
    context = decimal.getcontext()
    return context.prec, context.rounding


def _restore_decimal(values: tuple[int, str]) -> None:
    context = decimal.getcontext()
    context.prec, context.rounding = values


def _restore_callbacks(callbacks: tuple[Any, ...]) -> None:
    gc.callbacks[:] = callbacks


FLOATING_POINT, REPLACED_FUNCTIONS = "the floating-point environment", "functions of Python, NumPy or the suite"
ENVIRONMENT, HANDLERS = "environment variables", "signal handlers"
WARNINGS, PATH, HOOKS = "the filters of warnings", "sys.path", "Python's hooks"
PYTHON_RANDOM, NUMPY_RANDOM = "Python's random state", "NumPy's random state"
IMPORT_HOOKS, CALLBACKS = "Python's import hooks", "the callbacks of the garbage collector"
SCHEDULING = "scheduling"
RECURSION, ERROR_STATE = "the recursion limit", "NumPy's handling of errors"
SETTINGS = (
    Setting(FLOATING_POINT, read_floating_point, restore_floating_point, describe_floating_point),
    Setting(
        "the garbage collector",
        lambda: (gc.isenabled(), gc.get_threshold()),
        _restore_collector,
        lambda before, after: ("" if after[0] else "switched off, ") + f"thresholds {after[1]}",
    ),
    Setting(CALLBACKS, lambda: tuple(gc.callbacks), _restore_callbacks, lambda a, b: f"{len(b)} instead of {len(a)}"),
    Setting("the working folder", _read_folder, os.chdir, _from_to),
    Setting(
        "the folder of temporary files",
        _read_temporary_folder,
        _restore_temporary_folder,
        _describe_temporary_folder,
    ),
    Setting(ENVIRONMENT, read_environment, restore_environment, describe_environment),
    Setting(HANDLERS, read_handlers, restore_handlers, describe_handlers),
    Setting(
        "blocked signals",
        lambda: frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        lambda blocked: signal.pthread_sigmask(signal.SIG_SETMASK, blocked),
        lambda before, after: some_of(str(number) for number in sorted(before ^ after)),
    ),
    Setting("Python's clocks", replaced_clocks, lambda _: put_clocks_back(), lambda before, after: after or "put back"),
    Setting("interval timers", read_timers, restore_timers, _nothing_more),
    Setting(PYTHON_RANDOM, random.getstate, random.setstate, _nothing_more),
    Setting(NUMPY_RANDOM, _read_numpy_random, _restore_numpy_random, _nothing_more),
    Setting(ERROR_STATE, _read_error_state, _restore_error_state, _from_to),
    Setting("NumPy's print options", np.get_printoptions, _restore_print_options, _nothing_more),
    Setting(
        "the locale", lambda: locale.setlocale(locale.LC_ALL), lambda v: locale.setlocale(locale.LC_ALL, v), _from_to
    ),
    Setting(RECURSION, sys.getrecursionlimit, sys.setrecursionlimit, _from_to),
    Setting("the switch interval of threads", sys.getswitchinterval, sys.setswitchinterval, _from_to),
    Setting(WARNINGS, _read_warnings, _restore_warnings, _nothing_more),
    Setting(PATH, _read_path, _restore_path, lambda before, after: some_of(sorted({*before} ^ {*after}))),
    Setting(IMPORT_HOOKS, _read_import_hooks, _restore_import_hooks, _nothing_more),
    Setting("the context of decimal numbers", _read_decimal, _restore_decimal, _from_to),
    Setting("the timeout of sockets", socket.getdefaulttimeout, socket.setdefaulttimeout, _from_to),
    Setting(REPLACED_FUNCTIONS, FUNCTIONS.replaced, lambda _: FUNCTIONS.put_back(), _describe_functions),
    Setting(HOOKS, _read_hooks, _restore_hooks, _describe_named),
    Setting("Python's output", _read_streams, _restore_streams, _describe_named),
    Setting("limits of resources", _read_limits, _restore_limits, _describe_limits),
    Setting("the umask", _read_umask, os.umask, lambda before, after: f"{after:03o} instead of {before:03o}"),
    Setting(SCHEDULING, _read_scheduling, _restore_scheduling, _describe_scheduling),
)
"""Every setting that is compared."""
_OF_IMPORTS = frozenset(
    {ENVIRONMENT, HANDLERS, WARNINGS, PATH, HOOKS, PYTHON_RANDOM, NUMPY_RANDOM, RECURSION, IMPORT_HOOKS, CALLBACKS}
)
"""The settings that the import of a framework may change. TensorFlow sets seven variables and filters warnings, JAX
sets two variables; both draw from the random states. torch's Inductor adds a path and raises the recursion limit."""
OF_RESULTS = (FLOATING_POINT, ERROR_STATE, PYTHON_RANDOM, NUMPY_RANDOM, REPLACED_FUNCTIONS)
"""The settings whose change may make results wrong. Reading them takes 0.2 ms."""
