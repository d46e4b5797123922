"""`--only` and `--filter` choose trials, and a typo in them is never an empty choice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples

from rnnbench.cases import CaseError, Target, Trial, select

TARGETS = [Target("numpy", "loop"), Target("iree", "linalg"), Target("iree", "onnx")]


@pytest.fixture
def trials(load):
    return load("lstm,", "lstm, clip: [null, 5], bias: [true, false],").trials(TARGETS)


def refused(trials, **options):
    with pytest.raises(CaseError) as caught:
        select(trials, **options)
    return [str(problem) for problem in caught.value.problems]


def test_nothing_asked_for_is_all_of_them(trials):
    assert select(trials) == trials


def test_an_id_or_its_digits_choose_one_trial_in_the_order_of_the_trials(trials):
    assert select(trials, only=[trials[7].id]) == [trials[7]]
    assert select(trials, only=[trials[7].digest, trials[3].id]) == [trials[3], trials[7]]


def test_digits_that_two_trials_end_in_choose_neither(trials, monkeypatch):
    pair = [trials[0], trials[-1]]
    monkeypatch.setattr(Trial, "digest", property(lambda trial: "3f9a01c2"))
    assert refused(pair, only=["3f9a01c2"]) == ["--only 3f9a01c2: 2 trials end in these digits; give the whole id"]
    assert select(pair, only=[trials[-1].id]) == [trials[-1]]


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        ("backend=iree", lambda t: t.target.backend == "iree"),
        ("route=onnx|loop", lambda t: t.target.route in ("onnx", "loop")),
        ("hidden=16,time=unrolled", lambda t: t.model.hidden == 16 and t.strategy.time == "unrolled"),
        ("chunk=4", lambda t: t.strategy.chunk == 4),
        ("clip=null", lambda t: t.model.clip is None),
        ("clip=5", lambda t: t.model.clip == 5),
        ("bias=false", lambda t: not t.model.bias),
        ("case=tiny , state = stitched", lambda t: True),
    ],
)
def test_a_filter_keeps_what_has_all_its_keys(trials, text, keeps):
    assert select(trials, filters=[text]) == [trial for trial in trials if keeps(trial)]


def test_a_launch_is_an_axis_that_a_filter_and_a_setting_choose(load):
    stream = load().trials(TARGETS)
    both = load(overrides=["strategy.launch=[stream, graph]"]).trials(TARGETS)
    assert {trial.strategy.launch for trial in stream} == {"stream"}
    assert select(both, filters=["launch=stream"]) == stream
    assert [trial.strategy.launch for trial in select(both, filters=["launch=graph"])] == ["graph"] * len(stream)
    assert load(overrides=["strategy.launch=graph"]).points[0].strategy.launch == "graph"


def test_a_chunk_of_all_is_the_steps(load):
    trials = load("[1, 4]", "[1, all]").trials(TARGETS)
    assert {trial.strategy.chunk for trial in select(trials, filters=["chunk=all"])} == {10}
    assert select(trials, filters=["chunk=all"]) == select(trials, filters=["chunk=10"])


def test_what_matches_nothing_is_refused_with_the_nearest_name(trials):
    near = trials[0].id[:-1] + "_"
    assert refused(trials, only=[near]) == [f"--only {near}: no trial has this id; did you mean '{trials[0].id}'?"]
    assert refused(trials, only=["zzzzzzzz"]) == [
        "--only zzzzzzzz: no trial has this id; `rnnbench list` shows the ids"
    ]
    assert refused(trials, filters=["hiden=16"]) == ["--filter hiden=16: unknown key 'hiden'; did you mean 'hidden'?"]
    assert refused(trials, filters=["time=lopped"]) == [
        "--filter time=lopped: no trial has time 'lopped'; did you mean 'looped'?"
    ]
    assert refused(trials, filters=["hidden=17,foo"]) == [
        "--filter hidden=17,foo: no trial has hidden '17'; expected one of 16, 32",
        "--filter hidden=17,foo: expected key=value, as in time=looped|unrolled,hidden=128; got 'foo'",
    ]


def test_conditions_that_never_meet_are_refused(trials):
    (problem,) = refused(trials, filters=["backend=numpy", "route=onnx"])
    assert problem == (
        f"--filter backend=numpy --filter route=onnx: no trial is all of this, of {len(trials)}; ask for less"
    )


@examples(40)
@given(text=st.text(max_size=20) | st.from_regex(r"\A(hidden|time|backend)=[a-z0-9|]{0,9}\Z"))
def test_no_text_whatever_ends_in_anything_but_trials_or_a_refusal(text):
    try:
        assert select([], filters=[text], only=[]) == []
    except CaseError as error:
        assert error.problems  # noqa: PT017
