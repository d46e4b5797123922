"""The settings of a process that a program may change: reading them, describing a change, undoing it.

A setting is an entry in `PROCESS_SETTINGS`. Reading all of them takes some 0.25 ms. Its functions are in `c_settings`,
`python_settings` and `kernel_settings`. `process_state` has the things that a process holds, such as descriptors.
"""

from __future__ import annotations

import gc
import locale
import os
import random
import signal
import socket
import sys
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnbench.measure import put_clocks_back, replaced_clocks
from rnnbench.worker import c_settings, kernel_settings, python_settings
from rnnbench.worker.replaced_functions import FUNCTIONS
from rnnbench.worker.setting_words import describe_named, from_to, nothing_more, some_of

Values = Mapping[str, Any]
"""The value of each setting, by name."""


@dataclass(frozen=True)
class ProcessSetting:
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
    return {setting.name: setting.read() for setting in PROCESS_SETTINGS if names is None or setting.name in names}


def changed_settings(before: Values, after: Values) -> dict[str, str]:
    """The settings of `before` that differ in `after`, each with a description of the change."""
    return {
        setting.name: setting.describe(before[setting.name], after[setting.name])
        for setting in PROCESS_SETTINGS
        if setting.name in before and before[setting.name] != after[setting.name]
    }


def changed_beyond_imports(before: Values, after: Values) -> dict[str, str]:
    """The settings of `changed_settings` that the import of a framework may not change.

    An import may add environment variables and paths, and may raise the recursion limit. It may not remove or lower
    them, since other trials in the process may need them.
    """
    changed = changed_settings(before, after)
    return {name: what for name, what in changed.items() if name not in _IMPORT_SETTINGS or _took(name, before, after)}


def _took(name: str, before: Values, after: Values) -> bool:
    if name == RECURSION:
        return bool(after[name] < before[name])
    return name in (ENVIRONMENT, PATH) and not set(before[name]) <= set(after[name])


def restore_settings(values: Values, names: Iterable[str]) -> None:
    """Set these settings to their earlier values. A setting that the kernel does not allow to be set is skipped."""
    by_name = {setting.name: setting for setting in PROCESS_SETTINGS}
    for name in names:
        with suppress(OSError, ValueError, locale.Error):
            by_name[name].restore(values[name])


FLOATING_POINT, REPLACED_FUNCTIONS = "the floating-point environment", "functions of Python, NumPy or the suite"
ENVIRONMENT, HANDLERS = "environment variables", "signal handlers"
WARNINGS, PATH, HOOKS = "the filters of warnings", "sys.path", "Python's hooks"
PYTHON_RANDOM, NUMPY_RANDOM = "Python's random state", "NumPy's random state"
IMPORT_HOOKS, CALLBACKS = "Python's import hooks", "the callbacks of the garbage collector"
SCHEDULING = "scheduling"
RECURSION, ERROR_STATE = "the recursion limit", "NumPy's handling of errors"
PROCESS_SETTINGS = (
    ProcessSetting(
        FLOATING_POINT,
        c_settings.read_floating_point,
        c_settings.restore_floating_point,
        c_settings.describe_floating_point,
    ),
    ProcessSetting(
        "the garbage collector",
        lambda: (gc.isenabled(), gc.get_threshold()),
        python_settings.restore_collector,
        lambda before, after: ("" if after[0] else "switched off, ") + f"thresholds {after[1]}",
    ),
    ProcessSetting(
        CALLBACKS,
        lambda: tuple(gc.callbacks),
        python_settings.restore_callbacks,
        lambda a, b: f"{len(b)} instead of {len(a)}",
    ),
    ProcessSetting("the working folder", kernel_settings.read_folder, os.chdir, from_to),
    ProcessSetting(
        "the folder of temporary files",
        python_settings.read_temporary_folder,
        python_settings.restore_temporary_folder,
        python_settings.describe_temporary_folder,
    ),
    ProcessSetting(
        ENVIRONMENT, c_settings.read_environment, c_settings.restore_environment, c_settings.describe_environment
    ),
    ProcessSetting(HANDLERS, c_settings.read_handlers, c_settings.restore_handlers, c_settings.describe_handlers),
    ProcessSetting(
        "blocked signals",
        lambda: frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        lambda blocked: signal.pthread_sigmask(signal.SIG_SETMASK, blocked),
        lambda before, after: some_of(str(number) for number in sorted(before ^ after)),
    ),
    ProcessSetting(
        "Python's clocks", replaced_clocks, lambda _: put_clocks_back(), lambda before, after: after or "put back"
    ),
    ProcessSetting("interval timers", c_settings.read_timers, c_settings.restore_timers, nothing_more),
    ProcessSetting(PYTHON_RANDOM, random.getstate, random.setstate, nothing_more),
    ProcessSetting(NUMPY_RANDOM, python_settings.read_numpy_random, python_settings.restore_numpy_random, nothing_more),
    ProcessSetting(ERROR_STATE, python_settings.read_error_state, python_settings.restore_error_state, from_to),
    ProcessSetting("NumPy's print options", np.get_printoptions, python_settings.restore_print_options, nothing_more),
    ProcessSetting(
        "the locale", lambda: locale.setlocale(locale.LC_ALL), lambda v: locale.setlocale(locale.LC_ALL, v), from_to
    ),
    ProcessSetting(RECURSION, sys.getrecursionlimit, sys.setrecursionlimit, from_to),
    ProcessSetting("the switch interval of threads", sys.getswitchinterval, sys.setswitchinterval, from_to),
    ProcessSetting(WARNINGS, python_settings.read_warnings, python_settings.restore_warnings, nothing_more),
    ProcessSetting(
        PATH,
        python_settings.read_path,
        python_settings.restore_path,
        lambda before, after: some_of(sorted({*before} ^ {*after})),
    ),
    ProcessSetting(IMPORT_HOOKS, python_settings.read_import_hooks, python_settings.restore_import_hooks, nothing_more),
    ProcessSetting(
        "the context of decimal numbers", python_settings.read_decimal, python_settings.restore_decimal, from_to
    ),
    ProcessSetting("the timeout of sockets", socket.getdefaulttimeout, socket.setdefaulttimeout, from_to),
    ProcessSetting(
        REPLACED_FUNCTIONS, FUNCTIONS.replaced, lambda _: FUNCTIONS.put_back(), python_settings.describe_functions
    ),
    ProcessSetting(HOOKS, python_settings.read_hooks, python_settings.restore_hooks, describe_named),
    ProcessSetting("Python's output", python_settings.read_streams, python_settings.restore_streams, describe_named),
    ProcessSetting(
        "limits of resources",
        kernel_settings.read_limits,
        kernel_settings.restore_limits,
        kernel_settings.describe_limits,
    ),
    ProcessSetting(
        "the umask", kernel_settings.read_umask, os.umask, lambda before, after: f"{after:03o} instead of {before:03o}"
    ),
    ProcessSetting(
        SCHEDULING,
        kernel_settings.read_scheduling,
        kernel_settings.restore_scheduling,
        kernel_settings.describe_scheduling,
    ),
)
"""Every setting that is compared."""
_IMPORT_SETTINGS = frozenset(
    {ENVIRONMENT, HANDLERS, WARNINGS, PATH, HOOKS, PYTHON_RANDOM, NUMPY_RANDOM, RECURSION, IMPORT_HOOKS, CALLBACKS}
)
"""The settings that the import of a framework may change. TensorFlow sets seven variables and filters warnings, JAX
sets two variables; both draw from the random states. torch's Inductor adds a path and raises the recursion limit."""
RESULT_SETTINGS = (FLOATING_POINT, ERROR_STATE, PYTHON_RANDOM, NUMPY_RANDOM, REPLACED_FUNCTIONS)
"""The settings whose change may make results wrong. Reading them takes 0.2 ms."""
