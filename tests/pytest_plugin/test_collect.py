"""Which files are collected, what their tests are called, how they are chosen, and how mistakes are told."""

from __future__ import annotations

import subprocess
import sys

import pytest
from waiting import PATIENCE_S

from rnnbench.pytest_plugin.collect import looks_like_case

pytest_plugins = ["pytester"]
CASE_KEYS = "schema: 1\nname: a\nmodel: {}\n"


def collected(tiny, *arguments):
    """The ids that pytest would run."""
    result = tiny.runpytest_inprocess("--collect-only", "-q", *arguments)
    return [line for line in result.outlines if "::" in line]


def test_a_trial_is_a_test_whose_id_says_what_it_is(tiny):
    ids = collected(tiny, "--rnnbench-backend=fake:honest,numpy")
    assert len(ids) == 16
    assert ids[0].startswith("tiny.yaml::fake:honest/looped-stitched/h4-b1-c2-float32-cpu-t1-")
    assert ids == collected(tiny, "--rnnbench-backend=fake:honest,numpy"), "in the same order every time"


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        (("-k", "honest and stateful and looped"), 2),
        (("-m", "rnnbench(backend='numpy', hidden=4, state='stateful')"), 4),
        (("--rnnbench-set", "model.hidden=[5, 6]", "-m", "rnnbench(hidden=5)"), 16),
    ],
)
def test_trials_are_chosen_by_name_and_by_what_they_are(tiny, arguments, number):
    assert len(collected(tiny, "--strict-markers", "--rnnbench-backend=fake:honest,numpy", *arguments)) == number


def test_a_folder_is_searched_for_cases_only_where_backends_are_asked_for(tiny):
    assert collected(tiny) == []
    tiny.makeini("[pytest]\nrnnbench_backend = numpy")
    assert len(collected(tiny)) == 8


def test_a_case_that_is_named_runs_on_every_backend_that_is_here(tiny):
    backends = {test.partition("::")[2].partition(":")[0] for test in collected(tiny, "tiny.yaml")}
    assert {"fake", "numpy"} <= backends
    assert "absent" not in backends


@pytest.mark.parametrize(
    ("text", "is_case"),
    [
        (CASE_KEYS, True),
        (CASE_KEYS.replace("schema: 1\n", "") + "strategy: {}\n", True),
        (CASE_KEYS + "workload: {chunk: [1\n", True),
        ("schema: 1\nexpectations: []\n", False),
        ("name: workflow\nstrategy: {matrix: {model: [a]}}\njobs: {}\n", False),
        ("services:\n  name: a\n  model: b\n  schema: c\n", False),
        ("", False),
    ],
    ids=["a case", "lacks a key", "no YAML", "expectations", "another format", "keys further in", "empty"],
)
def test_what_is_taken_for_a_case(tmp_path, text, is_case):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    assert looks_like_case(path) == is_case


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("backend", "says"),
    [
        ("fakee", "unknown backend 'fakee'; did you mean 'fake'?"),
        ("fake:honst", "unknown route 'fake:honst'; did you mean 'honest'?"),
        ("absent", "absent-runtime is not installed; install it with: pip install 'rnnbench[absent]'"),
    ],
)
def test_a_backend_that_is_not_there_stops_pytest_before_anything_runs(tiny, backend, says):
    result = tiny.runpytest_inprocess(f"--rnnbench-backend={backend}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert says in result.stderr.str()
    assert "Traceback" not in result.stderr.str()


def test_what_is_wrong_with_a_case_is_told_with_its_place(tiny):
    case = tiny.path / "tiny.yaml"
    tiny.path.joinpath("bad.yaml").write_text(case.read_text().replace("hidden: 4", "hiden: 4"))
    result = tiny.runpytest_inprocess("--rnnbench-backend=fake:honest")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*ERROR collecting bad.yaml*", "bad.yaml:3:31: * did you mean 'hidden'?"])
    assert "Traceback" not in result.stdout.str()
    assert ".py:" not in result.stdout.str(), "nobody needs to know where in the suite it was found"


def test_what_is_wrong_with_the_expectations_is_told_with_its_place(tiny):
    tiny.path.joinpath("expectations.yaml").write_text("schema: 1\nexpectations: [{backend: fake, chek: values}]\n")
    result = tiny.runpytest_inprocess("--rnnbench-backend=fake:honest")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["expectations.yaml:2:* did you mean 'check'?"])


def test_an_override_that_is_wrong_is_quoted(tiny):
    result = tiny.runpytest_inprocess("--rnnbench-backend=fake", "--rnnbench-set=model.hidn=3")
    result.stdout.fnmatch_lines(["--set model.hidn=3: unknown key 'hidn' in model; did you mean 'hidden'?"])


def test_trials_that_were_not_fully_checked_are_named_at_the_end(pytester):
    pytester.makepyfile(
        "def test_late(record_property): record_property('check.memory', 'too-short')\n"
        "def test_whole(record_property): record_property('check.memory', 'pass')\n"
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["*rnnbench: not fully checked*", "These passed, but some of their checks had *", "*::test_late"]
    )
    result.stdout.no_fnmatch_line("*::test_whole")


def test_the_plugin_loads_nothing_of_the_suite_where_no_case_is_asked_for(tiny):
    tiny.makepyfile(test_other="def test_other(): pass")
    script = (
        "import sys, pytest\n"
        "assert pytest.main(['-q', '-p', 'no:hypothesispytest']) == 0\n"
        "print(sorted(name for name in sys.modules if name.startswith('rnnbench')))\n"
        "print(sorted({'numpy', 'pydantic', 'yaml', 'click'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tiny.path, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert done.stdout.splitlines()[-2:] == ["['rnnbench', 'rnnbench.lazy', 'rnnbench.pytest_plugin']", "[]"]
