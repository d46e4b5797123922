"""Networks composed of layers: a family lists its layers and the layers that each reads."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import ClassVar, NamedTuple, Self

import numpy as np
from pydantic import model_validator

from rnnbench.outside_text import describe_error, safe_text
from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.layers import LayerKind
from rnnbench.rnn.network import LayerSpec, Network, WeightSpec, X, halved, label_of, x_towards
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, Primitives, V
from rnnbench.rnn.reference import Trajectory
from rnnbench.rnn.weights import Weights

_NAME = re.compile(r"\w+", re.ASCII)


class Placed(NamedTuple):
    """A layer in its network. It reads the layers `reads` (or `x`) side by side; an empty `reads` means x."""

    name: str
    kind: LayerKind
    reads: tuple[str, ...] = ()


class ComposedNetwork(Network):
    """A network of named layers. The arrays of a layer are `name_array`, and each state array has one row."""

    sizes: ClassVar[tuple[str, ...]] = ("hidden", "input")
    """The fields that `smaller` halves."""

    @model_validator(mode="after")
    def _is_runnable(self) -> Self:
        """Raises ValueError where its layers cannot run."""
        try:
            fault = _fault_of(self)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 its layers may be those of any package
            fault = f"its layers cannot be made: {describe_error(error)}"
        if fault:
            raise ValueError(f"the network {self.network} cannot run: {fault}")
        return self

    @abstractmethod
    def compose(self) -> Sequence[Placed]:
        """The layers, in an order in which they can run. The last one gives y, unless `gives` names others."""

    def gives(self) -> tuple[str, ...]:
        """The layers whose outputs, side by side, are the network's y."""
        return (self._placed[-1].name,)

    @property
    def label(self) -> str:
        return label_of(self)

    @property
    def width(self) -> int:
        return sum(self.graph[index].width for index in self.outputs)

    def state_shapes(self, batch: int) -> dict[str, tuple[int, int, int]]:
        return {
            f"{placed.name}_{state}": (1, batch, size)
            for placed in self._placed
            for state, size in placed.kind.states.items()
        }

    @property
    def graph(self) -> tuple[LayerSpec, ...]:
        return _graph(self)

    @property
    def outputs(self) -> tuple[int, ...]:
        return tuple(self._index(name) for name in self.gives())

    def body(self, ops: Primitives[V], weights: Weights, index: int) -> LayerBody[V]:
        placed = self._placed[index]
        vocabulary: MorePrimitives[V] = ops  # type: ignore[assignment]  # `primitives_of` says which it needs
        return placed.kind.body(vocabulary, _of_layer(weights.arrays, placed))

    def weight_specs(self) -> Iterator[WeightSpec]:
        for placed in self._placed:
            for name, shape, bound in placed.kind.weight_specs():
                yield WeightSpec(f"{placed.name}_{name}", shape, bound)

    def run(
        self, arithmetic: Arithmetic, weights: Weights, x: np.ndarray, state: Mapping[str, np.ndarray]
    ) -> Trajectory:
        """Run layer by layer, each over all steps."""
        outputs = {"x": x}
        states: dict[str, np.ndarray] = {}
        for placed in self._placed:
            name, kind, reads = placed
            read = np.concatenate([outputs[source] for source in reads], axis=2) if reads else x
            start = {part: array[0] for part, array in _of_layer(state, placed).items()}
            outputs[name], history = kind.run(arithmetic, _of_layer(weights.arrays, placed), read, start)
            states.update({f"{name}_{part}": array[:, None] for part, array in history.items()})
        y = np.concatenate([outputs[name] for name in self.gives()], axis=2)
        stored = {name: states[name].astype(arithmetic.stored, copy=False) for name in state}
        return Trajectory(
            y.astype(arithmetic.stored, copy=False), {name: array[-1] for name, array in stored.items()}, stored
        )

    def pinning_x(self, weights: Weights, batch: int, preactivation: float) -> np.ndarray | None:
        """For the first layer that reads only x and has a gate that keeps its state."""
        for placed in self._placed:
            if placed.reads in ((), ("x",)):
                rows = placed.kind.pinning_rows(_of_layer(weights.arrays, placed), np.arange(batch))
                if rows is not None:
                    return x_towards(rows, preactivation)
        return None

    def smaller(self) -> Iterator[Self]:
        return halved(self, self.sizes)

    @property
    def _placed(self) -> tuple[Placed, ...]:
        return _placed(self)

    def _spec(self, placed: Placed) -> LayerSpec:
        cost = placed.kind.cost
        return LayerSpec(
            sources=tuple(self._index(name) for name in placed.reads) or (X,),
            projected=placed.kind.projected,
            width=placed.kind.width,
            states=tuple((f"{placed.name}_{state}", 0) for state in placed.kind.states),
            hoistable_weights=cost.hoistable_weights,
            step_weights=cost.step_weights,
            operations=cost.operations,
            linear=placed.kind.is_linear,
            has_operator=placed.kind.has_operator,
        )

    def _index(self, name: str) -> int:
        return X if name == "x" else next(index for index, placed in enumerate(self._placed) if placed.name == name)


@cache
def _placed(network: ComposedNetwork) -> tuple[Placed, ...]:
    return tuple(network.compose())


@cache
def _graph(network: ComposedNetwork) -> tuple[LayerSpec, ...]:
    return tuple(network._spec(placed) for placed in _placed(network))


def _fault_of(network: ComposedNetwork) -> str:
    """Why the layers cannot run in their order; empty where they can."""
    widths = {"x": network.input}
    for name, kind, reads in _placed(network):
        if not _NAME.fullmatch(name) or name in widths:
            what = "expected a name of letters, digits and '_' that neither x nor another layer has"
            return f"layer '{safe_text(name, 40)}': {what}"
        sources = reads or ("x",)
        if unknown := [read for read in sources if read not in widths]:
            return f"layer '{name}' reads '{safe_text(unknown[0], 40)}'; expected one of {', '.join(widths)}"
        if kind.input != (given := sum(widths[read] for read in sources)):
            return f"layer '{name}' has the input {kind.input}, and what it reads ({', '.join(sources)}) has {given}"
        widths[name] = kind.width
    if twice := [name for name, number in Counter(chain(*map(_array_names, _placed(network)))).items() if number > 1]:
        return f"two layers have an array '{safe_text(twice[0], 80)}'; rename one of the layers"
    if not (outputs := network.gives()) or not {*outputs} <= widths.keys() - {"x"}:
        return f"it gives {safe_text(str(outputs), 100)}; expected one or more of its layers"
    return ""


def _of_layer(arrays: Mapping[str, np.ndarray], placed: Placed) -> dict[str, np.ndarray]:
    """The arrays of a layer by their short names."""
    return {short: arrays[name] for name, short in _array_names(placed).items() if name in arrays}


def _array_names(placed: Placed) -> dict[str, str]:
    """The short name of each weight and state of a layer, by its name in the network."""
    shorts = (*placed.kind.states, *(spec.name for spec in placed.kind.weight_specs()))
    return {f"{placed.name}_{short}": short for short in shorts}
