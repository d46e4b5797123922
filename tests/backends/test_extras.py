"""What goes beyond an ordinary request is refused for an adapter that says nothing of it, wherever it is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rnnbench.backends import registry
from rnnbench.backends.base import ACTIVATIONS, Request, Support
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights

HARD = Model(cell="lstm", input=2, hidden=3, recurrent_activation="hard_sigmoid")
REQUEST = Request("r", HARD, Weights(()), Strategy("looped", "none", 4), 1, Precision.of("float32"))


class Answering:
    def __init__(self, answer: Support) -> None:
        self.answer = answer

    def support(self, request: Request) -> Support:
        return self.answer


@pytest.fixture
def ask(monkeypatch):
    def ask(answer: Support, request: Request = REQUEST) -> Support:
        monkeypatch.setattr(registry, "find", lambda name: Answering(answer))
        return registry.support("some", request)

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
