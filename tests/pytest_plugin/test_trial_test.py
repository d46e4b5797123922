"""What pytest says of each way that a trial can end: in the terminal, in JUnit's file, and under pytest-xdist."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import psutil
import pytest
from rnnbench_fake import HANGING
from waiting import PATIENCE_S, ended, wait_until

QUICK = "--rnnbench-endurance=0"
pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("few_checks")
ROUTES = "fake:honest,fake:wrong-third-step,fake:build-fails"


@pytest.fixture
def junit(tiny):
    """The test cases of a JUnit file, by name, each with its properties."""

    def read(name="junit.xml"):
        root = ElementTree.parse(tiny.path / name).getroot()
        return {
            case.get("name").rpartition("-")[0]: (case, {p.get("name"): p.get("value") for p in case.iter("property")})
            for case in root.iter("testcase")
        }

    return read


def test_every_outcome_reaches_terminal_and_junit(tiny, junit):
    """One run, since each trial takes a process."""
    options = ("-m", "rnnbench(chunk=2, state='stitched')", "-rs", "--junitxml=junit.xml")
    result = tiny.runpytest_inprocess(f"--rnnbench-backend={ROUTES}", QUICK, *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes() == {"passed": 1, "failed": 2, "skipped": 3, "deselected": 18}
    output = result.stdout
    assert "Traceback" not in output.str()
    output.fnmatch_lines(
        [
            "nonconforming: * checks failed: values, chunks*",
            "values * off by 0.001 *× expected rounding)",
            "values * Every output and the final state equal the reference's.",
            "program    fake:wrong-third-step (rnnbench-fake 1.0), strategy: looped, stitched, 2 steps a call; "
            "lowered form: looped 1",
            "reproduce  rnnbench check tiny.yaml --backend=fake:wrong-third-step --endurance=0 --only *",
            "build-failed, at build: the fake compiler refused: error: expected ';'",
            "SKIPPED * tiny.yaml: unsupported by fake:honest: the fake has no RNN operator",
        ],
        consecutive=False,
    )
    cases = junit()
    honest, properties = cases["fake:honest/looped-stitched/h4-b1-c2-float32-cpu-t1"]
    assert honest.get("classname") == "tiny.yaml"
    assert honest.find("failure") is None
    expected = {"outcome": "ok", "backend": "fake", "route": "honest", "time": "looped", "chunk": "2", "hidden": "4"}
    assert expected.items() <= properties.items()
    assert properties["lowered"] == "looped 1"
    assert properties["version.rnnbench-fake"] == "1.0"
    assert properties["support"] == "native"
    assert properties["check.values"] == "pass"
    assert 0 <= float(properties["check.values.rounding"]) <= 16
    wrong, properties = cases["fake:wrong-third-step/looped-stitched/h4-b1-c2-float32-cpu-t1"]
    assert "off by 0.001" in wrong.find("failure").text
    assert properties["check.values"] == "fail"
    skipped, _ = cases["fake:honest/fused-stitched/h4-b1-c2-float32-cpu-t1"]
    assert "no RNN operator" in skipped.find("skipped").get("message")


@pytest.mark.proof
def test_the_command_of_a_failure_selects_that_trial_alone(tiny):
    """It is listed, not run: it would check the trial, and then look for a smaller one, for seconds."""
    options = ("--rnnbench-backend=fake:build-fails", "--rnnbench-set=workload.steps=4", "-x", QUICK)
    result = tiny.runpytest_inprocess(*options)
    assert result.parseoutcomes()["failed"] == 1, "-x stops at the first"
    # A set: where the variable CI is set, pytest prints the whole message in its summary too.
    (line,) = {line for line in result.outlines if line.startswith("reproduce")}
    words = shlex.split(line)[1:]
    assert words[:2] == ["rnnbench", "check"]
    words.remove("--endurance=0")
    command = [sys.executable, "-m", "rnnbench", "list", *words[2:]]
    done = subprocess.run(command, cwd=tiny.path, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    (trial,) = done.stdout.splitlines()
    assert trial.removeprefix("tiny/") in result.stdout.str()


EXPECTATIONS = """\
schema: 1
expectations:
  - {backend: fake, route: build-fails, outcome: build-failed, reason: No semicolon., upstream: "https://example.org/1"}
  - {backend: fake, route: wrong-bound, check: bound, also: [numbers], reason: Off., upstream: "https://example.org/2"}
  - {backend: fake, route: wrong-third-step, check: values, reason: The third., upstream: "https://example.org/3"}
  - {backend: fake, route: honest, check: values, reason: It was wrong., upstream: "https://example.org/4"}
"""


@pytest.mark.proof
def test_expected_failures_must_fail_and_nothing_else_may(tiny, junit):
    tiny.path.joinpath("expectations.yaml").write_text(EXPECTATIONS)
    routes = "fake:build-fails,fake:wrong-bound,fake:wrong-third-step,fake:honest"
    options = (QUICK, "-m", "rnnbench(chunk=2, time='looped', state='stitched')", "-rx", "--junitxml=junit.xml")
    result = tiny.runpytest_inprocess(f"--rnnbench-backend={routes}", *options)
    assert result.parseoutcomes() == {"xfailed": 2, "failed": 2, "deselected": 28}
    output = result.stdout
    output.fnmatch_lines(["nonconforming: * checks failed: values, chunks*"])
    output.fnmatch_lines(
        ["[[]XPASS(strict)[]] fixed upstream?*", "values  It was wrong. https://example.org/4 (*.yaml:6:5)"]
    )
    output.fnmatch_lines(["XFAIL *fake:build-fails/* - No semicolon. https://example.org/1"])
    case, properties = junit()["fake:wrong-bound/looped-stitched/h4-b1-c2-float32-cpu-t1"]
    assert case.find("skipped").get("type") == "pytest.xfail"
    assert properties["expected.bound"] == "failed: Off. https://example.org/2"


@pytest.mark.proof
def test_with_runxfail_no_failure_is_expected(tiny):
    tiny.path.joinpath("expectations.yaml").write_text(EXPECTATIONS)
    options = (QUICK, "--runxfail", "-m", "rnnbench(chunk=2, time='looped', state='stitched')")
    result = tiny.runpytest_inprocess("--rnnbench-backend=fake:build-fails,fake:honest", *options)
    assert result.parseoutcomes() == {"passed": 1, "failed": 1, "deselected": 14}
    result.stdout.fnmatch_lines(["build-failed, at build: the fake compiler refused: error: expected ';'"])


KEEPS_A_LIST_OF_STORES = """
from pathlib import Path

import pytest
from few_checks import make_few_checks
from forked_workers import fork_workers

fork_workers(pytest.MonkeyPatch())
make_few_checks(pytest.MonkeyPatch())

def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput"):
        stores = sorted(str(path.parent.relative_to(Path.cwd())) for path in Path.cwd().rglob("programs"))
        Path(f"stores-{session.config.workerinput['workerid']}").write_text("\\n".join(stores))
"""


@pytest.mark.proof
def test_processes_of_xdist_share_the_work_and_remove_what_they_built(tiny, junit):
    """A store has one writer: before a build it removes what is on no list, and another's half-made file is on none."""
    tiny.makeconftest(KEEPS_A_LIST_OF_STORES)
    routes = "fake:honest,fake:wrong-third-step"
    options = ("-m", "rnnbench(chunk=2, time='looped')", "--basetemp=temporary", "--junitxml=junit.xml")
    result = tiny.runpytest_subprocess(f"--rnnbench-backend={routes}", QUICK, "-n2", *options)
    assert result.parseoutcomes() == {"passed": 2, "failed": 2}
    assert "gw0" in result.stdout.str()
    (folder,) = tiny.path.glob("temporary/rnnbench")
    assert [path.name for path in folder.iterdir()] == ["logs"], "compiled files are removed"
    _, properties = junit()["fake:wrong-third-step/looped-stateful/h4-b1-c2-float32-cpu-t1"]
    assert properties["outcome"] == "nonconforming"
    stores = {line for file in tiny.path.glob("stores-gw?") for line in file.read_text().splitlines()}
    assert stores == {f"temporary/rnnbench/artifacts/gw{number}" for number in range(2)}


@pytest.mark.proof
def test_an_interrupt_ends_the_worker_too(tiny):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--rnnbench-backend=fake:build-hangs",
        "--rnnbench-set=limits.build=100s",
    ]
    process = subprocess.Popen(
        command,
        cwd=tiny.path,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        env={**os.environ, "PYTEST_DEBUG_TEMPROOT": str(tiny.path)},
    )
    wait_until(lambda: _hangs(tiny.path), "no worker compiles", process)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in output
    assert workers
    wait_until(lambda: ended(workers), "a worker outlived pytest")


def _hangs(folder):
    return any(HANGING in path.read_text() for path in folder.glob("**/rnnbench/logs/*.log"))
