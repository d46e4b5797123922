"""XLA's compiled code: it is passed between processes through the cache, and read.

XLA (TensorFlow 2.21) writes compiled code to a folder, and finds it there by the function's name and a fingerprint of
its HLO. A process has one such folder, so files are copied between it and the cache. The names are canonical.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rnnbench.backends.base import BuildError
from rnnbench.backends.shared import describe_lowered
from rnnbench.backends.tensorflow.canonical import Library
from rnnbench.backends.tensorflow.lowered import tags

VARIABLE = "TF_XLA_FLAGS"
_NO_WORK = {"bitcast", "broadcast", "constant", "get-tuple-element", "parameter", "tuple"}
_HLO_MODULE, _EXECUTABLE = 2, 3
"""Field numbers of XlaSerializedCacheEntry. The wheel has no class for it. The executable has the optimised module."""
_MESSAGES = 4
"""The most messages around the module in which it is searched for."""
_OPTIMISED = "optimized_hlo_serialized"
"""TensorFlow's name of the HLO that XLA's optimiser leaves, as a message."""


@cache
def process_folder() -> Path:
    """The folder that XLA reads and writes in this process. Must be called before TensorFlow's first operation."""
    folder = tempfile.TemporaryDirectory(prefix="rnnbench-xla-")
    _FOLDERS.append(folder)
    flag = f"--tf_xla_persistent_cache_directory={folder.name}"
    os.environ[VARIABLE] = " ".join(filter(None, [os.environ.get(VARIABLE), flag]))
    return Path(folder.name)


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
"""The folder is removed when the process ends."""


def rename(function: Any, library: Library) -> None:
    """Give a loaded ConcreteFunction its canonical name, which is the same in every process."""
    from tensorflow.python.eager import context
    from tensorflow.python.eager.polymorphic_function import atomic_function

    eager = context.context()
    first, *called = library.functions
    for computation in called:
        if not eager.has_function(computation.signature.name):
            eager.add_function_def(computation)
    name = first.signature.name
    if eager.has_function(name):
        function._inference_function = atomic_function.AtomicFunction(name, eager, function.function_type)
    else:
        function._inference_function = atomic_function.from_function_def(first, function.function_type)


def install_compiled(folder: Path) -> None:
    """Copy the code that an earlier process compiled to the folder where XLA searches for it."""
    for path in folder.glob("*.pb"):
        shutil.copy(path, process_folder())


def store_compiled(name: str, folder: Path) -> Path:
    """Copy the code that XLA compiled for the function of that name to `folder`. Raises BuildError if there is none."""
    module = f"{name}[".encode()
    for path in process_folder().glob("*.pb"):
        (hlo,) = _field(path.read_bytes(), _HLO_MODULE)
        if _field(hlo, 1)[0].startswith(module):
            folder.mkdir(exist_ok=True)
            return Path(shutil.copy(path, folder))
    raise BuildError(
        f"XLA wrote no compiled code for {name}. It reads {VARIABLE} at TensorFlow's first operation: build in a "
        "process in which TensorFlow has run nothing yet. If it had run nothing, it keeps no code for this device"
    )


class Compiled(NamedTuple):
    """What XLA made of a function."""

    executable: bytes
    """Where it was compiled again: its optimised HLO."""
    operations: dict[str, int]
    """Counts of its optimised HLO."""
    lowered: str


def compiled(entry: Path, marks: str, time: str) -> Compiled:
    """Read a cache entry of XLA's. Raises BuildError if it has no HLO where one of 2.21 has it."""
    from google.protobuf.message import DecodeError

    try:
        (executable,) = _field(entry.read_bytes(), _EXECUTABLE)
        module = _optimised(executable)
    except (ValueError, TypeError, DecodeError) as error:
        raise BuildError(f"the code that XLA wrote has no HLO where TensorFlow 2.21 puts it: {error}") from error
    return _read(module, executable, marks, time)


def compiled_again(function: Any, marks: str, time: str) -> Compiled:
    """As `compiled`, of a ConcreteFunction that XLA compiles once more: it may keep code for a GPU in another form.

    Raises BuildError.
    """
    import tensorflow as tf
    from google.protobuf.message import DecodeError
    from tensorflow.compiler.xla.service.hlo_pb2 import HloModuleProto
    from tensorflow.python.eager.polymorphic_function import compiler_ir

    given = function.inputs[: len(function.inputs) - len(function.captured_inputs)]
    specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in given]
    try:
        written = compiler_ir.from_concrete_function(function, specs)(stage=_OPTIMISED)
        return _read(HloModuleProto.FromString(written), written, marks, time)
    except (ValueError, DecodeError, tf.errors.OpError) as error:
        raise BuildError(f"TensorFlow does not tell the HLO that XLA compiled: {error}") from error


def _read(module: Any, executable: bytes, marks: str, time: str) -> Compiled:
    counts = Counter(
        instruction.opcode for computation in module.computations for instruction in computation.instructions
    )
    return Compiled(executable, dict(sorted(counts.items())), lowered(module, marks, time))


def _optimised(executable: bytes) -> Any:
    """The optimised HLO module of an executable, which is the first field of messages within each other.

    PJRT, by which TensorFlow compiles for a GPU, has one message more around it than the CPU's compiler. Raises
    ValueError or DecodeError.
    """
    from google.protobuf.message import DecodeError
    from tensorflow.compiler.xla.service.hlo_pb2 import HloModuleProto

    data = executable
    for _ in range(_MESSAGES):
        (data,) = _field(data, 1)
        with suppress(DecodeError):
            module = HloModuleProto.FromString(data)
            if module.entry_computation_id in {computation.id for computation in module.computations}:
                return module
    raise ValueError(f"none of its {_MESSAGES} outermost messages is an HLO module")


def lowered(module: Any, marks: str, time: str) -> str:
    """How time was lowered: the copies of bodies in each `while` of an optimised HLO module, and outside."""
    computations = {computation.id: computation for computation in module.computations}
    bodies = [
        instruction.called_computation_ids[0]
        for computation in module.computations
        for instruction in computation.instructions
        if instruction.opcode == "while"
    ]
    loops = [_tags(_reached(computations, body, through_loops=True), marks) for body in bodies]
    straight = _tags(_reached(computations, module.entry_computation_id, through_loops=False), marks)
    return describe_lowered([len(copies) for copies in loops if copies], len(straight), time=time)


def _reached(computations: dict[int, Any], start: int, through_loops: bool) -> Iterator[Any]:
    """A computation and all computations that it calls."""
    waiting, seen = [start], set[int]()
    while waiting:
        number = waiting.pop()
        if number not in seen:
            seen.add(number)
            yield computations[number]
            for instruction in computations[number].instructions:
                if through_loops or instruction.opcode != "while":
                    waiting.extend(instruction.called_computation_ids)


def _tags(computations: Iterable[Any], marks: str) -> set[str]:
    working = (
        instruction
        for computation in computations
        for instruction in computation.instructions
        if instruction.opcode not in _NO_WORK
    )
    return set().union(*(tags(instruction.metadata.op_name, marks) for instruction in working))


def _field(message: bytes, number: int) -> list[bytes]:
    """A field of a serialised message, by its number."""
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.unknown_fields import UnknownFieldSet

    return [field.data for field in UnknownFieldSet(Empty.FromString(message)) if field.field_number == number]
