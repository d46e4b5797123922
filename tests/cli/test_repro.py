"""`rnnbench repro` prints the smallest programs of faults, and says what they find."""

import sys

import numpy as np
import pytest
from click.testing import CliRunner

import rnnbench.pipeline.reproduction as module
from rnnbench.cli import cli
from rnnbench.cli.repro import status_of
from rnnbench.pipeline import FaultState, Reproduced

HEAD = '# /// script\n# dependencies = ["numpy"]\n# ///\n"""It is wrong."""\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FOLDERS", (tmp_path,))
    (tmp_path / "there.py").write_text(HEAD + "print('y is 2')\nraise SystemExit(1)\n")
    (tmp_path / "mended.py").write_text(HEAD + "print('y is 1')\n")
    return tmp_path


def run(*arguments: str):
    return CliRunner().invoke(cli, ["repro", *arguments])


def test_without_a_name_it_lists_them(folder):
    done = run()
    assert done.exit_code == 0
    assert done.output == "mended\n  It is wrong\n  numpy\nthere\n  It is wrong\n  numpy\n"


def test_the_title_is_the_first_sentence_whatever_names_it_has(folder):
    (folder / "there.py").write_text(HEAD.replace("It is wrong.", "tool.convert_model drops 0.5 of it. More is below."))
    assert "there\n  tool.convert_model drops 0.5 of it\n" in run().output


def test_with_a_name_it_prints_the_program_and_what_it_finds(folder):
    done = run("there", "--versions=here")
    assert done.exit_code == 0
    assert "raise SystemExit(1)" in done.output
    assert f"there: still there (versions: here: numpy=={np.__version__})\n  y is 2" in done.output


def test_what_is_mended_ends_with_1(folder):
    done = run("--all", "--versions=here")
    assert done.exit_code == 1
    assert "mended: mended (versions: here: numpy==" in done.output
    assert "there: still there (versions: here: numpy==" in done.output


def test_what_cannot_be_told_ends_with_3(folder):
    (folder / "broken.py").write_text(HEAD + "import nothing_of_this_name\n")
    done = run("broken", "--versions=here")
    assert done.exit_code == 3
    assert "broken: no answer (versions: here: numpy==" in done.output
    assert "No module named 'nothing_of_this_name'" in done.output


def test_what_is_undecided_ends_with_3(folder):
    (folder / "close.py").write_text(HEAD + "print('1.01 (0.98 to 1.04)')\nraise SystemExit(3)\n")
    done = run("close", "--versions=here")
    assert done.exit_code == 3
    assert f"close: undecided on this machine (versions: here: numpy=={np.__version__})\n  1.01" in done.output


def test_two_releases_are_told_beside_each_other(folder, tmp_path, monkeypatch):
    """The environment of the earlier one is this one, since an older NumPy would have to be installed."""
    monkeypatch.setattr("rnnbench.pipeline.earlier_environment", lambda *_: sys.executable)
    head = HEAD.replace('# ///\n"', '# [tool.rnnbench]\n# earlier = ["numpy==2.0.0"]\n# ///\n"')
    (folder / "there.py").write_text(head + "raise SystemExit(1)\n")
    assert "there\n  It is wrong\n  numpy, beside numpy==2.0.0\n" in run().output
    version = f"numpy=={np.__version__}"
    assert f"there: still there (versions: here: {version}, beside {version})" in run("there", "--versions=here").output


@pytest.mark.proof
def test_an_environment_that_cannot_be_made_is_no_finding(folder, tmp_path, monkeypatch):
    """No index is asked: it may be slow, or not be there."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    (folder / "old.py").write_text(HEAD.replace("numpy", "no-such-package-of-rnnbench==1"))
    done = run("old", "--environments", str(tmp_path / "environments"))
    assert done.exit_code == 3
    assert "old: no answer (versions: listed)" in done.output
    assert "no-such-package-of-rnnbench==1" in done.output


def test_names_and_all_are_not_both(folder):
    assert run("there", "--all").exit_code == 2


@pytest.mark.parametrize(
    ("states", "status"),
    [
        ((FaultState.STILL_THERE,), 0),
        ((FaultState.STILL_THERE, FaultState.MENDED), 1),
        ((FaultState.MENDED, FaultState.UNKNOWN), 3),
        ((FaultState.MENDED, FaultState.UNDECIDED), 3),
    ],
)
def test_a_program_without_an_answer_counts_before_a_fault_that_is_mended(states, status):
    assert status_of([Reproduced(state, "") for state in states]) == status
