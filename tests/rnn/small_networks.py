"""The families of networks that are composed of layers, and small networks of each."""

from __future__ import annotations

from rnnbench.rnn import families
from rnnbench.rnn.composed import ComposedNetwork

COMPOSED: dict[str, type[ComposedNetwork]] = {
    name: family for name, family in families().items() if issubclass(family, ComposedNetwork)
}
FEWEST = 4
"""Units of a layer: with fewer, relus may all be 0."""
LAYERS = 2
"""Of networks that have as many equal layers as one likes: one reads x, and one reads a layer."""


def small(family: str) -> ComposedNetwork:
    """The network of a family whose sizes are halved while they stay at 4 or more."""
    layers = {"layers": LAYERS} if "layers" in COMPOSED[family].model_fields else {}
    network = COMPOSED[family](**layers)
    while halves := [half for half in network.smaller() if _changed(network, half) >= FEWEST]:
        network = halves[0]
    return network


def _changed(network: ComposedNetwork, half: ComposedNetwork) -> int:
    """The size that was halved."""
    return min(getattr(half, key) for key in type(half).model_fields if getattr(half, key) != getattr(network, key))
