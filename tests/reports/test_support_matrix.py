"""What `rnnbench backends` prints, at the width of a plain terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from rnnbench.backends.base import Lack, Probe, Support
from rnnbench.cases.trial import Target
from rnnbench.devices import Device
from rnnbench.plan.support_matrix import MODELS, STATES, TIMES, SupportMatrix, build_support_matrix
from rnnbench.reports.support_matrix import print_support_matrix
from rnnbench.results import visible

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


def test_the_words_of_a_cell_are_explained_where_there_are_such():
    assert "unsupported" not in printed({})
    out = printed({("lstm", "fused-stateful"): Support("unsupported", "no state inside")})
    assert "—: unsupported. A number is that of its reason:" in out
    assert "emulated" not in out


def test_an_issue_without_a_reason_stands_alone():
    out = printed({("lstm", "fused-none"): Support("native", upstream="tensorflow/tensorflow#126061")})
    assert "1 tensorflow/tensorflow#126061" in out


def test_targets_with_one_answer_stand_together_and_a_time_stands_for_all_its_states():
    none = Support("unsupported", "no operator counts", "a/b#1")
    out = printed({("counter", f"fused-{state}"): none for state in STATES})
    assert "fused: unsupported: no operator counts (a/b#1)" in out
    assert out.count("no operator counts") == 1
    assert "tensorflow:keras-xla, tensorflow:keras" in out


@pytest.mark.parametrize("text", ["[bold red]x[/] [/nothing]", "\x1b[31mred\x07", "\u202eback", "a\n[link=http://b]c"])
def test_what_an_adapter_says_is_shown_as_it_is_and_nothing_of_it_is_obeyed(text):
    support = {(Target(text, text), text, f"{text}-none"): Support("unsupported", text, text)}
    probes = {
        text: Probe((text,), reason=text, install=text),
        "odd": Probe((text,), versions={text: text}, lacking={text: Lack(text, text)}),
    }
    out = io.StringIO()
    print_support_matrix(SupportMatrix(probes, support), Console(file=out, width=2000, force_terminal=True))
    shown = out.getvalue()
    assert visible(text) in Text.from_ansi(shown).plain
    assert not {"\x07", "\u202e"} & set(shown)
    assert "\x1b[31m" not in shown


def test_no_backend_is_asked_for_a_stream_that_runs_backwards():
    asked = {strategy for _, kind, strategy in build_support_matrix().support if MODELS[kind].direction != "forward"}
    assert asked == {f"{time}-none" for time in TIMES}


def test_devices_beside_the_processor_are_told_with_what_is_missing():
    found = {
        "cpu": Device("a processor"),
        "cuda": Lack("the driver lists none", "apt-get install a-driver"),
        "vulkan": Device("fakepipe", "a fake driver", "Fake 1.0", software=True),
    }
    out = io.StringIO()
    matrix = SupportMatrix(
        {"some": Probe(("r",), devices=found)}, {(Target("some", "r"), "lstm", "looped-none"): NATIVE}
    )
    print_support_matrix(matrix, Console(file=out, width=140))
    assert "some on vulkan: fakepipe, a fake driver, Fake 1.0; a software device" in out.getvalue()
    assert "some on cuda: the driver lists none" in out.getvalue()
    assert "apt-get install a-driver" in out.getvalue()
    assert "a processor" not in out.getvalue()
