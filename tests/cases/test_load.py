"""A case file becomes points, or is refused with every problem at its line and column."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples

from rnnbench.cases import ANCHORS, Case, CaseError, Limits, Measure, Strategy, Target, case_files, load_case, schema
from rnnbench.cases.schema import SETTINGS
from rnnbench.measure import Setting
from rnnbench.rnn import Model

SHIPPED = Path(__file__).parents[2] / "cases"
CASES = [*case_files(SHIPPED), *case_files(SHIPPED / "conformance")]
TARGETS = [Target("numpy", "loop"), Target("iree", "linalg")]


def axis(case: Case, leaf: str) -> list[object]:
    return list(dict.fromkeys(getattr(point, leaf) for point in case.points))


def test_a_list_anywhere_is_an_axis_and_the_rest_has_defaults(load):
    case = load()
    assert (case.name, case.description, len(case.points)) == ("tiny", "", 8)
    first, last = case.points[0], case.points[-1]
    assert first.model == Model(cell="lstm", input=8, hidden=16)
    assert first.strategy == Strategy("looped", "stitched", 1)
    assert (first.steps, first.batch, first.dtype, first.device) == (10, 1, "float32", "cpu")
    assert (first.threads, first.seed) == (1, 0)
    assert last.model.hidden == 32
    assert last.strategy == Strategy("unrolled", "stitched", 4)
    assert (case.limits, case.measure) == (Limits(), Measure())


@pytest.mark.parametrize("name", ["net.onnx", "saved_model.pb", "NET.TFLITE", "net.pt"])
def test_a_model_file_in_the_place_of_a_case_is_told_how_to_become_one(tmp_path, name):
    file = tmp_path / name
    file.write_bytes(b"\x82")
    with pytest.raises(CaseError, match=f"{name}: this is a model file; .*: rnnbench new {file} -o my.yaml"):
        load_case(file)


def test_a_list_of_one_is_the_value_itself(load):
    assert load("input: 8", "input: [8]").points == load().points


def test_a_chunk_of_all_is_the_steps_of_its_point(load):
    case = load("steps: 10, chunk: [1, 4]", "steps: [4, 8], chunk: [4, all]")
    assert sorted({(point.steps, point.strategy.chunk) for point in case.points}) == [(4, 4), (8, 4), (8, 8)]


def test_a_case_that_pins_versions_has_targets_of_its_own(load):
    case = load("", 'pinned: {"onnxruntime:onnx": onnxruntime==1.22.1 numpy==2.2.6, "numpy:eager": numpy==2.2.6}')
    trials = case.trials(TARGETS)
    assert len(trials) == 2 * len(case.points)
    assert {str(trial.target): trial.pinned for trial in trials} == {
        "onnxruntime:onnx": "onnxruntime==1.22.1 numpy==2.2.6",
        "numpy:eager": "numpy==2.2.6",
    }
    others = load("", 'pinned: {"onnxruntime:onnx": onnxruntime==1.20.1}').trials(TARGETS)
    assert {trial.id for trial in others}.isdisjoint(trial.id for trial in trials), "other pins are other trials"


@pytest.mark.parametrize(
    ("pinned", "place"),
    [
        ("{onnxruntime: onnxruntime==1.22.1}", "6:10: pinned.onnxruntime"),
        ('{"numpy:eager": numpy>=2}', "6:25: pinned.numpy:eager"),
        ('{"numpy:eager": "numpy==2.2.6 --index-url=x"}', "6:25: pinned.numpy:eager"),
        ("[numpy==2.2.6]", "6:9: pinned"),
    ],
)
def test_pins_that_pin_nothing_are_refused_with_their_place(load, pinned, place):
    with pytest.raises(CaseError) as raised:
        load("", f"pinned: {pinned}")
    print(raised.value)
    assert place in str(raised.value)


def test_the_anchors_that_the_suite_brings_pin_every_version_of_every_target():
    case = load_case(ANCHORS)
    assert len(case.pinned) >= 3
    assert all("numpy==" in pins for pins in case.pinned.values())


def test_units_are_read_to_seconds_and_bytes(load):
    case = load("", "limits: {build: 1.5min, trial: 1h, memory: 512MiB}\nmeasure: {budget: 500ms, processes: 5}")
    assert case.limits == Limits(90.0, 3600.0, 512 << 20)
    assert case.measure == Measure(0.5, 5)
    assert load("", "limits: {build: 7, memory: 4GB}").limits == Limits(7.0, 300.0, 4 * 10**9)


def test_exclude_drops_what_has_all_of_an_entrys_values(load):
    case = load("", "matrix: {exclude: [{hidden: 32, chunk: [1, 4], time: unrolled}, {chunk: 4}]}")
    kept = {(point.model.hidden, point.strategy.time, point.strategy.chunk) for point in case.points}
    assert kept == {(16, "looped", 1), (16, "unrolled", 1), (32, "looped", 1)}


def test_include_adds_the_product_of_an_entrys_values_whatever_exclude_says(load):
    case = load(
        "",
        "matrix:\n"
        "  exclude: [{hidden: 32}]\n"
        "  include: [{hidden: 32, chunk: all, time: [fused, looped], steps: 7}, {hidden: 32, chunk: 1, time: looped}]",
    )
    added = [
        (point.steps, str(point.strategy), point.strategy.chunk) for point in case.points if point.model.hidden == 32
    ]
    assert added == [(7, "fused-stitched", 7), (7, "looped-stitched", 7), (10, "looped-stitched", 1)]


@pytest.mark.parametrize(
    ("replaced", "by", "message"),
    [
        ("16, 32", "", "case.yaml:3:39: model.hidden: expected at least one value, got an empty list"),
        ("16, 32", "16, 8, 16", "case.yaml:3:47: model.hidden[2]: 16 is in this list twice; remove one"),
        (
            "[1, 4]",
            "[1, 10, all]",
            "case.yaml:4:38: workload.chunk[2]: all is the workload's steps, and 10 is in this axis already; remove",
        ),
        (
            "steps: 10",
            "steps: 3",
            "case.yaml:4:33: workload.chunk[1]: a call of 4 steps is longer than the workload of 3; write a smaller "
            "one or all; or exclude {chunk: 4}",
        ),
        (
            "steps: 10",
            "steps: [10, 3]",
            "case.yaml:4:39: workload.chunk[1]: a call of 4 steps is longer than the workload of 3; write a smaller "
            "one or all; or exclude {chunk: 4, steps: 3}",
        ),
        (
            "[looped, unrolled]",
            "[looped, 'unrolled:4']",
            "case.yaml:5:27: strategy.time[1]: unrolled:4 needs calls of a multiple of 4 steps, and the chunk is 1; or "
            "exclude {time: unrolled:4, chunk: 1}",
        ),
        (
            "stitched",
            "none",
            "case.yaml:4:34: workload.chunk[1]: with state none each call is a whole sequence, and 10 steps are no "
            "multiple of 4; or exclude {chunk: 4}",
        ),
        (
            "lstm,",
            "lstm, direction: bidirectional,",
            "case.yaml:5:45: strategy.state: a bidirectional model needs whole sequences, so its state is none, not "
            "stitched",
        ),
        (
            "lstm,",
            "[lstm, gru], projection: [0, 4],",
            "case.yaml:3:44: model.projection[1]: projection is LSTMP's: a gru has none; leave it out; or exclude "
            "{projection: 4, cell: gru}",
        ),
        ("lstm,", "lstm, reset_after: false,", "case.yaml:3:34: model.reset_after: reset_after belongs to a gru, and"),
        ("lstm,", "counter,", "case.yaml:3:31: model.input: a counter's input and hidden are one size, not 8 and 16"),
        ("[16, 32]", "65536", "case.yaml:3:39: model.hidden: the weights would take 64.0 GiB, and at most 2.0 GiB are"),
        (
            "steps: 10",
            "steps: 1000000, batch: 65536",
            "case.yaml:4:19: workload.steps: the stream would take 3,906.2 GiB",
        ),
        ("", "limits: {build: 9min}", "case.yaml:6:17: limits.build: 540 s is more than the 300 s of limits.trial"),
        (
            "",
            "limits: {endurance: 1s, enough: 2s}",
            "case.yaml:6:33: limits.enough: 2 s is more than the 1 s of limits.endurance",
        ),
        (
            "",
            "measure: {budget: 3s, period: 1s}",
            "case.yaml:6:31: measure.period: 3 processes of at least 4 s take 12 s, more than their 1 s of "
            "measure.budget; give a budget of 36s or more",
        ),
        (
            "",
            "measure: {precision: 0}",
            "case.yaml:6:22: measure.precision: expected a share from 0.1% to 50%, such as 1%",
        ),
        (
            "",
            "measure: {streams: 1s}",
            "case.yaml:6:20: measure.streams: one test has 300 frames of 4 steps, a step every 1 s, and takes 1200 s,",
        ),
        (
            "",
            "measure: {server: 1}",
            "case.yaml:6:19: measure.server: 400 requests may take 1200 s, which do not fit in",
        ),
        (
            "",
            "measure: {server: 0}",
            "case.yaml:6:19: measure.server: expected a number from 0.01 to 1,000,000, got 0",
        ),
        ("", "measure: {budget: 6min}", "case.yaml:6:19: measure.budget: 360 s of sampling do not fit in the 300 s of"),
        (
            "",
            "matrix:\n  exclude:\n    - {hidden: 17}",
            "case.yaml:8:16: matrix.exclude[0].hidden: hidden is never 17 in this case, only 16, 32; correct it",
        ),
        (
            "",
            "matrix: {exclude: [{chunk: [4, all]}]}",
            "case.yaml:6:32: matrix.exclude[0].chunk[1]: chunk is never all in",
        ),
        ("", "matrix: {exclude: [{}]}", "case.yaml:6:20: matrix.exclude[0]: expected at least one key, as in {hidden:"),
        (
            "",
            "matrix: {exclude: [{hidden: []}]}",
            "case.yaml:6:29: matrix.exclude[0].hidden: expected at least one value,",
        ),
        ("", "matrix: {exclude: [{chunk: [1, 4]}]}", "case.yaml:6:10: matrix.exclude: no point is left; drop fewer"),
        (
            "",
            "matrix: {include: [{hidden: 64}]}",
            "case.yaml:6:20: matrix.include[0]: expected a value for every axis of",
        ),
        (
            "",
            "matrix: {include: [{hidden: 16, chunk: [1, all], time: looped}]}",
            "case.yaml:6:20: matrix.include[0]: the point {hidden: 16, chunk: 1, time: looped} is there already",
        ),
        (
            "",
            "matrix: {include: [{hidden: 16, chunk: 11, time: looped}]}",
            "case.yaml:6:40: matrix.include[0].chunk: a call of 11 steps is longer than the workload of 10; write a "
            "smaller one or all",
        ),
        (
            "",
            "matrix: {include: [{hidden: 8, projection: [2, 8], chunk: 1, time: looped}]}",
            "case.yaml:6:48: matrix.include[0].projection[1]: projection 8 must be smaller than hidden 8",
        ),
    ],
)
def test_a_mistake_is_told_where_it_is_with_what_to_do(refusal, replaced, by, message):
    assert refusal(replaced, by)[0].startswith(message)


def test_an_exclude_whose_values_never_meet_is_told(refusal):
    (problem,) = refusal(
        "steps: 10, chunk: [1, 4]}", "steps: [4, 8], chunk: [4, all]}\nmatrix: {exclude: [{steps: 4, chunk: 8}]}"
    )
    assert problem == "case.yaml:5:20: matrix.exclude[0]: no point has all of these values; correct or remove it"


def test_an_include_that_repeats_another_is_told(refusal):
    (problem,) = refusal(
        "", "matrix: {include: [{hidden: 8, chunk: 1, time: fused}, {hidden: 8, chunk: 1, time: fused}]}"
    )
    assert problem.startswith(
        "case.yaml:6:56: matrix.include[1]: the point {hidden: 8, chunk: 1, time: fused} is there"
    )


def test_a_mistake_that_exclude_drops_is_none(load):
    unsound = "[lstm, gru], projection: [0, 4],"
    case = load(
        "cell: lstm, input: 8, hidden: [16, 32]}\n",
        f"cell: {unsound} input: 8, hidden: 16}}\nmatrix: {{exclude: [{{cell: gru, projection: 4}}]}}\n",
    )
    assert {(point.model.cell, point.model.projection) for point in case.points} == {
        ("lstm", 0),
        ("lstm", 4),
        ("gru", 0),
    }


def test_a_matrix_too_large_is_refused_before_it_is_made(refusal, load):
    thousand = ", ".join(map(str, range(1, 1001)))
    (problem,) = refusal("[16, 32]", f"[{thousand}]", max_trials=3_999)
    assert problem.startswith(
        "case.yaml:3:39: the matrix has 4,000 points (hidden 1,000 × chunk 2 × time 2), and at most 3,999 are allowed; "
        "shorten an axis or raise --max-trials"
    )
    assert len(load("[16, 32]", f"[{thousand}]", max_trials=4_000).points) == 4_000
    (problem,) = refusal("input: 8, hidden: [16, 32]", f"input: [{thousand}], hidden: [{thousand}]")
    assert "the matrix has 4,000,000 points" in problem
    (problem,) = refusal("", f"matrix: {{include: [{{hidden: [{thousand}], chunk: 1, time: looped}}]}}", max_trials=100)
    assert problem.startswith(
        "case.yaml:6:19: the matrix has 1,008 points (hidden 2 × chunk 2 × time 2 + 1,000 included)"
    )


def test_an_axis_has_at_most_a_thousand_values(refusal):
    (problem,) = refusal("16, 32", ", ".join(map(str, range(1, 1002))))
    assert problem == "case.yaml:3:39: model.hidden: expected at most 1,000 values, got a list of 1001"


def test_more_targets_than_allowed_are_refused(load):
    case = load()
    assert len(case.trials(TARGETS, max_trials=16)) == 16
    with pytest.raises(CaseError, match="8 points on 2 targets make 16 trials, and at most 15 are allowed"):
        case.trials(TARGETS, max_trials=15)


def test_trials_of_one_point_stand_together_and_carry_all_of_the_case(load):
    case = load("", "limits: {build: 10s}\nmeasure: {processes: 1}")
    trials = case.trials(TARGETS)
    assert [trial.target for trial in trials[:4]] == TARGETS * 2
    assert {(trial.case, trial.limits.build, trial.measure.processes) for trial in trials} == {("tiny", 10.0, 1)}
    assert len({trial.id for trial in trials}) == len(trials) == 16


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_shipped_cases_load_and_are_named_as_their_files(path):
    case = load_case(path)
    assert case.name == path.stem
    assert case.description
    assert case.points
    assert load_case(path, ["measure.budget=500ms", "measure.processes=1"]).points == case.points


values = {
    "hidden": st.lists(st.sampled_from([4, 8, 16]), min_size=1, max_size=3, unique=True),
    "batch": st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True),
    "chunk": st.lists(st.sampled_from([1, 2, 4, 6, 12, "all"]), min_size=1, max_size=3, unique=True),
    "time": st.lists(
        st.sampled_from(["fused", "looped", "unrolled", "unrolled:2"]), min_size=1, max_size=3, unique=True
    ),
    "state": st.lists(st.sampled_from(["none", "stitched", "stateful"]), min_size=1, max_size=3, unique=True),
}


@examples(20)
@given(st.fixed_dictionaries(values), st.data())
def test_ids_are_unique_and_points_are_the_product(tmp_path_factory, axes, data):
    path = tmp_path_factory.mktemp("cases") / "case.yaml"
    dropped = {leaf: data.draw(st.sampled_from(axes[leaf]), label=leaf) for leaf in ("hidden", "batch")}
    path.write_text(
        f"schema: 1\nname: x\nmodel: {{cell: gru, input: 4, hidden: {axes['hidden']}}}\n"
        f"workload: {{steps: 12, batch: {axes['batch']}, chunk: {axes['chunk']}}}\n"
        f"strategy: {{time: {axes['time']}, state: {axes['state']}}}\n"
        f"matrix: {{exclude: [{{hidden: {dropped['hidden']}, batch: {dropped['batch']}}}]}}\n"
    )
    whole = math.prod(map(len, axes.values()))
    try:
        case = load_case(path)
    except CaseError as error:
        odd = "unrolled:2" in axes["time"] and 1 in axes["chunk"]
        double = {12, "all"} <= set(axes["chunk"])
        assert odd or double or len(axes["hidden"]) == len(axes["batch"]) == 1, error  # noqa: PT017
        return
    assert len(case.points) == whole - whole // len(axes["hidden"]) // len(axes["batch"])
    ids = [trial.id for trial in case.trials(TARGETS)]
    assert len(set(ids)) == len(ids) == 2 * len(case.points)


leaves = st.sampled_from(["cell", "hidden", "steps", "chunk", "time", "state", "clip", "bias", "foo", "dtype"])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(
    ["lstm", "gru", "all", "looped", "unrolled:4", "none", "stateful", "4GiB", "3s", "", "ü"]
)  # fmt: skip
nested = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(leaves, inner, max_size=3), max_leaves=6
)
SECTIONS = ["schema", "name", "model", "workload", "strategy", "target", "matrix", "limits", "measure", "other"]


@examples(80)
@given(st.dictionaries(st.sampled_from(SECTIONS), nested, max_size=9), st.data())
def test_no_mapping_whatever_ends_in_anything_but_a_case_or_a_located_refusal(tmp_path_factory, mapping, data):
    """Sections of a sound case are replaced by whatever Hypothesis makes of them."""
    sound = {
        "schema": 1,
        "name": "x",
        "model": {"cell": "lstm", "input": 4, "hidden": [4, 8]},
        "workload": {"steps": 8, "chunk": [1, "all"]},
        "strategy": {"time": "looped", "state": "stitched"},
        "matrix": {
            "exclude": data.draw(st.lists(st.dictionaries(leaves, nested, max_size=2), max_size=2)),
            "include": data.draw(st.lists(st.dictionaries(leaves, nested, max_size=4), max_size=2)),
        },
    }
    path = tmp_path_factory.mktemp("cases") / "case.yaml"
    path.write_text(json.dumps(sound | mapping).replace("Infinity", ".inf").replace("NaN", ".nan"))
    try:
        case = load_case(path)
    except CaseError as error:
        assert error.problems  # noqa: PT017
        assert all(problem.place.line == 1 and problem.message for problem in error.problems)  # noqa: PT017
    else:
        assert len({trial.id for trial in case.trials(TARGETS)}) == 2 * len(case.points)


def test_no_line_to_exclude_is_offered_where_no_point_is_sound(refusal):
    assert all("exclude" not in problem for problem in refusal("[1, 4]", "[11, 12]"))


@pytest.mark.parametrize(
    ("replaced", "by"),
    [("[looped", "['unrolled:4'"), ("steps: 10", "steps: [10, 3]"), ("lstm,", "[lstm, gru], projection: [0, 4],")],
)
def test_the_line_that_a_mistake_says_to_exclude_mends_it(load, refusal, replaced, by):
    (problem,) = refusal(replaced, by)
    entry = problem.partition("or exclude ")[2]
    assert load(replaced, by, overrides=[f"matrix.exclude=[{entry}]"]).points


def test_long_running_checks_have_time_only_where_it_is_given(load):
    case = load("", "limits: {endurance: 5s}")
    assert case.endurance == 5.0
    assert {trial.limits.endurance for trial in case.trials(TARGETS)} == {0.0}
    assert {trial.limits.endurance for trial in case.trials(TARGETS, endurance=case.endurance)} == {5.0}


def test_a_time_that_is_enough_holds_only_with_the_cases_own_time(load):
    case = load("", "limits: {endurance: 5s, enough: 50ms}")
    assert {trial.limits.enough for trial in case.trials(TARGETS, endurance=case.endurance)} == {0.05}
    assert {trial.limits.enough for trial in case.trials(TARGETS, endurance=60.0)} == {None}


def test_how_precisely_cold_and_paced_is_for_the_case_to_say(load):
    measure = load("", "measure: {precision: 1%, cold: true, period: 10ms}").measure
    assert measure.precision == pytest.approx(0.01)
    assert measure.settings == {"cold": 1.0, "period": pytest.approx(0.01)}
    assert load("", "measure: {cold: false, period: null}").measure == Measure(), "only what is asked for"


def test_a_new_latency_path_needs_no_change_of_the_schema(monkeypatch):
    twice = Setting("twice", "flag", "Whether to time two calls as one.")
    monkeypatch.setattr(schema, "SETTINGS", {**SETTINGS, "twice": twice})
    section = schema.measure_section()
    assert section.model_validate({"twice": True}).twice is True
    assert section.model_fields["twice"].description == twice.description


def test_thresholds_of_a_comparison_go_to_every_trial_and_change_no_id(load):
    plain, loose = load(), load("", "compare: {latency: 5%, operations: 0, memory: null}")
    assert plain.thresholds == {}
    assert loose.thresholds == {"latency": pytest.approx(0.05), "operations": 0}
    target = [Target("numpy", "eager")]
    assert [trial.id for trial in plain.trials(target)] == [trial.id for trial in loose.trials(target)]
    assert {trial.thresholds["latency"] for trial in loose.trials(target)} == {loose.thresholds["latency"]}


def test_a_path_that_a_device_does_not_have_is_left_out_there(load):
    case = load("", "target: {device: [cpu, vulkan]}\nmeasure: {cold: true, period: 10ms}")
    settings = {trial.device: set(trial.measure.settings) for trial in case.trials([Target("iree", "linalg")])}
    assert settings == {"cpu": {"cold", "period"}, "vulkan": {"period"}}


@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_rows_of_their_own_lengths_end_inside_whole_sequences(refusal, load, state):
    ragged = ("steps: 10, chunk: [1, 4]", "steps: 10, chunk: 10, lengths: ragged")
    (problem,) = refusal(*ragged, overrides=[f"strategy.state={state}"])
    assert f"rows end inside whole sequences, so state is none, not {state}" in problem
    assert load(*ragged, overrides=["strategy.state=none"]).points


def test_the_size_of_a_stream_counts_its_batch_its_wider_side_and_its_type(refusal, load):
    def stream(steps, batch, inputs, dtype):
        by = f"input: {inputs}, hidden: 16}}\nworkload: {{steps: {steps}, chunk: 1, batch: {batch}, dtype: {dtype}}}\n"
        return (
            "input: 8, hidden: [16, 32]}\nworkload: {steps: 10, chunk: [1, 4]}\n",
            by,
        )

    two_gib = (1 << 19, 64, 16, "float32")
    assert load(*stream(*two_gib), overrides=["strategy.time=looped"]).points
    for larger in ((1 << 19, 65, 16, "float32"), (1 << 19, 64, 17, "float32"), (1 << 19, 64, 16, "float64")):
        problems = refusal(*stream(*larger), overrides=["strategy.time=looped"])
        assert any("the stream would take" in problem for problem in problems)


def test_a_call_may_be_as_long_as_the_workload_and_a_loop_needs_a_multiple_of_its_copies(refusal, load):
    assert load("[1, 4]", "10").points
    (problem,) = refusal("[1, 4]", "[6]", overrides=["strategy.time=[unrolled:4]"])
    assert "unrolled:4 needs calls of a multiple of 4 steps, and the chunk is 6" in problem


def test_a_mistake_in_a_later_include_is_told_there(refusal):
    (problem,) = refusal(
        "", "matrix: {include: [{hidden: 8, chunk: 1, time: fused}, {hidden: 8, chunk: 11, time: fused}]}"
    )
    assert problem.startswith("case.yaml:6:75: matrix.include[1].chunk: a call of 11 steps is longer than")


def test_the_weights_may_take_two_gib(refusal, load):
    assert load("[16, 32]", "11580").points
    (problem,) = refusal("[16, 32]", "11584")
    assert "the weights would take 2.0 GiB, and at most 2.0 GiB are allowed" in problem
