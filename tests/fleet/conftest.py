"""A cluster of two nodes on loopback, for the tests of this folder."""

from ray_nodes import cluster, command

__all__ = ["cluster", "command"]
