"""The families of networks that are composed of layers, and small networks of each."""

from __future__ import annotations

from rnnbench.rnn import families
from rnnbench.rnn.composed import ComposedNetwork

COMPOSED: dict[str, type[ComposedNetwork]] = {
    name: family for name, family in families().items() if issubclass(family, ComposedNetwork)
}
FEWEST = 4
"""Units of a layer: with fewer, relus may all be 0."""


def small(family: str) -> ComposedNetwork:
    """The network of a family whose sizes are halved while they stay at 4 or more."""
    network = COMPOSED[family]()
    while halves := [half for half in network.smaller() if _changed(network, half) >= FEWEST]:
        network = halves[0]
    return network


def _changed(network: ComposedNetwork, half: ComposedNetwork) -> int:
    """The size that was halved."""
    return min(getattr(half, key) for key in type(half).model_fields if getattr(half, key) != getattr(network, key))
