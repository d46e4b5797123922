"""Running a network's graph layer by layer, and converting its state between layers and arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from rnnbench.rnn.network import Network, X

V = TypeVar("V")


def run_graph(network: Network, x: V, run: Callable[[int, V], V], join: Callable[[Sequence[V]], V]) -> V:
    """y of a network over x. `run` returns the y of a layer for its input, and `join` puts values side by side."""
    outputs: list[V] = []
    joined: dict[tuple[int, ...], V] = {}

    def side_by_side(sources: tuple[int, ...]) -> V:
        if sources not in joined:
            values = [x if source == X else outputs[source] for source in sources]
            joined[sources] = values[0] if len(values) == 1 else join(values)
        return joined[sources]

    for index, layer in enumerate(network.graph):
        outputs.append(run(index, side_by_side(layer.sources)))
    return side_by_side(network.outputs)


def state_by_layer(network: Network, rows: Mapping[str, Sequence[V]]) -> list[tuple[V, ...]]:
    """The state of each layer of the graph, from the rows of each state array."""
    return [tuple(rows[name][row] for name, row in layer.states) for layer in network.graph]


def state_by_array(network: Network, states: Sequence[Sequence[V]]) -> dict[str, list[V]]:
    """The rows of each state array, from the state of each layer: the inverse of `state_by_layer`."""
    found: dict[str, dict[int, V]] = {name: {} for name in network.state_shapes(1)}
    for layer, state in zip(network.graph, states, strict=True):
        for (name, row), value in zip(layer.states, state, strict=True):
            found[name][row] = value
    return {name: [rows[row] for row in sorted(rows)] for name, rows in found.items()}
