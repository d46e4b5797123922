"""JAX: RNNs over jax.numpy and lax.scan, compiled by XLA for the CPU."""

from rnnbench.backends.jax.backend import JaxBackend

__all__ = ["JaxBackend"]
