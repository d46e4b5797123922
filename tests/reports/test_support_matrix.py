"""What `rnnbench backends` prints, at the width of a plain terminal."""

from __future__ import annotations

import io

from rich.console import Console

from rnnbench.backends.base import Probe, Support
from rnnbench.backends.support_matrix import MODELS, STATES, TIMES, SupportMatrix, support_matrix
from rnnbench.cases.trial import Target
from rnnbench.reports.support_matrix import print_support_matrix

NATIVE = Support("native")
TARGETS = [Target("tensorflow", "keras-xla"), Target("tensorflow", "keras")]


def printed(answers: dict[tuple[str, str], Support]) -> str:
    """By kind of model and strategy, alike for both targets; what is not given is native."""
    support = {
        (target, kind, f"{time}-{state}"): answers.get((kind, f"{time}-{state}"), NATIVE)
        for target in TARGETS
        for kind in MODELS
        for time in TIMES
        for state in STATES
    }
    out = io.StringIO()
    print_support_matrix(
        SupportMatrix({"tensorflow": Probe(("keras", "keras-xla"))}, support), Console(file=out, width=80)
    )
    return out.getvalue()


def test_names_of_targets_are_whole():
    assert "tensorflow:keras-xla" in printed({})


def test_what_all_support_is_said_once_for_each_place():
    assert printed({}).count("native") == len(TARGETS) * len(TIMES)


def test_only_the_state_that_differs_is_named():
    out = printed({("lstm", "fused-stateful"): Support("emulated", "buffers of the session")})
    assert "stateful:" in out
    assert "emulated 1" in out
    assert not any(state in out for state in ("none", "stitched"))
    assert "1 buffers of the session" in out


def test_an_issue_without_a_reason_stands_alone():
    out = printed({("lstm", "fused-none"): Support("native", upstream="tensorflow/tensorflow#126061")})
    assert "1 tensorflow/tensorflow#126061" in out


def test_targets_with_one_answer_stand_together_and_a_time_stands_for_all_its_states():
    none = Support("unsupported", "no operator counts", "a/b#1")
    out = printed({("counter", f"fused-{state}"): none for state in STATES})
    assert "fused: unsupported: no operator counts (a/b#1)" in out
    assert out.count("no operator counts") == 1
    assert "tensorflow:keras-xla, tensorflow:keras" in out


def test_no_backend_is_asked_for_a_stream_that_runs_backwards():
    asked = {strategy for _, kind, strategy in support_matrix().support if MODELS[kind].direction != "forward"}
    assert asked == {f"{time}-none" for time in TIMES}
