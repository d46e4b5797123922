"""The wheel, outside of the checkout: a new user's first two commands end in a report."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S

CHECKOUT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder that the wheel is installed into. Its dependencies are those of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    python = [sys.executable, "-m"]
    subprocess.run(
        [*python, "build", "--wheel", "--no-isolation", "-o", folder, CHECKOUT],
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    (wheel,) = folder.glob("rnnbench-*.whl")
    # What the commands import is compiled then: a third of the modules.
    pip = [*python, "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile", "--target"]
    subprocess.run([*pip, folder / "installed", wheel], check=True, capture_output=True, timeout=PATIENCE_S)
    return folder / "installed"


def rnnbench(installed: Path, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "rnnbench", *arguments],
        env={**os.environ, "PYTHONPATH": str(installed)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.proof
def test_new_and_run_end_in_a_report(installed, tmp_path):
    rnnbench(installed, tmp_path, "new", "lstm", "-o", "my.yaml")
    small = {"model.hidden": "8", "workload.chunk": "1", "strategy.time": "looped", "strategy.state": "stitched"}
    small |= {"measure.processes": "1", "measure.budget": "0.1s", "limits.endurance": "10ms"}
    settings = [word for key, value in small.items() for word in ("--set", f"{key}={value}")]
    output = rnnbench(installed, tmp_path, "run", "my.yaml", "--backend=numpy", *settings)
    assert "1 trial: 1 ok" in output
    (report,) = tmp_path.glob("reports/*/report.md")
    assert "numpy:eager" in report.read_text()


def test_the_expected_failures_of_the_suite_are_in_it(installed):
    shipped = (CHECKOUT / "cases" / "expectations.yaml").read_bytes()
    assert (installed / "rnnbench" / "cases" / "expectations.yaml").read_bytes() == shipped


@pytest.mark.proof
def test_the_smallest_programs_of_faults_are_in_it(installed, tmp_path):
    listed = rnnbench(installed, tmp_path, "repro").splitlines()
    scripts = sorted(script.stem for script in (CHECKOUT / "docs" / "upstream").glob("*.py"))
    assert [line for line in listed if not line.startswith(" ")] == scripts
