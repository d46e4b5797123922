"""Known failures: which trials an entry describes, and what a file that is wrong is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from harness_trials import make_trial

from rnnbench.cases import CaseError, Strategy, Target
from rnnbench.cases.expectations import Expectation, expected, nearest, read_expectations
from rnnbench.rnn.spec import Model

CHECKS = ("values", "chunks", "batch")
TRIAL = replace(make_trial("openvino:onnx", "fused"), model=Model(cell="gru", input=3, hidden=4), batch=2)
VERSIONS = {"openvino": "2026.4.1", "onnx": "1.23.2"}
ENTRY = """\
schema: 1
expectations:
  - backend: openvino
    version: {openvino: ">=2026.4,<2027"}
    route: onnx
    where: {time: fused, batch: "> 1", chunk: ">1"}
    check: values
    also: [chunks, batch]
    reason: An exported operator over a batch has batch and steps changed round.
    upstream: https://github.com/openvinotoolkit/openvino/issues/1
"""


@pytest.fixture
def entries(tmp_path: Path):
    def read(text: str = ENTRY) -> tuple[Expectation, ...]:
        path = tmp_path / "expectations.yaml"
        path.write_text(text)
        return read_expectations(path, CHECKS)

    return read


@pytest.fixture
def refusal(entries, tmp_path: Path):
    def told(replaced: str, by: str) -> str:
        assert replaced in ENTRY
        with pytest.raises(CaseError) as caught:
            entries(ENTRY.replace(replaced, by))
        return str(caught.value).replace(f"{tmp_path}/", "")

    return told


def test_an_entry_says_what_fails_why_and_where_it_is_written(entries, tmp_path):
    (entry,) = entries()
    assert (entry.check, entry.also, entry.outcome) == (("values",), ("chunks", "batch"), None)
    assert entry.reason.startswith("An exported operator")
    assert entry.place == f"{tmp_path}/expectations.yaml:3:5"


@pytest.mark.parametrize(
    "other",
    [
        replace(TRIAL, target=Target("openvino", "opset")),
        replace(TRIAL, target=Target("onnxruntime", "onnx")),
        replace(TRIAL, strategy=Strategy("looped", "stitched", 4)),
        replace(TRIAL, strategy=Strategy("fused", "stitched", 1)),
        replace(TRIAL, batch=1),
    ],
    ids=lambda trial: trial.id,
)
def test_an_entry_describes_only_trials_that_are_all_it_says(entries, other):
    assert expected(TRIAL, VERSIONS, entries()) == entries()
    assert expected(other, VERSIONS, entries()) == ()


@pytest.mark.parametrize(
    ("version", "described"), [("2026.4.1", True), ("2026.5.0.dev1", True), ("2026.3.0", False), ("2027.0", False)]
)
def test_an_entry_holds_within_its_range_of_versions(entries, version, described):
    assert bool(expected(TRIAL, {"openvino": version}, entries())) == described


def test_an_entry_does_not_hold_where_its_distribution_is_not_told(entries):
    assert expected(TRIAL, {"onnx": "1.23.2"}, entries()) == ()


@pytest.mark.parametrize(
    ("where", "described"),
    [
        ("{cell: gru}", True),
        ("{cell: [lstm, rnn]}", False),
        ("{reset_after: true}", True),
        ("{clip: null}", True),
        ("{clip: '>0'}", False),
        ("{chunk: all}", False),
        ("{hidden: [3, '>= 4']}", True),
        ("{hidden: '< 4'}", False),
        ("{}", True),
    ],
)
def test_any_key_of_a_case_may_describe(entries, where, described):
    (entry,) = entries(ENTRY.replace('{time: fused, batch: "> 1", chunk: ">1"}', where))
    assert entry.describes(TRIAL, VERSIONS) == described


def test_what_a_comparison_is_made_with_must_be_set(entries):
    (entry,) = entries(ENTRY.replace('{time: fused, batch: "> 1", chunk: ">1"}', "{clip: '> 0'}"))
    clipped = replace(TRIAL, model=TRIAL.model.model_copy(update={"clip": 0.5}))
    assert entry.describes(clipped, VERSIONS)
    assert not entry.describes(TRIAL, VERSIONS)


def test_the_nearest_file_above_a_case_counts(tmp_path):
    folder = tmp_path / "cases" / "conformance"
    folder.mkdir(parents=True)
    (tmp_path / "cases" / "expectations.yaml").touch()
    assert nearest(folder / "sizes.yaml") == tmp_path / "cases" / "expectations.yaml"
    (folder / "expectations.yaml").touch()
    assert nearest(folder / "sizes.yaml") == folder / "expectations.yaml"


@pytest.mark.parametrize(
    ("replaced", "by", "says"),
    [
        ("backend: openvino", "bakend: openvino", "unknown key 'bakend' in expectations[0]; did you mean 'backend'?"),
        ("check: values", "check: value", ":7:12: expectations[0].check: there is no check 'value'; did you mean"),
        ("[chunks, batch]", "[chunk]", "there is no check 'chunk'; did you mean 'chunks'?"),
        ("check: values", "outcome: exploded", "expected one of build-failed, run-failed, crashed"),
        ("    check: values\n    also: [chunks, batch]\n", "", "expected either check or outcome"),
        ("check: values\n", "outcome: crashed\n", "also: goes with check only"),
        ("also: [chunks, batch]", "outcome: crashed", "expected either check or outcome"),
        ("time: fused", "time: fusd", "got the text 'fusd'; did you mean 'fused'?"),
        ("time: fused", 'time: "> 1"', ":6:19: expectations[0].where.time: expected one of fused, looped"),
        ('batch: "> 1"', 'batch: "> one"', "a comparison such as '> 1'"),
        ('">=2026.4,<2027"', '"at least 2026.4"', ":4:25: expectations[0].version.openvino: expected a range"),
        ('">=2026.4,<2027"', "2026.4", "expected a text of at most 200 characters, got 2026.4"),
        ("https://github.com", "github.com", "expected an address that begins with https://"),
        (
            "    reason: An exported operator over a batch has batch and steps changed round.\n",
            "",
            "'reason' is missing",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(refusal, replaced, by, says):
    told = refusal(replaced, by)
    assert told.startswith("expectations.yaml:")
    assert says in told


def test_what_a_backend_does_not_have_is_told_where_the_backend_is_here(entries):
    (entry,) = entries(ENTRY.replace("route: onnx", "route: onxx").replace("{openvino:", "{openvno:"))
    assert list(entry.mistakes(("onnx", "opset"), ("openvino", "onnx"))) == [
        "openvino has no route 'onxx'; did you mean 'onnx'?",
        "openvino tells no version of 'openvno'; did you mean 'openvino'?",
    ]
