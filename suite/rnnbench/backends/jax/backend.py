"""JAX as a backend: what is installed, what it can do, and how a request becomes a program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rnnbench.backends.base import ACTIVATIONS, LENGTHS, BuildError, Level, Probe, Program, Request, Support
from rnnbench.backends.jax.environment import import_jax, missing_variable, variables
from rnnbench.backends.shared import probe_packages, require_support
from rnnbench.rnn import TOGETHER

ROUTE = "jit"
PACKAGES = ("jax", "jaxlib")
NATIVE = ("float32", "float64")
ROUNDED = ("float16", "bfloat16")
"""XLA's CPU compiler multiplies these in float32, weights included, and rounds the result of each operation."""
COVERS = frozenset({ACTIVATIONS, LENGTHS})
READS = {ROUTE: frozenset({"stablehlo"})}
AUTHORS = {ROUTE: frozenset({"concat", "columns", "div", "mean", "sqrt", "while", *TOGETHER})}


class JaxBackend:
    """JAX on the CPU."""

    name = "jax"

    def probe(self) -> Probe:
        probe = probe_packages((ROUTE,), PACKAGES, "pip install 'rnnbench[jax]'")
        return replace(probe, authors=AUTHORS, reads=READS)

    def support(self, request: Request) -> Support:
        if reason := _unsupported(request):
            return Support("unsupported", reason)
        stand_ins = []
        if request.strategy.state == "stateful":
            stand_ins.append(
                "JAX's functions are pure: the session has the state in an array that is donated to each call."
            )
        if request.precision.uniform in ROUNDED:
            dtype = request.precision.uniform
            stand_ins.append(f"Products are float32 on the CPU, and each operation's result is rounded to {dtype}.")
        level: Level = "emulated" if stand_ins else "native"
        return Support(level, " ".join(stand_ins), environment=variables(request), covers=COVERS)

    def load(self) -> None:
        import_jax()

    def build(self, request: Request, cache: Path) -> Program:
        """Lower and compile for this machine's processor, or load the executable that an earlier build left."""
        require_support(self, request, authors=AUTHORS, reads=READS)
        if reason := missing_variable(request):
            raise BuildError(reason)
        import_jax()
        from rnnbench.backends.jax.program import build_program

        return build_program(request, cache)


def _unsupported(request: Request) -> str:
    """Why a request cannot be met; empty where it can."""
    if request.route != ROUTE:
        return f"JAX has the route {ROUTE} here, and not {request.route}."
    if request.precision.uniform not in (*NATIVE, *ROUNDED):
        return f"A program computes in one dtype here: {', '.join((*NATIVE, *ROUNDED))}."
    if request.strategy.time == "fused":
        return "JAX's RNN operator, jax.experimental.rnn, is that of cuDNN and does not run on the CPU."
    return ""
