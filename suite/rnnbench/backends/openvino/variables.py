"""The variables of an inference request: Python's, and those of a request of the C API.

The C API (2026.4) has no variables, and Python's `infer` makes a dictionary in each call, which takes a fifth of a
small step. So requests with variables are made and run by the C API, and their variables are reached through the
functions of the C++ API, by the names that they have in the library. A handle of the C API is a struct whose first
word is a pointer to the C++ object. Source: `src/bindings/c/src/common.h` of OpenVINO.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from rnnbench.backends.base import Request
from rnnbench.backends.openvino.c_api import Handle, value_of

LIBRARY = "libs/libopenvino.so*"
QUERY_STATE = "_ZN2ov12InferRequest11query_stateEv"
RESET_STATE = "_ZN2ov12InferRequest11reset_stateEv"
GET_NAME = "_ZNK2ov13VariableState8get_nameB5cxx11Ev"
GET_STATE = "_ZNK2ov13VariableState9get_stateEv"
SET_STATE = "_ZN2ov13VariableState9set_stateERKNS_6TensorE"
END_VARIABLE = "_ZN2ov13VariableStateD1Ev"
END_TENSOR = "_ZN2ov6TensorD1Ev"
FREE = "_ZdlPv"
"""Methods of C++ as the Itanium ABI names them, and `operator delete`."""


class _Vector(ctypes.Structure):
    """A `std::vector`."""

    _fields_ = (("begin", ctypes.c_void_p), ("end", ctypes.c_void_p), ("capacity", ctypes.c_void_p))


class _String(ctypes.Structure):
    """A `std::string` of libstdc++: up to 15 characters are in the object itself."""

    _fields_ = (("data", ctypes.c_void_p), ("length", ctypes.c_size_t), ("here", ctypes.c_char * 16))


class _Shared(ctypes.Structure):
    """An `ov::Tensor` or `ov::VariableState`: two `std::shared_ptr`, of the object and of its library."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("object", "count", "library", "library_count"))


RESULTS: dict[str, Any] = {QUERY_STATE: _Vector, GET_NAME: _String, GET_STATE: _Shared}
"""What the functions return."""
FUNCTIONS = (QUERY_STATE, RESET_STATE, GET_NAME, GET_STATE, SET_STATE, END_VARIABLE, END_TENSOR, FREE)


class PythonVariables:
    """The variables of a request of the Python API."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self._named = {variable.name: variable for variable in request.query_state()}
        self.names = tuple(self._named)

    def reset(self) -> None:
        self._request.reset_state()

    def read(self, name: str) -> np.ndarray:
        """A copy, in the variable's shape."""
        value: np.ndarray = self._named[name].state.data.copy()
        return value

    def write(self, name: str, value: np.ndarray) -> None:
        """The device has whole numbers in int32, and refuses to set a variable from a tensor of int64 (2026.4)."""
        taken = value.astype(np.int32) if value.dtype.kind in "iu" else value
        variable = self._named[name]
        variable.state = ov.Tensor(taken.reshape(tuple(variable.state.shape)))


class Variables:
    """The variables of a request of the C API, all in float32."""

    def __init__(self, request: Handle) -> None:
        self._request = request
        self._object = _object_of(request)
        found = _call(QUERY_STATE, self._object)
        places = range(found.begin or 0, found.end or 0, ctypes.sizeof(_Shared))
        weakref.finalize(self, _end, found.begin, places).atexit = False
        self._places = {_name(place): place for place in places}
        self.names = tuple(self._places)

    def reset(self) -> None:
        _call(RESET_STATE, self._object)

    def read(self, name: str) -> np.ndarray:
        """A copy, flat."""
        with self._state(name) as (_, memory):
            return memory.copy()

    def write(self, name: str, value: np.ndarray) -> None:
        """The tensor of the variable gets the value, and is then set: so its type and shape are the variable's."""
        with self._state(name) as (tensor, memory):
            memory[:] = value.ravel()
            _call(SET_STATE, self._places[name], ctypes.addressof(tensor))

    @contextmanager
    def _state(self, name: str) -> Iterator[tuple[_Shared, np.ndarray]]:
        """The tensor of a variable, and its memory."""
        tensor = _call(GET_STATE, self._places[name])
        try:
            handle = (ctypes.c_void_p * 2)(ctypes.addressof(tensor), None)
            size = value_of(ctypes.c_size_t, "ov_tensor_get_size", handle)
            data = value_of(ctypes.c_void_p, "ov_tensor_data", handle)
            yield tensor, np.ctypeslib.as_array((ctypes.c_float * size).from_address(data))
        finally:
            _call(END_TENSOR, ctypes.addressof(tensor))


def called_by_python(request: Request) -> bool:
    """Whether Python's API makes and runs the inferences of a program: one with variables that are out of reach here,
    or that have other types than float32, as those of a file may."""
    if request.strategy.state != "stateful":
        return False
    model, dtype = request.model, request.precision.state
    types = {model.state_dtype(name, dtype) for name in model.state_shapes(request.batch)}
    return types != {"float32"} or not _reachable()


def _reachable() -> bool:
    """Whether the library has the functions under these names. Wheels for Windows, and those built with gcc's older
    strings, have others."""
    library = _library()
    return library is not None and all(hasattr(library, name) for name in FUNCTIONS)


@cache
def _library() -> ctypes.CDLL | None:
    path = next(Path(ov.__file__).parent.glob(LIBRARY), None)
    return None if path is None else ctypes.CDLL(str(path))


def _call(name: str, *addresses: int) -> Any:
    function = getattr(_library(), name)
    function.restype = RESULTS.get(name)
    return function(*map(ctypes.c_void_p, addresses))


def _object_of(handle: Handle) -> int:
    """The C++ object of a handle of the C API."""
    assert handle.value is not None, "a handle is made before it is used"
    address = ctypes.c_void_p.from_address(handle.value).value
    assert address is not None, "a handle has an object"
    return address


def _name(variable: int) -> str:
    """The name of a variable. A longer string than fits in the object has memory of its own."""
    string = _call(GET_NAME, variable)
    if string.length < ctypes.sizeof(ctypes.c_char * 16):
        return bytes(string)[_String.here.offset :][: string.length].decode()
    name = ctypes.string_at(string.data, string.length).decode()
    _call(FREE, string.data)
    return name


def _end(begin: int | None, places: range) -> None:
    for place in places:
        _call(END_VARIABLE, place)
    if begin is not None:
        _call(FREE, begin)
