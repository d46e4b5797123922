"""What is refused of every backend alike: other devices, contradictions, and extras that an adapter does not cover."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from rnnbench.backends.base import ACTIVATIONS, BuildError, Probe, Request, Support
from rnnbench.backends.shared import Abilities, refusal, require_support, support_of
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.devices import Device
from rnnbench.rnn import LINEAR_PRIMITIVES
from rnnbench.rnn.networks.mingru import MinGruStack
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights

HARD = Model(cell="lstm", input=2, hidden=3, recurrent_activation="hard_sigmoid")
REQUEST = Request("r", HARD, Weights(()), Strategy("looped", "none", 4), 1, Precision.of("float32"))


class Answering:
    name = "some"

    def __init__(self, answer: Support) -> None:
        self.answer = answer

    def probe(self) -> Probe:
        return Probe(routes=("r",), devices={"cpu": Device("a processor"), "tpu": Device("a TPU")})

    def support(self, request: Request) -> Support:
        return self.answer


@pytest.fixture
def ask():
    def ask(answer: Support, request: Request = REQUEST) -> Support:
        adapter: Any = Answering(answer)
        return support_of(adapter, request, Abilities.of(adapter.probe()))

    return ask


def test_an_adapter_that_says_nothing_of_an_extra_does_not_support_it(ask):
    answer = ask(Support("native"))
    assert answer.level == "unsupported"
    assert "lstm with hard_sigmoid and tanh" in answer.reason


def test_one_that_covers_it_is_believed(ask):
    assert ask(Support("native", covers=frozenset({ACTIVATIONS}))).level == "native"


def test_its_own_refusal_stands(ask):
    assert ask(Support("unsupported", "no such operator")).reason == "no such operator"


def test_an_ordinary_request_asks_for_nothing_extra(ask):
    ordinary = replace(REQUEST, model=HARD.model_copy(update={"recurrent_activation": "sigmoid"}))
    assert ask(Support("native"), ordinary).level == "native"


def test_an_rnn_has_the_activation_it_always_had(ask):
    relu = replace(REQUEST, model=Model(cell="rnn", input=2, hidden=3, activation="relu"))
    assert ask(Support("native"), relu).level == "native"


ORDINARY = replace(REQUEST, model=Model(cell="lstm", input=2, hidden=3))


def test_a_device_that_the_probe_does_not_name_is_refused(ask: Any) -> None:
    refused = ask(Support("native"), replace(ORDINARY, device="cuda"))
    assert (refused.level, refused.reason) == ("unsupported", "some:r has programs for cpu, tpu and none for cuda.")
    assert ask(Support("native"), replace(ORDINARY, device="tpu")).level == "native"


def test_why_a_backend_has_none_for_a_device_follows_where_its_probe_says_so() -> None:
    request = replace(ORDINARY, device="cuda")
    refused = refusal("some", request, Abilities(not_on={"cuda": "Its plugin is for another maker's GPUs."}))
    assert refused is not None
    assert refused.reason.endswith("none for cuda. Its plugin is for another maker's GPUs.")
    other = refusal("some", request, Abilities(not_on={"vulkan": "It has no driver."}))
    assert other is not None
    assert other.reason.endswith("none for cuda.")


GRAPH = replace(ORDINARY, strategy=Strategy("looped", "none", 4, "graph"))


def answer_to(request: Request, graphs: dict[str, frozenset[str]]) -> Support:
    adapter: Any = Answering(Support("native"))
    return support_of(adapter, request, Abilities(("cpu", "cuda"), graphs=graphs))


def test_the_processor_replays_no_graph_whatever_an_adapter_declares() -> None:
    refused = answer_to(GRAPH, {"r": frozenset({"cpu", "cuda"})})
    assert refused.level == "unsupported"
    assert refused.reason.startswith("The processor runs a call as the caller makes it")
    assert refused.reason.endswith("Ask for launch: stream.")


def test_a_route_replays_graphs_on_the_devices_that_its_probe_declares() -> None:
    on_gpu = replace(GRAPH, device="cuda")
    assert answer_to(on_gpu, {"r": frozenset({"cuda"})}).level == "native"
    refused = answer_to(on_gpu, {"other": frozenset({"cuda"}), "third": frozenset({"vulkan"})})
    assert refused.reason == "some:r cannot record a call on cuda and replay it as a graph; use some:other."
    assert answer_to(replace(on_gpu, strategy=Strategy("looped", "none", 4)), {}).level == "native"


def test_a_build_refuses_a_graph_too() -> None:
    backend: Any = Answering(Support("native"))
    with pytest.raises(BuildError, match="nothing to record and replay"):
        require_support(backend, GRAPH)
    require_support(backend, replace(GRAPH, device="cuda"), Abilities(("cuda",), graphs={"r": frozenset({"cuda"})}))


@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_a_stream_cannot_run_backwards(ask: Any, direction: str, state: Any) -> None:
    model = ORDINARY.model.model_copy(update={"direction": direction})
    request = replace(ORDINARY, model=model, strategy=Strategy("looped", state, 4))
    refused = ask(Support("native"), request)
    assert refused.level == "unsupported"
    assert "cannot run backwards" in refused.reason
    assert ask(Support("native"), replace(request, strategy=Strategy("looped", "none", 4))).level == "native"


def test_a_loop_over_copies_needs_a_multiple_of_them(ask: Any) -> None:
    refused = ask(Support("native"), replace(ORDINARY, strategy=Strategy("unrolled:3", "none", 4)))
    assert refused.level == "unsupported"
    assert "3 copies of the cell needs a chunk that is a multiple of 3, and 4 is not" in refused.reason
    assert ask(Support("native"), replace(ORDINARY, strategy=Strategy("unrolled:2", "none", 4))).level == "native"


@pytest.mark.parametrize("time", ["parallel", "chunked:2"])
def test_steps_run_together_only_where_the_state_is_linear(ask: Any, time: str) -> None:
    strategy = Strategy(time, "none", 4)
    refused = ask(Support("native"), replace(ORDINARY, strategy=strategy))
    assert refused.level == "unsupported"
    assert refused.reason.startswith(f"{time} needs states that are linear in themselves, and the gates of h3 read")
    linear = replace(REQUEST, model=MinGruStack(hidden=4), strategy=strategy)
    adapter: Any = Answering(Support("native"))
    by_step = support_of(adapter, linear, Abilities(authors={"r": frozenset()}))
    assert by_step.reason.startswith("some:r has not the primitive ")
    able = Abilities(authors={"r": LINEAR_PRIMITIVES | {"concat"}})
    assert support_of(adapter, linear, able).level == "native"


def test_a_build_is_refused_with_the_same_reason() -> None:
    backend: Any = Answering(Support("native"))
    require_support(backend, ORDINARY)
    with pytest.raises(BuildError, match="has no lstm with hard_sigmoid"):
        require_support(backend, REQUEST)


def test_a_build_goes_by_what_the_probe_declares_unless_it_is_told() -> None:
    backend, on_tpu = cast("Any", Answering(Support("native"))), replace(ORDINARY, device="tpu")
    require_support(backend, on_tpu)
    with pytest.raises(BuildError, match="some:r has programs for cpu and none for tpu"):
        require_support(backend, on_tpu, Abilities(("cpu",)))
