"""JAX as a backend: what is installed, what it can do, and how a request becomes a program."""

from __future__ import annotations

from pathlib import Path

from rnnbench.backends.base import ACTIVATIONS, LENGTHS, BuildError, Level, Probe, Program, Request, Support
from rnnbench.backends.jax.environment import import_jax, missing, variables
from rnnbench.backends.shared import probe_packages, require_support

ROUTE = "jit"
PACKAGES = ("jax", "jaxlib")
NATIVE = ("float32", "float64")
STORED = ("float16", "bfloat16")
"""XLA's CPU compiler multiplies these in float32, weights included, and rounds the result of each operation."""


COVERS = frozenset({ACTIVATIONS, LENGTHS})


class JaxBackend:
    """JAX on the CPU."""

    name = "jax"

    def probe(self) -> Probe:
        return probe_packages((ROUTE,), PACKAGES, "pip install 'rnnbench[jax]'")

    def support(self, request: Request) -> Support:
        reason = _refusal(request)
        if reason:
            return Support("unsupported", reason)
        stand_ins = []
        if request.strategy.state == "stateful":
            stand_ins.append("functions are pure: an array that the session holds is donated to each call")
        if request.precision.uniform in STORED:
            dtype = request.precision.uniform
            stand_ins.append(f"products are float32 on the CPU, and what each operation gives is rounded to {dtype}")
        level: Level = "emulated" if stand_ins else "native"
        return Support(level, "; ".join(stand_ins), environment=variables(request), covers=COVERS)

    def load(self) -> None:
        import_jax()

    def build(self, request: Request, cache: Path) -> Program:
        """Lower and compile for this machine's processor, or load the executable that an earlier build left."""
        require_support(self, request)
        if reason := missing(request):
            raise BuildError(reason)
        import_jax()
        from rnnbench.backends.jax.program import build_program

        return build_program(request, cache)


def _refusal(request: Request) -> str:
    """Why a request cannot be met; empty where it can."""
    if request.route != ROUTE:
        return f"JAX has the route {ROUTE} here, and not {request.route}."
    if request.precision.uniform not in (*NATIVE, *STORED):
        return f"Programs compute in one dtype throughout here: {', '.join((*NATIVE, *STORED))}."
    if request.strategy.time == "fused":
        return "JAX's RNN operator, jax.experimental.rnn, is cuDNN's: it does not run on the CPU."
    return ""
