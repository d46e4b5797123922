"""Expected failures: which trials an entry describes, and how a mistake in a file is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from harness_trials import make_trial

from rnnbench.backends.base import Probe
from rnnbench.cases import (
    CaseError,
    ExpectedFailure,
    Strategy,
    Target,
    expected_failures,
    expected_failures_for,
    expected_failures_of,
    files,
    load_case,
)
from rnnbench.cases.expected_failures import read_expected_failures
from rnnbench.rnn import Model

CHECKS = {"values": ("values",), "chunks": ("chunks",), "batch": ("batch",), "numbers": ("values", "chunks")}
TRIAL = replace(make_trial("openvino:onnx", "fused"), model=Model(cell="gru", input=3, hidden=4), batch=2)
VERSIONS = {"openvino": "2026.4.1", "onnx": "1.23.2"}
INSTALLED = Probe(("onnx", "opset"), VERSIONS)
NAMES = ("jax", "openvino")


class WithRing(Model):
    @property
    def traits(self):
        return {"ring": frozenset({"h"}), "scatter": frozenset()}


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
    def read(text: str = ENTRY) -> tuple[ExpectedFailure, ...]:
        path = tmp_path / "expectations.yaml"
        path.write_text(text)
        return read_expected_failures(path, CHECKS)

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


def test_a_name_may_stand_for_several_checks(entries):
    (entry,) = entries(ENTRY.replace("[chunks, batch]", "[batch, numbers, chunks]"))
    assert entry.also == ("batch", "values", "chunks")


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
    assert expected_failures_of(TRIAL, VERSIONS, entries()) == entries()
    assert expected_failures_of(other, VERSIONS, entries()) == ()


@pytest.mark.parametrize(
    ("version", "described"), [("2026.4.1", True), ("2026.5.0.dev1", True), ("2026.3.0", False), ("2027.0", False)]
)
def test_an_entry_holds_within_its_range_of_versions(entries, version, described):
    assert bool(expected_failures_of(TRIAL, {"openvino": version}, entries())) == described


ON_A_GPU = ENTRY.replace("openvino: ", "onnxruntime: ").replace("backend: openvino", "backend: onnxruntime")


@pytest.mark.parametrize("distribution", ["onnxruntime", "onnxruntime-gpu"])
def test_an_entry_holds_for_every_distribution_of_its_package(entries, distribution):
    (entry,) = entries(ON_A_GPU)
    trial = replace(TRIAL, target=Target("onnxruntime", "onnx"))
    assert expected_failures_of(trial, {distribution: "2026.4.1"}, (entry,)) == (entry,)
    assert expected_failures_of(trial, {distribution: "2026.3.0"}, (entry,)) == ()
    assert list(entry.unknown_names(Probe(("onnx",), {distribution: "2026.4.1"}))) == []


def test_an_entry_does_not_hold_where_its_distribution_is_not_told(entries):
    assert expected_failures_of(TRIAL, {"onnx": "1.23.2"}, entries()) == ()


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


@pytest.mark.parametrize(
    ("replaced", "by", "says"),
    [
        ("backend: openvino", "bakend: openvino", "unknown key 'bakend' in expectations[0]; did you mean 'backend'?"),
        ("check: values", "check: value", ":7:12: expectations[0].check: there is no check 'value'; did you mean"),
        ("[chunks, batch]", "[chunk]", "there is no check 'chunk'; did you mean 'chunks'?"),
        ("check: values", "check: numbers", "expectations[0].check: there is no check 'numbers'"),
        ("check: values", "outcome: exploded", "expected one of build-failed, run-failed, crashed"),
        ("    check: values\n    also: [chunks, batch]\n", "", "expected either check or outcome"),
        ("check: values\n", "outcome: crashed\n", "also: goes with check only"),
        ("also: [chunks, batch]", "outcome: crashed", "expected either check or outcome"),
        ("check: values", "contains: rings", "contains: no file is known to have 'rings'; did you mean 'ring'?"),
        ("check: values", "contains: ring\n    check: values", "check: write also: such a file may pass"),
        ("check: values", "says: SIGSEGV\n    check: values", "says: goes with contains and outcome only"),
        ("time: fused", "time: fusd", "got the text 'fusd'; did you mean 'fused'?"),
        ("time: fused", 'time: "> 1"', ":6:19: expectations[0].where.time: expected one of fused, looped"),
        ('batch: "> 1"', 'batch: "> one"', "a comparison such as '> 1'"),
        ('">=2026.4,<2027"', '"at least 2026.4"', ":4:25: expectations[0].version.openvino: expected a range"),
        ('">=2026.4,<2027"', "2026.4", "expected a text of at most 200 characters, got 2026.4"),
        ("check: values", "processor: {avx2: 1}\n    check: values", "processor.avx2: expected true or false, got 1"),
        ("check: values", "processor: {A 2: true}\n    check: values", "'_' and '-' as the key, got 'A 2'"),
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


def test_an_entry_about_what_a_file_contains_describes_such_files_alone(entries):
    text = ENTRY.replace("check: values", "contains: ring").replace('{time: fused, batch: "> 1", chunk: ">1"}', "{}")
    (entry,) = entries(text)
    assert (entry.contains, entry.check, entry.also) == (("ring",), (), ("chunks", "batch"))
    assert not entry.describes(TRIAL, VERSIONS)
    assert entry.describes(replace(TRIAL, model=WithRing(cell="gru", input=3, hidden=4)), VERSIONS)


@pytest.mark.parametrize(("features", "described"), [("avx2 fma", True), ("avx2 avx_vnni", False), ("neon", False)])
def test_an_entry_about_a_processor_describes_trials_on_such_a_one_alone(entries, monkeypatch, features, described):
    monkeypatch.setattr(expected_failures, "processor_features", lambda: frozenset(features.split()))
    (entry,) = entries(ENTRY.replace("check: values", "check: values\n    processor: {avx2: true, avx_vnni: false}"))
    assert entry.describes(TRIAL, VERSIONS) is described


def test_what_a_backend_does_not_have_is_told_where_the_backend_is_here(entries):
    (entry,) = entries(ENTRY.replace("route: onnx", "route: onxx").replace("{openvino:", "{openvno:"))
    assert list(entry.unknown_names(INSTALLED)) == [
        "openvino has no route 'onxx'; did you mean 'onnx'?",
        "openvino tells no version of 'openvno'; did you mean 'openvino'?",
    ]


CASE = """\
schema: 1
name: {name}
model: {{cell: lstm, input: 8, hidden: 16}}
workload: {{steps: 10}}
strategy: {{time: looped, state: stitched}}
"""
OTHER_BACKEND = """\
  - {backend: jax, check: values, reason: Another backend's., upstream: "https://example.org/1"}
"""


@pytest.fixture
def cases(tmp_path: Path, monkeypatch):
    """Two cases that share a file of expected failures, and one without any, also of the suite's."""
    monkeypatch.setattr(files, "SHIPPED", ())
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "expectations.yaml").write_text(ENTRY + OTHER_BACKEND)
    paths = {name: tmp_path / folder / f"{name}.yaml" for name, folder in (("a", "shared"), ("b", "shared"), ("c", ""))}
    for name, path in paths.items():
        path.write_text(CASE.format(name=name))
    return [load_case(path) for path in paths.values()]


def test_a_backend_that_is_not_installed_here_may_be_so_where_its_trials_run(entries):
    """Its versions are then those of what is left of its packages: none, or `onnx` alone."""
    (entry,) = entries(ENTRY)
    assert list(entry.unknown_names(Probe((), {"onnx": "1.20.0"}, "openvino is not installed"))) == []
    assert entry.describes(TRIAL, VERSIONS)


def test_each_case_has_the_entries_of_the_backends_that_run(cases):
    by_case = expected_failures_for(cases, {"openvino": INSTALLED}, CHECKS, names=NAMES)
    assert [[entry.backend for entry in by_case[name]] for name in "abc"] == [["openvino"], ["openvino"], []]


def test_one_file_may_be_named_for_all_cases(cases, tmp_path):
    by_case = expected_failures_for(
        cases, {"jax": INSTALLED}, CHECKS, tmp_path / "shared" / "expectations.yaml", names=NAMES
    )
    assert [[entry.backend for entry in by_case[name]] for name in "abc"] == [["jax"]] * 3


def test_a_file_is_read_once(cases, monkeypatch):
    read_paths = []

    def read_and_note(path, check_names):
        read_paths.append(path)
        return read_expected_failures(path, check_names)

    monkeypatch.setattr(expected_failures, "read_expected_failures", read_and_note)
    expected_failures_for(cases, {"openvino": INSTALLED}, CHECKS, names=NAMES)
    assert len(read_paths) == 1


def test_a_backend_of_a_package_that_other_machines_have_is_left_out(cases):
    by_case = expected_failures_for(cases, {"openvino": INSTALLED}, CHECKS, names=("openvino", "torch"))
    assert [[entry.backend for entry in by_case[name]] for name in "abc"] == [["openvino"], ["openvino"], []]


def test_a_misspelt_backend_is_told_with_its_place_whichever_backends_run(cases):
    with pytest.raises(CaseError, match=r"expectations\.yaml:11:5: there is no backend 'jax'; did you mean 'jaxx'\?"):
        expected_failures_for(cases, {"openvino": INSTALLED}, CHECKS, names=("jaxx", "openvino"))


def test_a_route_that_does_not_exist_is_told_with_its_place(cases):
    with pytest.raises(CaseError, match=r"expectations\.yaml:3:5: openvino has no route 'onnx'"):
        expected_failures_for(cases, {"openvino": Probe(("opset",), VERSIONS)}, CHECKS, names=NAMES)


@pytest.mark.parametrize(
    ("where", "described"),
    [
        ("{hidden: '<= 4'}", True),
        ("{hidden: '>= 5'}", False),
        ("{hidden: '> 4'}", False),
        ("{chunk: '>= 12'}", True),
        ("{chunk: all}", True),
        ("{chunk: '< 12'}", False),
        ("{hidden: 4, batch: 1}", False),
    ],
)
def test_a_comparison_holds_for_a_number_also_where_it_is_written_as_all(entries, where, described):
    whole = replace(TRIAL, strategy=Strategy("fused", "none", TRIAL.steps))
    assert whole.steps == 12
    (entry,) = entries(ENTRY.replace('{time: fused, batch: "> 1", chunk: ">1"}', where))
    assert entry.describes(whole, VERSIONS) == described


def test_a_file_must_contain_all_that_an_entry_names(entries):
    text = ENTRY.replace("check: values", "contains: [ring, scatter]").replace(
        '{time: fused, batch: "> 1", chunk: ">1"}', "{}"
    )
    (entry,) = entries(text)

    class RingAlone(Model):
        @property
        def traits(self):
            return {"ring": frozenset({"h"})}

    both, one = (replace(TRIAL, model=kind(cell="gru", input=3, hidden=4)) for kind in (WithRing, RingAlone))
    assert entry.describes(both, VERSIONS)
    assert not entry.describes(one, VERSIONS)


@pytest.mark.parametrize("key", ["stage: build", "says: SIGSEGV"])
def test_what_an_outcome_says_goes_with_what_a_file_contains(entries, key):
    of_file = ENTRY.replace(
        "check: values\n    also: [chunks, batch]", f"contains: ring\n    {key}\n    outcome: crashed"
    )
    assert len(entries(of_file)) == 1
    for without in ("contains: ring\n    ", "outcome: crashed"):
        with pytest.raises(CaseError, match=r"goes with contains and outcome only|expected either check or outcome"):
            entries(of_file.replace(without, "" if "ring" in without else "also: chunks"))


def test_a_failure_is_named_by_checks_or_by_an_outcome_and_not_by_both(refusal):
    assert "expected either check or outcome" in refusal("check: values", "check: values\n    outcome: crashed")


def test_a_file_that_is_named_counts_before_the_cases_own(cases, tmp_path):
    named = tmp_path / "named.yaml"
    named.write_text(ENTRY.replace("An exported operator", "A named operator"))
    by_case = expected_failures_for(cases, {"openvino": INSTALLED}, CHECKS, named, names=NAMES)
    assert {entry.reason.split()[1] for entries in by_case.values() for entry in entries} == {"named"}
