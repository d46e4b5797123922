"""Settings that Python and NumPy keep for a process: functions that read them and put them back."""

from __future__ import annotations

import decimal
import gc
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rnnbench.worker.setting_words import from_to, some_of


def restore_collector(state: tuple[bool, tuple[int, int, int]]) -> None:
    enabled, thresholds = state
    gc.set_threshold(*thresholds)
    if enabled:
        gc.enable()
    else:
        gc.disable()


def read_numpy_random() -> tuple[Any, ...]:
    name, keys, *rest = np.random.get_state(legacy=True)
    return name, np.asarray(keys).tobytes(), *rest


def restore_numpy_random(state: tuple[Any, ...]) -> None:
    name, keys, *rest = state
    np.random.set_state((name, np.frombuffer(keys, np.uint32), *rest))


def read_error_state() -> tuple[Any, ...]:
    return np.geterr(), np.geterrcall(), np.getbufsize()


def restore_error_state(state: tuple[Any, ...]) -> None:
    errors, call, size = state
    np.seterr(**errors)
    np.seterrcall(call)
    np.setbufsize(size)


def restore_print_options(options: dict[str, Any]) -> None:
    np.set_printoptions(**{name: value for name, value in options.items() if name != "override_repr"})


def read_warnings() -> tuple[Any, ...]:
    return tuple(warnings.filters), warnings.showwarning


def restore_warnings(state: tuple[Any, ...]) -> None:
    warnings.filters[:], warnings.showwarning = list(state[0]), state[1]  # type: ignore[index]


def read_path() -> tuple[str, ...]:
    return tuple(sys.path)


def restore_path(path: tuple[str, ...]) -> None:
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


def read_hooks() -> dict[str, Any]:
    return {name: read() for name, (read, _) in _HOOKS.items()}


def restore_hooks(hooks: dict[str, Any]) -> None:
    for name, (_, restore) in _HOOKS.items():
        restore(hooks[name])


def read_streams() -> dict[str, Any]:
    return {"sys.stdout": sys.stdout, "sys.stderr": sys.stderr}


def restore_streams(streams: dict[str, Any]) -> None:
    sys.stdout, sys.stderr = streams["sys.stdout"], streams["sys.stderr"]


def read_temporary_folder() -> tuple[str, bool]:
    """The folder for temporary files, and whether it exists. Python looks for it once per process."""
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError:
        return "", False
    return folder, os.path.isdir(folder)


def restore_temporary_folder(value: tuple[str, bool]) -> None:
    folder, was_there = value
    tempfile.tempdir = folder or None
    if was_there:
        os.makedirs(folder, mode=0o700, exist_ok=True)


def describe_temporary_folder(before: tuple[str, bool], after: tuple[str, bool]) -> str:
    return "it was removed" if before[0] == after[0] else from_to(before[0], after[0])


def describe_functions(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    return some_of(name for name in after if name not in before) or "put back"


def read_import_hooks() -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return tuple(sys.meta_path), tuple(sys.path_hooks)


def restore_import_hooks(hooks: tuple[tuple[Any, ...], tuple[Any, ...]]) -> None:
    sys.meta_path[:], sys.path_hooks[:] = hooks


def read_decimal() -> tuple[int, str]:
    context = decimal.getcontext()
    return context.prec, context.rounding


def restore_decimal(values: tuple[int, str]) -> None:
    context = decimal.getcontext()
    context.prec, context.rounding = values


def restore_callbacks(callbacks: tuple[Any, ...]) -> None:
    gc.callbacks[:] = callbacks
