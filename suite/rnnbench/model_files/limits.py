"""What a model file may have. A file beyond these limits is refused before memory is allocated for it."""

from __future__ import annotations

from rnnbench.model_files.errors import ModelFileError

FILE_BYTES = 1 << 30
"""Bytes of the file. Protobuf itself ends at 2 GiB; larger networks keep their weights in files beside it."""
WEIGHT_BYTES = 2 << 30
"""Bytes of all tensors, those in files beside it included. The largest network known here, RNN-T, has 180 MB."""
FIELDS = 1_000_000
"""Fields of all its messages. Each takes 100 to 200 bytes once it is parsed, and may take 2 in the file."""
DEPTH = 60
"""Messages inside each other. A graph in a graph takes three, so this is about twenty graphs deep."""
TEXT_BYTES = 1 << 20
"""Bytes of one text: a name, a comment, a property."""
NO_LINKS = "is a symbolic link, and those are not followed; copy the model with what its links name (cp -rL)"
"""Of files beside a model: a link may lead to any file of the machine. Caches of models have links."""
NODES = 100_000
"""Nodes of all graphs, after functions are put in place of their calls. 1,000 unrolled steps of an LSTM are 20,000."""
CALLS = 50
"""Functions that call each other, one inside the other."""
NAME_CHARACTERS = 200
"""Characters of the name of an input or output, which tables, case files and records show."""
ARRAYS = 256
"""Inputs and outputs together."""
ELEMENTS = 1 << 28
"""Elements of one array that a file declares without its data: an input, an output, a value between operators."""
AXES = 32
"""Axes of an input or output. NumPy has at most 64."""
PASSES = 100_000
"""Passes of a file's loops in one call of its oracle."""
GIVEN_BYTES = 256 << 20
"""Bytes of all arrays of one `.npz` with inputs or expected outputs, unpacked."""
LARGEST_INTEGER = 1 << 24
"""The largest integer of an input: the suite has all inputs in float32, which holds each integer up to this one."""
JSON_BYTES = 32 << 20
"""Bytes of the graph of a `.pt2` file or the layers of a `.keras` file, as text. Parsed it takes 10 to 20 times as
much."""
EXPANDED_BYTES = 64 << 20
"""Bytes of the weights of a `.pt2` file beyond what it stores: an expanded weight repeats elements."""


def require_operations(count: int) -> None:
    """Raises ModelFileError where a call runs too many operations: a few functions may call each other very often."""
    if count > NODES:
        raise ModelFileError(f"a call of it runs more than {NODES:,} operations; that many are not read")
