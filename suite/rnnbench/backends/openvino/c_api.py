"""OpenVINO's C API, of the same wheel as its Python API, through ctypes.

An inference is the inference alone: Python's answers each with a dictionary of all outputs, built anew. It has no
variables, so a program that keeps its state inside is called through Python's.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from rnnbench.backends.openvino.device import BLOB, DEVICE, MODEL, config

LIBRARY = "libs/libopenvino_c.*"


class Model:
    """A compiled model from what a build kept."""

    def __init__(self, folder: Path, threads: int) -> None:
        core = _made("ov_core_create", "ov_core_free")
        for name, value in config(threads).items():
            _do("ov_core_set_property", core, DEVICE.encode(), name.encode(), _text(value), None)
        self._blob: np.ndarray | None = None
        """An exported model is read where it is mapped."""
        if (folder / BLOB).exists():
            self._blob = np.memmap(folder / BLOB, np.uint8, "r")
            file = self._blob.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(self._blob.size), DEVICE.encode()
            self._compiled = _made("ov_core_import_model", "ov_compiled_model_free", core, *file)
        else:
            source = str(folder / MODEL).encode(), DEVICE.encode(), ctypes.c_size_t(0)
            self._compiled = _made("ov_core_compile_model_from_file", "ov_compiled_model_free", core, *source)
        self._types: dict[str, int] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        """Of every input and output, by name."""
        for way in ("input", "output"):
            for index in range(_found(ctypes.c_size_t, f"ov_compiled_model_{way}s_size", self._compiled)):
                self._describe(way, index)

    def request(self, arrays: Mapping[str, np.ndarray]) -> Callable[[], object]:
        """An inference that reads from and writes to these arrays, in whose memory its tensors are."""
        request = _made("ov_compiled_model_create_infer_request", "ov_infer_request_free", self._compiled)
        for name, shape in self.shapes.items():
            dims = (ctypes.c_int64 * len(shape))(*shape)
            data = arrays[name].ctypes.data_as(ctypes.c_void_p)
            own = ctypes.c_int(self._types[name]), _Shape(len(shape), dims), data
            tensor = _made("ov_tensor_create_from_host_ptr", "ov_tensor_free", *own)
            _do("ov_infer_request_set_tensor", request, name.encode(), tensor)
        request.memory = (*arrays.values(), self._blob)
        return partial(_infer(), request)

    def _describe(self, way: str, index: int) -> None:
        by_index = self._compiled, ctypes.c_size_t(index)
        port = _made(f"ov_compiled_model_{way}_by_index", "ov_output_const_port_free", *by_index)
        text = _found(ctypes.c_char_p, "ov_port_get_any_name", port)
        shape = _Shape()
        _do("ov_const_port_get_shape", port, ctypes.byref(shape))
        name = text.decode()
        self.shapes[name] = tuple(shape.dims[: shape.rank])
        self._types[name] = _found(ctypes.c_int, "ov_port_get_element_type", port)
        _do("ov_shape_free", ctypes.byref(shape))


class _Handle(ctypes.c_void_p):
    """What the API made, and frees when nothing refers to it any more; with the memory that it works in."""

    memory: tuple[np.ndarray | None, ...] = ()


class _Shape(ctypes.Structure):
    _fields_ = (("rank", ctypes.c_int64), ("dims", ctypes.POINTER(ctypes.c_int64)))


@cache
def _library() -> ctypes.CDLL:
    (path,) = Path(ov.__file__).parent.glob(LIBRARY)
    library = ctypes.CDLL(str(path))
    library.ov_get_last_err_msg.restype = ctypes.c_char_p
    return library


@cache
def _infer() -> Any:
    infer = _library().ov_infer_request_infer
    infer.argtypes, infer.restype = [ctypes.c_void_p], _checked
    return infer


def _checked(status: int) -> None:
    if status:
        raise RuntimeError((_library().ov_get_last_err_msg() or b"").decode() or f"status {status}")


def _do(function: str, *arguments: object) -> None:
    _checked(getattr(_library(), function)(*arguments))


def _found(kind: Any, function: str, *arguments: object) -> Any:
    """What a function writes through its last argument, a pointer to this kind."""
    value = kind()
    _do(function, *arguments, ctypes.byref(value))
    return value.value


def _made(function: str, free: str, *arguments: object) -> _Handle:
    handle = _Handle()
    _do(function, *arguments, ctypes.byref(handle))
    weakref.finalize(handle, getattr(_library(), free), ctypes.c_void_p(handle.value)).atexit = False
    return handle


def _text(value: object) -> bytes:
    return {True: b"YES", False: b"NO"}[value] if isinstance(value, bool) else str(value).encode()
