"""The interface of networks: shapes, numbers, layers, cost, and smaller versions.

A network reads a stream x [steps, batch, input] and returns y [steps, batch, width], step by step from a state. It is a
graph of layers. Each layer reads x or earlier layers, and may have a state. A family of networks is one class in one
file; code outside of it does not depend on the family.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from rnnbench.rnn.int8 import INT8_FORMS, Activations
from rnnbench.rnn.times import runs_together

if TYPE_CHECKING:
    import numpy as np

    from rnnbench.rnn.arithmetic import Arithmetic
    from rnnbench.rnn.primitives import LayerBody, Primitives, V
    from rnnbench.rnn.reference import Trajectory
    from rnnbench.rnn.weights import Weights

N = TypeVar("N", bound="Network")

Size = Annotated[int, Field(ge=1, le=65_536)]
STATE_WORK = 50
"""Multiplications by a weight that take as long as a reference step's work on one value of a state, which is mostly
drawing random roundings."""
X = -1
"""The index of the network's x in `LayerSpec.sources`."""


@dataclass(frozen=True)
class LayerSpec:
    """One layer in one direction. Its equations are its body's (`Network.body`).

    The layer's input is its sources side by side. It is projected, for all steps at once if a program wants, and then
    the layer advances step by step. A layer without a state is only a projection.
    """

    sources: tuple[int, ...]
    """The layers that it reads, by their index in the graph; X is the network's x."""
    projected: int
    """Size of its projection at each step."""
    width: int
    """Size of its y at each step."""
    states: tuple[tuple[str, int], ...] = ()
    """Its state: names of the network's state arrays, each with this layer's row [batch, size]."""
    backward: bool = False
    hoistable_weights: int = 0
    """Elements of the weights that its projection reads. One reading may serve many steps."""
    step_weights: int = 0
    """Elements of the weights that each step reads."""
    operations: int = 0
    """Arithmetic operations of one step for a batch of 1: a multiply-add is two, an activation one."""
    linear: bool = False
    """Whether its state is linear in itself, so that its body can compute many steps at once (`linear.LinearBody`)."""
    has_operator: bool = False
    """Whether libraries have an operator for all of its steps (`linear.OperatorBody`)."""


class WeightSpec(NamedTuple):
    """A weight array, drawn uniform in ±bound."""

    name: str
    shape: tuple[int, ...]
    bound: float


class Network(BaseModel, ABC):
    """A recurrent network. Its fields are its sizes and options, which a case file gives under `model:`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    network: ClassVar[str]
    """The name of the family in a case file (`model.network`)."""
    step_seconds: ClassVar[float | None] = None
    """Seconds of the signal per step in the published network; None if steps have no rate."""
    keys_in_case: ClassVar[bool] = True
    """Whether its fields are keys of `model:`."""

    if TYPE_CHECKING:

        @property
        def input(self) -> int:
            """Size of x at each step: a field of each family."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Size of y at each step."""

    @property
    @abstractmethod
    def label(self) -> str:
        """A short name with its size, for ids of trials: `h128`, `rnnoise`."""

    @property
    def params(self) -> dict[str, object]:
        """Everything that decides what is computed, as the keys of `model:` in a case file."""
        return self.case_keys

    @property
    def case_keys(self) -> dict[str, Any]:
        """Every key of `model:` with its value, for a command that reproduces a trial."""
        return {"network": self.network, **self.model_dump()}

    @property
    def file_format(self) -> str:
        """The format of the user's model file; empty if the network is not from a file."""
        return ""

    @property
    def traits(self) -> Mapping[str, frozenset[str]]:
        """Contents of a user's file that compilers are known to get wrong, each with the arrays that may be wrong."""
        return {}

    @property
    def parts_of_y(self) -> Mapping[str, slice]:
        """The columns of y for each output, by name."""
        return {"y": slice(None)}

    def weights_not_finite(self) -> str:
        """The weights of a user's file that have NaN or infinities, in words; empty if there are none."""
        return ""

    def refusal(self, *, time: str, state: str, chunk: int, batch: int, dtype: str) -> tuple[str, str] | None:
        """The key that has to change and a message, if no backend could run the network so; otherwise None."""
        if time == "given":
            return "time", "given is for a model file, which brings its own program"
        if dtype in INT8_FORMS and not self.has_int8:
            return "dtype", f"{dtype} is for stacks of lstm, gru and rnn, whose products have one operand of weights"
        return None

    def lacks_time(self, time: str) -> str:
        """Why a strategy's time does not apply to the network; empty if it does."""
        if not runs_together(time) or all(layer.linear or not layer.states for layer in self.graph):
            return ""
        return (
            f"{time} needs states that are linear in themselves, and the gates of {self.label} read its state: its "
            "steps can only run one after the other; ask for looped or unrolled."
        )

    @property
    def has_int8(self) -> bool:
        """Whether its weights may be in int8."""
        return False

    @property
    def has_operators(self) -> bool:
        """Whether libraries have an operator for each of its layers with a state."""
        return all(layer.has_operator for layer in self.graph if layer.states)

    @property
    def reference_work(self) -> int:
        """The work of a reference step for one row, in multiplications by a weight."""
        values = sum(prod(shape) for shape in self.state_shapes(1).values())
        return max(self.weight_count + STATE_WORK * values, 1)

    @property
    def longest_reference(self) -> int:
        """The most steps that the reference of the ring is computed for, if it does not repeat itself earlier."""
        return 4096

    @property
    def can_stream(self) -> bool:
        """Whether it can be fed step by step. A direction that runs backwards needs the whole sequence."""
        return True

    @property
    def other_activations(self) -> str:
        """A description of activations that few libraries' operators have; empty if they are the standard ones."""
        return ""

    def state_dtype(self, name: str, dtype: str) -> str:
        """The dtype of a state array if x and y are of `dtype`. A dtype that is not in `DTYPES` has whole numbers."""
        return dtype

    def arithmetic_of(self, dtype: str) -> str:
        """The dtype of the computation if x and y are of `dtype`. Roundings are measured in it."""
        return dtype

    @property
    def activations(self) -> Activations:
        """How its own arrays are quantised, for any dtype of x and y. Only a model file has such arrays."""
        return ""

    @property
    def is_exact(self) -> bool:
        """Whether it counts whole numbers, so that nothing is rounded."""
        return False

    @abstractmethod
    def state_shapes(self, batch: int) -> dict[str, tuple[int, int, int]]:
        """Shape of each state array, [rows, batch, size]. A row is the state of one layer."""

    @property
    @abstractmethod
    def graph(self) -> tuple[LayerSpec, ...]:
        """The layers in an order in which they can run."""

    @property
    def outputs(self) -> tuple[int, ...]:
        """The layers whose y, side by side, are the network's y."""
        return (len(self.graph) - 1,)

    @abstractmethod
    def body(self, ops: Primitives[V], weights: Weights, index: int) -> LayerBody[V]:
        """The equations of a layer of the graph over a backend's primitives."""

    @abstractmethod
    def weight_specs(self) -> Iterator[WeightSpec]:
        """The weight arrays in the order in which they are drawn."""

    def as_weights(self, arrays: Mapping[str, np.ndarray]) -> Weights:
        """The arrays of `weight_specs` as the weights that `body` and `run` take."""
        from rnnbench.rnn.weights import Weights

        return Weights(arrays=arrays)

    @abstractmethod
    def run(
        self, arithmetic: Arithmetic, weights: Weights, x: np.ndarray, state: Mapping[str, np.ndarray]
    ) -> Trajectory:
        """The reference, written apart from `body`: x [steps, batch, input] from a state, in the given arithmetic.

        x and state are checked and cast already.
        """

    @property
    def takes_any_number(self) -> bool:
        """Whether x may be any float: huge, tiny, or NaN. Indices of a table may not."""
        return True

    def draw_x(self, generator: np.random.Generator, steps: int, batch: int) -> np.ndarray:
        """A stream [steps, batch, input], not yet rounded to a dtype."""
        shape = (steps, batch, self.input)
        return generator.integers(-4, 5, shape) if self.is_exact else generator.standard_normal(shape)

    def draw_state(self, generator: np.random.Generator, batch: int) -> dict[str, np.ndarray]:
        """A state that is not zero, not yet rounded to a dtype."""
        return {
            name: generator.integers(-4, 5, shape) if self.is_exact else generator.uniform(-0.5, 0.5, shape)
            for name, shape in self.state_shapes(batch).items()
        }

    def expected_y(self, batch: int) -> np.ndarray | None:
        """The y [steps, batch, width] of the stream that the user expects; None if the user expects none."""
        return None

    def run_lengths(
        self,
        arithmetic: Arithmetic,
        weights: Weights,
        x: np.ndarray,
        state: Mapping[str, np.ndarray],
        lengths: np.ndarray,
    ) -> Trajectory:
        """The reference if row b of the batch ends after `lengths[b]` steps. Raises ValueError if it cannot."""
        raise ValueError(f"lengths: rows of their own lengths are for stacks of cells, not for {self.network}")

    def smaller(self) -> Iterator[Network]:
        """Networks of the same family with one size halved, for making a failure smaller."""
        return iter(())

    def pinning_x(self, weights: Weights, batch: int, preactivation: float) -> np.ndarray | None:
        """An x [batch, input] with which the gate that keeps the state has this input, in one unit of each row.

        None if the family has no such gate.
        """
        return None

    @property
    def weight_count(self) -> int:
        """Elements of all weights."""
        return sum(prod(spec.shape) for spec in self.weight_specs())


def label_of(network: Network) -> str:
    """The family's name, with sizes that differ from the published ones: `rnnoise`, `rnnoise-hidden64`."""
    others = network.model_dump(exclude_defaults=True)
    return "-".join([network.network, *(f"{key}{size}" for key, size in others.items())])


def halved(network: N, sizes: Sequence[str]) -> Iterator[N]:
    """The network with one of these sizes halved, for each size above 1."""
    for key in sizes:
        if (size := getattr(network, key)) > 1:
            yield network.model_copy(update={key: size // 2})


def _network_of(written: object) -> object:
    from rnnbench.rnn.registry import network_of

    try:
        return network_of(written) if isinstance(written, dict) else written
    except KeyError as error:  # The package of the network may be gone.
        raise ValueError(f"no installed package has the network {error}") from error


def _written(network: Network) -> dict[str, object]:
    return {"network": network.network, **network.model_dump()}


AnyNetwork = Annotated[Network, BeforeValidator(_network_of), PlainSerializer(_written)]
"""A network of any family, in values that are written to files and sent to workers."""


PINNED_X = 1e4
"""Largest x that pins a gate."""


def x_towards(rows: np.ndarray, preactivation: float) -> np.ndarray:
    """An x [batch, input] whose product with its row of `rows` [batch, input] is `preactivation`, within ±PINNED_X."""
    import numpy as np

    towards = rows.astype(np.float64)
    lengths = (towards**2).sum(axis=1, keepdims=True)
    bounded: np.ndarray = np.clip(preactivation * towards / lengths, -PINNED_X, PINNED_X)
    return bounded
