"""JAX: RNNs over jax.numpy and lax.scan, compiled by XLA for the processor or for CUDA.

`backend` answers for the package: what is installed, what is supported, what a build gives. `network` writes the model
down as a function, `program` compiles it and runs its streams, `lowered` reads XLA's text, `store` keeps executables.
`placement` says which device a program is for, and `cudnn` has the operator that JAX has on CUDA alone.
`stablehlo` gives the same function as StableHLO text, for adapters of other compilers.
"""

from rnnbench.backends.jax.backend import JaxBackend

__all__ = ["JaxBackend"]
