"""What is refused of every backend alike. `plan.supports` asks here, and so does the `build` of each adapter."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rnnbench.backends.base import Backend, BuildError, Request, Support, processor
from rnnbench.cases import STREAM
from rnnbench.model_files import FileNetwork
from rnnbench.rnn import FUSED, LIBRARY_OPERATORS, Model, primitives_of, runs_together

DEVICES = tuple(processor())
"""The kinds of devices of a backend that declares no others (`Probe.devices`)."""


Authors = Mapping[str, frozenset[str]]
"""`Probe.authors`."""
STACKS_ONLY: Authors = {}
Reads = Mapping[str, frozenset[str]]
"""`Probe.reads`."""
NO_FILES: Reads = {}
Graphs = Mapping[str, frozenset[str]]
"""`Probe.graphs`."""
NO_GRAPHS: Graphs = {}
NOTHING_MORE: Mapping[str, str] = {}
"""`Probe.not_on` of a backend that says no more of devices than which ones it has."""
PROCESSOR = "cpu"
NOTHING_TO_RECORD = (
    "The processor runs a call as the caller makes it: there is no queue of a device, so nothing to record and replay. "
    "Ask for launch: stream."
)


def support_of(
    backend: Backend,
    request: Request,
    devices: Collection[str] = DEVICES,
    authors: Authors = STACKS_ONLY,
    reads: Reads = NO_FILES,
    graphs: Graphs = NO_GRAPHS,
) -> Support:
    """The answer to a request: first what no backend or device can do, then the adapter's own answer.

    An extra of the request (`Request.extras`) that the answer does not cover is unsupported.
    """
    return refusal(backend.name, request, devices, authors, reads, graphs) or covered(
        backend.name, request, backend.support(request)
    )


def refusal(
    backend: str,
    request: Request,
    devices: Collection[str],
    authors: Authors = STACKS_ONLY,
    reads: Reads = NO_FILES,
    graphs: Graphs = NO_GRAPHS,
    not_on: Mapping[str, str] = NOTHING_MORE,
) -> Support | None:
    """What no backend or device can do; None where its adapter is to be asked."""
    if request.device not in devices:
        # In one order, as the devices of a probe and those that a build passes may be in two.
        named = ", ".join(sorted(devices, key=lambda name: (name != PROCESSOR, name)))
        why = not_on.get(request.device, "")
        reason = f"{backend}:{request.route} has programs for {named} and none for {request.device}. {why}"
        return Support("unsupported", reason.rstrip())
    if reason := _not_recorded(backend, request, graphs):
        return Support("unsupported", reason)
    if reason := _contradiction(request) or _not_a_stack(backend, request, authors, reads):
        return Support("unsupported", reason)
    return None


def covered(backend: str, request: Request, answer: Support) -> Support:
    """The adapter's answer; unsupported where the request has an extra that it does not cover."""
    if answer.level != "unsupported" and (missing := sorted(request.extras.keys() - answer.covers)):
        reason = f"The adapter of '{backend}' has no {request.extras[missing[0]]} in this strategy."
        return Support("unsupported", reason)
    return answer


def require_support(
    backend: Backend,
    request: Request,
    devices: Collection[str] = DEVICES,
    authors: Authors = STACKS_ONLY,
    reads: Reads = NO_FILES,
    graphs: Graphs = NO_GRAPHS,
) -> None:
    """The first line of an adapter's `build`. Raises BuildError with the reason where `support_of` refuses.

    `devices`, `authors`, `reads` and `graphs` are those that the adapter's probe declares. They are passed, and not
    read from a probe, because a probe takes 1 to 3 ms and builds are timed.
    """
    answer = support_of(backend, request, devices, authors, reads, graphs)
    if answer.level == "unsupported":
        raise BuildError(answer.reason)


def _not_recorded(backend: str, request: Request, graphs: Graphs) -> str:
    """Why a route cannot record a call on the device and replay it; empty where it can, and where it need not."""
    if request.strategy.launch == STREAM:
        return ""
    if request.device == PROCESSOR:
        return NOTHING_TO_RECORD
    if request.device in graphs.get(request.route, ()):
        return ""
    others = ", ".join(f"{backend}:{route}" for route, devices in graphs.items() if request.device in devices)
    use = f"; use {others}" if others else ""
    return f"{backend}:{request.route} cannot record a call on {request.device} and replay it as a graph{use}."


def _not_a_stack(backend: str, request: Request, authors: Authors, reads: Reads) -> str:
    """Why a route has no program for a network of other layers than cells; empty where it has one, and for stacks."""
    network, target = request.model, f"{backend}:{request.route}"
    if isinstance(network, Model):
        return ""
    if isinstance(network, FileNetwork):
        return _not_read(backend, request, network.format, reads)
    time = request.strategy.time
    if time == FUSED and not network.has_operators:
        return f"No runtime has operators for all states of {network.label}; ask for looped or unrolled."
    if request.ragged:
        return "Rows of their own lengths are for stacks of cells here."
    if request.route not in authors:
        others = ", ".join(f"{backend}:{route}" for route in authors)
        return f"{target} has stacks of cells only." + (f" Other networks: {others}." if others else "")
    if missing := sorted(primitives_of(network, time) - authors[request.route]):
        what = "operator" if missing[0] in LIBRARY_OPERATORS else "primitive"
        return f"{target} has not the {what} {missing[0]}, which {network.label} needs with time {time}."
    return ""


def _not_read(backend: str, request: Request, format_name: str, reads: Reads) -> str:
    """Why a route does not read files of a format; empty where it does."""
    if format_name in reads.get(request.route, ()):
        return ""
    others = ", ".join(f"{backend}:{route}" for route, formats in reads.items() if format_name in formats)
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
