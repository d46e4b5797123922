"""`--set` replaces parts of a case, under the same checks, and its errors quote the option."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples

from rnnbench.cases import CaseError
from rnnbench.cases.overrides import override
from rnnbench.yaml_files import Place, Source


def test_a_value_a_list_and_a_whole_section_can_be_set(load):
    assert {point.model.hidden for point in load(overrides=["model.hidden=256"]).points} == {256}
    assert {point.strategy.chunk for point in load(overrides=["workload.chunk=[2, all]"]).points} == {2, 10}
    assert load(overrides=["limits={build: 10s}"]).limits.build == 10.0
    assert load(overrides=["target.threads=2"]).points[0].threads == 2
    assert load(overrides=["name=other"]).name == "other"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.hiden=256", "unknown key 'hiden' in model; did you mean 'hidden'?"),
        ("modl.hidden=256", "unknown key 'modl'; did you mean 'model'?"),
        ("hidden=256", "unknown key 'hidden'; did you mean model.hidden?"),
        (
            "model.hidden='256'",
            "model.hidden: expected a whole number from 1 to 65,536, or a list of such, got the text '256'",
        ),
        ("model.hidden=", "expected section.key=value, as in --set model.hidden=256"),
        ("model.hidden=null", "model.hidden: expected a whole number from 1 to 65,536, or a list of such, got nothing"),
        (
            "workload.chunk=[1,16]",
            "workload.chunk[1]: a call of 16 steps is longer than the workload of 10; write a smaller",
        ),
        ("workload.chunk=[1,", "not YAML: expected the node content, but found '<stream end>'"),
        ("model.hidden=&a 1", "the anchor &a is not allowed in a case; write each value out"),
        ("name.x=1", "there are no keys under name; expected section.key=value"),
        ("model.hidden", "expected section.key=value, as in --set model.hidden=256"),
        (".hidden=1", "expected section.key=value, as in --set model.hidden=256"),
        (
            "matrix.exclude=[{hidden: 7}]",
            "matrix.exclude[0].hidden: hidden is never 7 in this case, only 16, 32; correct it",
        ),
    ],
)
def test_a_mistake_quotes_the_option(refusal, setting, message):
    (problem,) = refusal(overrides=[setting])
    assert problem.startswith(f"--set {setting}: {message}")


def test_a_key_is_set_once(refusal):
    (problem,) = refusal(overrides=["model.hidden=8", "model.hidden=16"])
    assert problem == "--set model.hidden=16: model.hidden is set twice; give it once"


def test_every_wrong_option_is_told_at_once(refusal):
    problems = refusal(overrides=["foo", "model.hidden=[", "bar"])
    assert [problem.split(":")[0] for problem in problems] == ["--set foo", "--set model.hidden=[", "--set bar"]


def test_a_pattern_that_only_a_setting_makes_idle_is_no_mistake(load, refusal):
    excluding = "matrix: {exclude: [{hidden: 16, chunk: 4}]}"
    assert len(load("", excluding, overrides=["model.hidden=64"]).points) == 4
    including = "matrix: {include: [{hidden: 64, chunk: 1, time: looped}]}"
    assert len(load("", including, overrides=["model.hidden=64"]).points) == 4
    idle = "matrix: {exclude: [{hidden: 17}]}"
    assert "hidden is never 17" in refusal("", idle, overrides=["workload.steps=20"])[0]


def test_a_setting_can_make_a_case_sound_and_small(load):
    assert load("16, 32", "16, x", overrides=["model.hidden=16"]).points
    many = ", ".join(map(str, range(1, 1001)))
    assert load("[16, 32]", f"[{many}]", overrides=["model.hidden=16"], max_trials=10).points


def test_the_file_itself_stays_as_it_was():
    source = Source("f", {"model": {"hidden": 1}})
    assert override(source, ["model.hidden=2", "limits.build=3"]).data == {
        "model": {"hidden": 2},
        "limits": {"build": 3},
    }
    assert source.data == {"model": {"hidden": 1}}


@pytest.mark.proof
@examples(40)
@given(st.text(max_size=30) | st.from_regex(r"\A[a-z]{0,6}\.[a-z]{0,6}=.{0,20}\Z"))
def test_no_setting_whatever_ends_in_anything_but_data_or_a_refusal(setting):
    try:
        override(Source("f", {"model": {"hidden": 1}, "name": "x"}), [setting])
    except CaseError as error:
        assert all(problem.place.source == f"--set {setting}" for problem in error.problems)  # noqa: PT017


def test_a_mistake_of_the_file_in_a_section_that_a_setting_changes_is_told_in_the_file(refusal):
    (problem,) = refusal("input: 8, ", "", overrides=["model.hidden=4"])
    assert problem.startswith("case.yaml:3:")
    assert "'input' is missing" in problem


def test_a_section_stays_where_the_file_has_it_and_one_that_a_setting_makes_is_the_settings():
    place = Place("f", 3, 8)
    source = override(Source("f", {"model": {"hidden": 1}}, {("model",): place}), ["model.hidden=2", "limits.build=3"])
    assert source.place(("model",)) == place
    assert source.place(("limits",)).source == "--set limits.build=3"
