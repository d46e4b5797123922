"""Where a program runs: the device of a request, and how JAX traces a function for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import jax

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.jax.environment import ON_CUDA
from rnnbench.backends.program_identity import processor
from rnnbench.backends.shared import CUDA
from rnnbench.cases import Launch
from rnnbench.rnn import runs_together

MATMUL_PRECISION = "highest"
"""JAX's word for products of float32 in float32. On CUDA its default allows TF32.
Source: docs.jax.dev/en/latest/jax.lax.html, `jax.lax.Precision`."""
Options = Mapping[str, str | int | bool]
LAUNCHES: Mapping[Launch, Options] = {
    "stream": {"xla_gpu_enable_command_buffer": ""},
    "graph": {
        "xla_gpu_enable_command_buffer": (
            "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,CONDITIONAL,WHILE,DYNAMIC_SLICE_FUSION"
        ),
        "xla_gpu_graph_min_graph_size": 1,
        "xla_gpu_command_buffer_unroll_loops": True,
    },
}
"""XLA's options for CUDA, by launch. Its command buffers are CUDA graphs. By default it records what has five
operations or more, and of a loop its body alone; `graph` has all of a call in one, and `stream` has none."""

IN_LOOPS: Options = {"xla_backend_optimization_level": 1}
"""XLA's option for programs with a loop over steps on the processor. By its default level, 3, LLVM makes slower code of
the elementwise operations in such a loop (docs/backends/jax.md)."""


def device_of(request: Request) -> jax.Device:
    """JAX's first device of the kind that is requested. Raises BuildError with JAX's own words where it has none.

    JAX 0.11 prints why a plugin cannot be started, and then fails without a word where it has no other platform.
    """
    try:
        return jax.devices(request.device)[0]
    except (RuntimeError, AssertionError) as error:
        why = str(error) or "its plugin could not be started; a library of CUDA is missing, or is of another version"
        raise BuildError(f"JAX has no device {request.device}: {why}") from error


@contextmanager
def placed(request: Request) -> Iterator[None]:
    """What is traced within is for the request's device, and makes its constants there."""
    precision = MATMUL_PRECISION if request.device == CUDA else None
    with jax.default_device(device_of(request)), jax.default_matmul_precision(precision):
        yield


def facts(request: Request) -> Mapping[str, object]:
    """What of the device decides an executable: the processor; or the GPU, its capability, and the version of CUDA."""
    if request.device != CUDA:
        return {"processor": processor()}
    device = device_of(request)
    return {
        "device": device.device_kind,
        "capability": str(getattr(device, "compute_capability", "")),
        "platform": device.client.platform_version,
    }


def flags(request: Request) -> tuple[str, ...]:
    """The flags and variables that a program was compiled with, as its artifact says them."""
    xla_flags = tuple(os.environ.get("XLA_FLAGS", "").split())
    options = (f"{name}={value}" for name, value in (compiler_options(request) or {}).items())
    if request.device != CUDA:
        return (*xla_flags, *options)
    variables = tuple(f"{name}={os.environ.get(name, '(not set)')}" for name in ON_CUDA)
    return (*xla_flags, *variables, f"jax_default_matmul_precision={MATMUL_PRECISION}", *options)


def compiler_options(request: Request) -> dict[str, str | int | bool] | None:
    """XLA's options for one program, as `Lowered.compile` takes them; None where it needs none."""
    if request.device == CUDA:
        return dict(LAUNCHES[request.strategy.launch])
    return dict(IN_LOOPS) if _loops(request) else None


def _loops(request: Request) -> bool:
    """Whether a program has a loop over steps, or over copies of a step. XLA folds a loop of one pass."""
    strategy = request.strategy
    return strategy.copies is not None and strategy.copies < strategy.chunk and not runs_together(strategy.time)
