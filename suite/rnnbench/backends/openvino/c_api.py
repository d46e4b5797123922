"""OpenVINO's C API, through ctypes. It is in the same wheel as the Python API.

A call is the inference alone. The Python API makes a new dictionary of all outputs for each call. The C API has no
variables: `variables` reaches them.
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

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.openvino.device import BLOB, DEVICE, MODEL, config

LIBRARY = "libs/libopenvino_c.*"


class Model:
    """A compiled model, loaded from the files of a build through the C API."""

    def __init__(self, folder: Path, request: Request) -> None:
        core = _created("ov_core_create", "ov_core_free")
        for name, value in config(request).items():
            _call("ov_core_set_property", core, DEVICE.encode(), name.encode(), _text(value), None)
        self._blob: np.ndarray | None = None
        """The memory map of an exported model. It must exist as long as the model."""
        if (folder / BLOB).exists():
            self._blob = np.memmap(folder / BLOB, np.uint8, "r")
            file = self._blob.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(self._blob.size), DEVICE.encode()
            self._compiled = _created("ov_core_import_model", "ov_compiled_model_free", core, *file)
        else:
            source = str(folder / MODEL).encode(), DEVICE.encode(), ctypes.c_size_t(0)
            self._compiled = _created("ov_core_compile_model_from_file", "ov_compiled_model_free", core, *source)
        self._types: dict[str, int] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        """The shape of every input and output, by name."""
        for role in ("input", "output"):
            for index in range(value_of(ctypes.c_size_t, f"ov_compiled_model_{role}s_size", self._compiled)):
                self._describe(role, index)

    def request(self, arrays: Mapping[str, np.ndarray]) -> Handle:
        """An inference request. Its tensors are in the memory of these arrays."""
        request = _created("ov_compiled_model_create_infer_request", "ov_infer_request_free", self._compiled)
        for name, shape in self.shapes.items():
            dims = (ctypes.c_int64 * len(shape))(*shape)
            data = arrays[name].ctypes.data_as(ctypes.c_void_p)
            description = ctypes.c_int(self._types[name]), _Shape(len(shape), dims), data
            tensor = _created("ov_tensor_create_from_host_ptr", "ov_tensor_free", *description)
            _call("ov_infer_request_set_tensor", request, name.encode(), tensor)
        request.memory = (*arrays.values(), self._blob)
        return request

    def _describe(self, role: str, index: int) -> None:
        by_index = self._compiled, ctypes.c_size_t(index)
        port = _created(f"ov_compiled_model_{role}_by_index", "ov_output_const_port_free", *by_index)
        text = value_of(ctypes.c_char_p, "ov_port_get_any_name", port)
        shape = _Shape()
        _call("ov_const_port_get_shape", port, ctypes.byref(shape))
        name = text.decode()
        self.shapes[name] = tuple(shape.dims[: shape.rank])
        self._types[name] = value_of(ctypes.c_int, "ov_port_get_element_type", port)
        _call("ov_shape_free", ctypes.byref(shape))


class Handle(ctypes.c_void_p):
    """An object of the API, freed when nothing refers to it. `memory` keeps the arrays that it uses alive."""

    memory: tuple[np.ndarray | None, ...] = ()


class _Shape(ctypes.Structure):
    _fields_ = (("rank", ctypes.c_int64), ("dims", ctypes.POINTER(ctypes.c_int64)))


@cache
def _library() -> ctypes.CDLL:
    path = next(Path(ov.__file__).parent.glob(LIBRARY), None)
    if path is None:
        raise BuildError(f"the wheel of this OpenVINO has no C library ({LIBRARY})")
    library = ctypes.CDLL(str(path))
    library.ov_get_last_err_msg.restype = ctypes.c_char_p
    return library


def inference(request: Handle) -> Callable[[], object]:
    """A function that runs a request."""
    return partial(_infer(), request)


@cache
def _infer() -> Any:
    infer = _library().ov_infer_request_infer
    infer.argtypes, infer.restype = [ctypes.c_void_p], _checked
    return infer


def _checked(status: int) -> None:
    if status:
        raise RuntimeError((_library().ov_get_last_err_msg() or b"").decode() or f"status {status}")


def _call(function: str, *arguments: object) -> None:
    _checked(getattr(_library(), function)(*arguments))


def value_of(type_: Any, function: str, *arguments: object) -> Any:
    """The value that a function writes through its last argument, a pointer to this type."""
    value = type_()
    _call(function, *arguments, ctypes.byref(value))
    return value.value


def _created(function: str, free: str, *arguments: object) -> Handle:
    handle = Handle()
    _call(function, *arguments, ctypes.byref(handle))
    weakref.finalize(handle, getattr(_library(), free), ctypes.c_void_p(handle.value)).atexit = False
    return handle


def _text(value: object) -> bytes:
    return {True: b"YES", False: b"NO"}[value] if isinstance(value, bool) else str(value).encode()
