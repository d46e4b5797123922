"""Networks of every family that are small enough for many tests."""

from __future__ import annotations

from rnnbench.rnn import Network, families

FEWEST = 4
"""Units of a layer: with fewer, relus may all be 0."""


def small(family: str) -> Network:
    """The network of a family whose sizes are halved while they stay at 4 or more."""
    network: Network = families()[family]()
    while halves := [half for half in network.smaller() if _changed(network, half) >= FEWEST]:
        network = halves[0]
    return network


def _changed(network: Network, half: Network) -> int:
    """The size that was halved."""
    return min(getattr(half, key) for key in type(half).model_fields if getattr(half, key) != getattr(network, key))
