"""JAX as a backend: what is installed, what it can do, and how a request becomes a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rnnbench.backends.base import (
    ACTIVATIONS,
    LENGTHS,
    Allocated,
    BuildError,
    Lack,
    Level,
    Probe,
    Program,
    Request,
    Support,
)
from rnnbench.backends.jax.environment import import_jax, missing_variable, variables
from rnnbench.backends.shared import (
    CUDA,
    NVIDIA_LIBRARIES,
    PROCESSOR_AND_CUDA,
    Abilities,
    installed_versions,
    probe_packages,
    require_support,
    too_many_threads,
    with_cuda,
)
from rnnbench.cases import STREAM
from rnnbench.rnn import FUSED, LAYER_PRIMITIVES, CompoundNetwork, Model

ROUTE = "jit"
PACKAGES = ("jax", "jaxlib")
PLUGINS = ("jax-cuda13-plugin", "jax-cuda12-plugin")
"""JAX's custom calls for CUDA, in the order in which JAX looks for them. XLA's compiler and runtime for CUDA are in the
package that has `pjrt` for `plugin` in its name."""
INSTALL_CUDA = "pip install 'jax[cuda13]'"
NATIVE = ("float32", "float64")
ROUNDED = ("float16", "bfloat16")
"""XLA's CPU compiler multiplies these in float32, weights included, and rounds the result of each operation."""
COVERS = frozenset({ACTIVATIONS, LENGTHS})
GRAPHS = {ROUTE: frozenset({CUDA})}
READS = {ROUTE: frozenset({"stablehlo"})}
AUTHORS = {ROUTE: LAYER_PRIMITIVES | {"while"}}


class JaxBackend:
    """JAX on the processor and on CUDA."""

    name = "jax"

    def probe(self) -> Probe:
        probe = probe_packages((ROUTE,), PACKAGES, "pip install 'rnnbench[jax]'")
        versions = {**probe.versions, **cuda_versions()}
        return replace(
            probe,
            versions=versions,
            devices=with_cuda(cuda_lack(versions), built_for(versions)),
            authors=AUTHORS,
            reads=READS,
            graphs=GRAPHS,
        )

    def support(self, request: Request) -> Support:
        if reason := _unsupported(request):
            return Support("unsupported", reason)
        stand_ins = []
        if request.strategy.state == "stateful":
            stand_ins.append(
                "JAX's functions are pure: the session has the state in an array that is donated to each call."
            )
        if request.precision.uniform in ROUNDED and request.device != CUDA:
            dtype = request.precision.uniform
            stand_ins.append(f"Products are float32 on the CPU, and each operation's result is rounded to {dtype}.")
        level: Level = "emulated" if stand_ins else "native"
        return Support(level, " ".join(stand_ins), environment=variables(request), covers=COVERS)

    def load(self) -> None:
        import_jax()

    def allocated(self, device: str) -> Allocated | None:
        """Bytes of XLA's allocator, by `Device.memory_stats`. The processor's counts nothing."""
        import jax

        count = jax.devices(device)[0].memory_stats()
        return Allocated(count["bytes_in_use"], count.get("peak_bytes_in_use")) if count else None

    def build(self, request: Request, cache: Path) -> Program:
        """Lower and compile for this machine's device, or load the executable that an earlier build left."""
        require_support(self, request, Abilities(PROCESSOR_AND_CUDA, AUTHORS, READS, GRAPHS))
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
    if request.strategy.time == FUSED:
        return _not_fused(request)
    return _not_recorded(request) or too_many_threads(request)


def _not_recorded(request: Request) -> str:
    """Why XLA would not record a call as one CUDA graph; empty where it does, and where it need not."""
    if request.strategy.launch == STREAM:
        return ""
    if request.file is not None:
        return "XLA records what it can of a file's program, and it does not say whether that is all of a call."
    if isinstance(request.model, CompoundNetwork):
        return "XLA records loops whose number of passes is known, and this one depends on what its parts give."
    return ""


def _not_fused(request: Request) -> str:
    """Why a request cannot be one call of cuDNN's LSTM; empty where it can."""
    model = request.model
    if request.device != CUDA:
        return "JAX's RNN operator, jax.experimental.rnn, is that of cuDNN and does not run on the CPU."
    if not isinstance(model, Model) or model.cell != "lstm":
        return "Of cuDNN's RNN operators, JAX has the LSTM alone (jax.experimental.rnn)."
    if request.precision.uniform != "float32":
        return "jax.experimental.rnn is in float32 alone."
    if model.projection or model.clip is not None or model.cell_clip is not None or model.other_activations:
        return "jax.experimental.rnn has no projection, no clip, and no other activations than the standard ones."
    if model.direction == "reverse":
        return "jax.experimental.rnn runs forwards, or in both directions, and not backwards alone."
    if request.strategy.launch != STREAM:
        return "XLA does not record cuDNN's LSTM, a custom call, into a command buffer: ask for launch: stream."
    return too_many_threads(request)


def cuda_versions() -> dict[str, str]:
    """The versions of what JAX needs for CUDA, of the packages that are installed."""
    return installed_versions((*PLUGINS, *(_pjrt(plugin) for plugin in PLUGINS), *NVIDIA_LIBRARIES))


def cuda_lack(versions: Mapping[str, str]) -> Lack | None:
    """What the installed packages lack for CUDA; None where they have all of JAX's own part."""
    plugin = next((name for name in PLUGINS if name in versions), None)
    if plugin is None:
        return Lack(f"JAX's plugin for CUDA is not installed ({' or '.join(PLUGINS)})", INSTALL_CUDA)
    if _pjrt(plugin) not in versions:
        return Lack(f"{plugin} is installed, and {_pjrt(plugin)} is not", INSTALL_CUDA)
    return None


def built_for(versions: Mapping[str, str]) -> int | None:
    """The major version of CUDA that the installed plugin was built for; None where there is none."""
    plugin = next((name for name in PLUGINS if name in versions), None)
    return int(plugin.removeprefix("jax-cuda").removesuffix("-plugin")) if plugin else None


def _pjrt(plugin: str) -> str:
    return plugin.replace("plugin", "pjrt")
