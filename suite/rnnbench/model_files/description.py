"""What a model file has: its arrays, the pairs of them that carry a state, and what only its user knows."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.rnn import Activations

Role = Literal["input", "output", "state_in", "state_out", "constant"]
Dim = int | str | None
"""A size, the name of a size that the caller chooses, or None for one without a name."""
Constant = bool | int | float
"""The value of an input that is the same in every call."""
FoundBy = Literal["traced", "tree", "shape", "name", "given"]
"""How a pair was found. `traced`: the input reaches the initial state of a recurrent operator or loop whose final state
reaches the output. `tree`: both are at the same place of an argument and a result that are the same tree of arrays.
`shape`: no other input and output have this shape and type. `name`: such as h0 and hn. `given`: the caller said so."""


@dataclass(frozen=True)
class ArrayDescription:
    """An input or output of the graph."""

    name: str
    role: Role
    shape: tuple[Dim, ...] | None
    """None where the file does not say how many axes there are."""
    dtype: str
    """NumPy's name of the type of an element, or ONNX's where NumPy has none."""
    time: int | None = None
    """The axis of time, or None: there is none, or it cannot be told."""
    batch: int | None = None
    has_start: bool = False
    """Whether the file has a value for it before the first call, of a state, and this is not zero."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no elements: it is no state, and nothing that is new in a call."""
        return 0 in (self.shape or ())

    @property
    def shown_shape(self) -> str:
        """Its shape, as a message has it: `[2, batch, ?]`."""
        if self.shape is None:
            return "of an unknown shape"
        return f"[{', '.join('?' if dim is None else str(dim) for dim in self.shape)}]"


@dataclass(frozen=True)
class StatePair:
    """The output `after` of one call is the input `before` of the next."""

    before: str
    after: str
    found: FoundBy


@dataclass(frozen=True)
class Question:
    """What the file does not say."""

    array: str
    key: Literal["state", "constants", "time", "batch"]
    """Key of the case's `model` that answers it."""
    text: str
    is_guess: bool = False
    """Whether shapes alone make it a question. Who says which inputs are states has answered it."""

    @property
    def answer(self) -> str:
        """How `--set` answers it: a word in capitals stands for what only its user knows."""
        match self.key:
            case "state":
                return f"state.{self.array}=OUTPUT"
            case "constants":
                return f"constants.{self.array}=VALUE"
            case "time" | "batch":
                return f"{self.key}=AXIS"

    @property
    def option(self) -> str:
        """`answer` as a shell takes it."""
        return option(self.answer)


def option(answer: str) -> str:
    """An answer as a shell takes it: names of arrays may have spaces, quotes and brackets."""
    return f"--set {shlex.quote(answer)}"


@dataclass(frozen=True)
class Feature:
    """What compilers are known to get wrong, as far as the file alone tells it; see `traits`."""

    name: str
    arrays: tuple[str, ...] = ()
    """Inputs or outputs that have it, or are computed with it."""


@dataclass(frozen=True)
class FileDescription:
    """What is in a model file."""

    file: str
    format: str
    opsets: dict[str, int]
    """Version of each set of operators by domain; '' is ONNX's own."""
    producer: str
    nodes: int
    operators: dict[str, int]
    """How many there are of each, inner graphs included, the most frequent first."""
    weight_bytes: int
    external: tuple[str, ...]
    """Names of the files beside it that have weights."""
    arrays: tuple[ArrayDescription, ...]
    state: tuple[StatePair, ...]
    questions: tuple[Question, ...]
    notes: tuple[str, ...]
    """What its user should know, such as a state that no call gets back."""
    activations: Activations = ""
    """How it quantises what its operators give and take."""
    features: tuple[Feature, ...] = ()
    depends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The inputs that each output is computed from. Empty where the format does not tell."""

    def of_role(self, *roles: Role) -> tuple[ArrayDescription, ...]:
        return tuple(array for array in self.arrays if array.role in roles)


def answer_in_case(key: str, name: str, value: str) -> str:
    """An answer as the section `model` of a case has it, and as `new` and `inspect` take it."""
    return f"{key}: {{{name}: {value}}} in a case, or {option(f'{key}.{name}={value}')} for `new` and `inspect`"


def questions_of_axes(streams: Sequence[ArrayDescription]) -> Iterator[Question]:
    """What is not known of the axes of the inputs that are new in each call."""
    if not streams:
        return
    if len({(array.time, array.batch) for array in streams}) > 1:
        names = ", ".join(array.name for array in streams)
        text = (
            f"the axes of time and batch of {names} differ. Which are they? An input that is the same in every call, "
            "such as lengths or weights, is a constant (--set constants.NAME=VALUE)."
        )
        yield Question(streams[0].name, "time", text)
        return
    first = streams[0]
    open_axes = [axis for axis, size in enumerate(first.shape or ()) if not isinstance(size, int)]
    if first.time is None and any(axis != first.batch for axis in open_axes):
        yield Question(first.name, "time", "which axis is time? Null means that one call is one step.")
    if first.batch is None and any(axis != first.time for axis in open_axes):
        yield Question(first.name, "batch", "which axis is the batch? Null means that there is none.")


def same_elements(one: ArrayDescription, other: ArrayDescription) -> bool:
    """Whether two arrays may have the same elements in the same order: axes of one element do not matter.

    Nothing that is known of the two differs. Sizes that the caller chooses may be any.
    """
    if one.shape is None or other.shape is None:
        return True
    longer = [[dim for dim in shape if dim != 1] for shape in (one.shape, other.shape)]
    same_rank = len(one.shape) == len(other.shape)
    pairs = list(zip(one.shape, other.shape, strict=True) if same_rank else zip(*longer, strict=False))
    if not same_rank and len(longer[0]) != len(longer[1]):
        return False
    fixed = [(isinstance(a, int), isinstance(b, int)) for a, b in pairs if a != b]
    # A fixed size where the other has an open one, and the other way round: two axes have changed places.
    return (True, True) not in fixed and not {(True, False), (False, True)} <= {*fixed}


def sized(description: FileDescription, sizes: Mapping[str, int]) -> FileDescription:
    """The file with sizes that it leaves open: by name, or as `array.axis`. Raises ModelFileError for others."""
    known: set[str] = set()

    def size(array: ArrayDescription, axis: int, dim: Dim) -> Dim:
        names = {f"{array.name}.{axis}", *([dim] if isinstance(dim, str) else [])}
        known.update(() if isinstance(dim, int) else names)
        return next((sizes[name] for name in names if name in sizes), dim) if not isinstance(dim, int) else dim

    arrays = tuple(
        array
        if array.shape is None
        else replace(array, shape=tuple(size(array, axis, dim) for axis, dim in enumerate(array.shape)))
        for array in description.arrays
    )
    if unknown := sorted(sizes.keys() - known):
        shown = ", ".join(sorted(known)) or "none"
        told = f"it leaves no size {unknown[0]} open; those that it does: {shown}"
        raise ModelFileError(told, "sizes", unknown[0], is_name=True)
    return replace(description, arrays=arrays)


def require_names(declared: Iterable[str], inputs: Iterable[str]) -> None:
    """Raises ValueError if these are not the inputs that the file declares."""
    expected, got = list(declared), list(inputs)
    if sorted(expected) != sorted(got):
        raise ValueError(f"expected the inputs {expected}, got {got}")


def require_shape(name: str, declared: Sequence[Dim], array: np.ndarray) -> None:
    """Raises ValueError if the array does not have this shape. A size that is no number may be any."""
    fits = len(declared) == array.ndim and all(
        size == actual or not isinstance(size, int) for size, actual in zip(declared, array.shape, strict=True)
    )
    if not fits:
        shown = [size if isinstance(size, int) else "any" for size in declared]
        raise ValueError(f"{name}: expected the shape {shown}, got {list(array.shape)}")
