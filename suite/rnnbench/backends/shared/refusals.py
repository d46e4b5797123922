"""What is refused of every backend alike. `plan.supports` asks here, and so does the `build` of each adapter."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rnnbench.backends.base import Backend, BuildError, Probe, Request, Support, processor
from rnnbench.cases import STREAM
from rnnbench.model_files import FileNetwork
from rnnbench.rnn import FUSED, LIBRARY_OPERATORS, Model, primitives_of, runs_together

PROCESSOR = "cpu"
NOTHING_TO_RECORD = (
    "The processor runs a call as the caller makes it: there is no queue of a device, so nothing to record and replay. "
    "Ask for launch: stream."
)


@dataclass(frozen=True)
class Abilities:
    """What a backend has programs for. The fields are those of `Probe` with the same names."""

    devices: Collection[str] = tuple(processor())
    """Kinds of devices. The default is that of a probe: the processor alone."""
    authors: Mapping[str, frozenset[str]] = field(default_factory=dict)
    reads: Mapping[str, frozenset[str]] = field(default_factory=dict)
    graphs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    not_on: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, probe: Probe) -> Abilities:
        """The abilities that a probe declares."""
        return cls(tuple(probe.devices), probe.authors, probe.reads, probe.graphs, probe.not_on)


def support_of(backend: Backend, request: Request, abilities: Abilities | None = None) -> Support:
    """The answer to a request: first what no backend or device can do, then the adapter's own answer.

    An extra of the request (`Request.extras`) that the answer does not cover is unsupported. `abilities` are those that
    the adapter's probe declares; without them it is asked.
    """
    refused = refusal(backend.name, request, abilities or Abilities.of(backend.probe()))
    return refused or covered(backend.name, request, backend.support(request))


def refusal(backend: str, request: Request, abilities: Abilities) -> Support | None:
    """What no backend or device can do; None where its adapter is to be asked."""
    reason = (
        _no_device(backend, request, abilities)
        or _not_recorded(backend, request, abilities)
        or _contradiction(request)
        or _not_a_stack(backend, request, abilities)
    )
    return Support("unsupported", reason) if reason else None


def covered(backend: str, request: Request, answer: Support) -> Support:
    """The adapter's answer; unsupported where the request has an extra that it does not cover."""
    if answer.level != "unsupported" and (missing := sorted(request.extras.keys() - answer.covers)):
        reason = f"The adapter of '{backend}' has no {request.extras[missing[0]]} in this strategy."
        return Support("unsupported", reason)
    return answer


def require_support(backend: Backend, request: Request, abilities: Abilities | None = None) -> None:
    """The first line of an adapter's `build`. Raises BuildError with the reason where `support_of` refuses.

    Pass the `abilities` where a probe asks for the metadata of packages: that takes 1 to 3 ms, and builds are timed.
    """
    answer = support_of(backend, request, abilities)
    if answer.level == "unsupported":
        raise BuildError(answer.reason)


def _no_device(backend: str, request: Request, abilities: Abilities) -> str:
    """Why a backend has no programs for the request's device; empty where it has."""
    if request.device in abilities.devices:
        return ""
    # In one order, as the devices of a probe and those that a build passes may be in two.
    named = ", ".join(sorted(abilities.devices, key=lambda name: (name != PROCESSOR, name)))
    why = abilities.not_on.get(request.device, "")
    return f"{backend}:{request.route} has programs for {named} and none for {request.device}. {why}".rstrip()


def _not_recorded(backend: str, request: Request, abilities: Abilities) -> str:
    """Why a route cannot record a call on the device and replay it; empty where it can, and where it need not."""
    if request.strategy.launch == STREAM:
        return ""
    if request.device == PROCESSOR:
        return NOTHING_TO_RECORD
    if request.device in abilities.graphs.get(request.route, ()):
        return ""
    others = ", ".join(f"{backend}:{route}" for route, kinds in abilities.graphs.items() if request.device in kinds)
    use = f"; use {others}" if others else ""
    return f"{backend}:{request.route} cannot record a call on {request.device} and replay it as a graph{use}."


def _not_a_stack(backend: str, request: Request, abilities: Abilities) -> str:
    """Why a route has no program for a network of other layers than cells; empty where it has one, and for stacks."""
    network, target = request.model, f"{backend}:{request.route}"
    if isinstance(network, Model):
        return ""
    if isinstance(network, FileNetwork):
        return _not_read(backend, request, network.format, abilities)
    time = request.strategy.time
    if time == FUSED and not network.has_operators:
        return f"No runtime has operators for all states of {network.label}; ask for looped or unrolled."
    if request.ragged:
        return "Rows of their own lengths are for stacks of cells here."
    if request.route not in abilities.authors:
        others = ", ".join(f"{backend}:{route}" for route in abilities.authors)
        return f"{target} has stacks of cells only." + (f" Other networks: {others}." if others else "")
    if missing := sorted(primitives_of(network, time) - abilities.authors[request.route]):
        what = "operator" if missing[0] in LIBRARY_OPERATORS else "primitive"
        return f"{target} has not the {what} {missing[0]}, which {network.label} needs with time {time}."
    return ""


def _not_read(backend: str, request: Request, format_name: str, abilities: Abilities) -> str:
    """Why a route does not read files of a format; empty where it does."""
    if format_name in abilities.reads.get(request.route, ()):
        return ""
    others = ", ".join(f"{backend}:{route}" for route, formats in abilities.reads.items() if format_name in formats)
    use = f"; use {others}" if others else ""
    return f"{backend}:{request.route} reads no {format_name} files{use}."


def _contradiction(request: Request) -> str:
    """Why one part of a request excludes another; empty where none does."""
    strategy = request.strategy
    if not request.model.can_stream and strategy.state != "none":
        return "A stream cannot run backwards: such a direction needs the whole sequence, so its state is none."
    if reason := request.model.lacks_time(strategy.time):
        return reason
    if strategy.copies and strategy.chunk % strategy.copies:
        of_copies = f"{strategy.copies} {'steps' if runs_together(strategy.time) else 'copies of the cell'}"
        return (
            f"A loop over {of_copies} needs a chunk that is a multiple of {strategy.copies}, and {strategy.chunk} is "
            "not."
        )
    return ""
