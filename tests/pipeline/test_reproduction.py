"""The smallest programs of faults: which there are, and what is said of them."""

import sys
from pathlib import Path

import numpy as np
import pytest
from quick_tests import for_proof

import rnnbench.pipeline.reproduction as module
from rnnbench.pipeline import (
    FaultState,
    ReproductionError,
    earlier_environment,
    find_reproduction,
    reproduce,
    reproductions,
)
from rnnbench.pipeline.made_environments import MadeEnvironment

HEAD = '# /// script\n# dependencies = ["one==1.2", "two"]\n# ///\n"""A compiler is wrong. More."""\n'
HERE = HEAD.replace('"one==1.2", "two"', '"numpy", "click"')
"""With packages that are installed wherever the suite is."""
TWO = HERE.replace('# ///\n"', '# [tool.rnnbench]\n# earlier = ["numpy==2.0.0"]\n# ///\n"')


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(module, "FOLDERS", (tmp_path,))
    return tmp_path


def written(folder: Path, source: str, head: str = HEAD):
    (folder / "fault.py").write_text(head + source)
    return find_reproduction("fault")


def test_every_script_has_its_packages_a_title_and_a_report():
    for one in reproductions():
        assert all("==" in each or each == "numpy" for each in (*one.requirements, *one.earlier)), one.name
        assert one.title
        report = one.script.with_suffix(".md").read_text()
        assert f"[{one.name}.py]({one.name}.py)" in report
        assert "Ready to report to" in report


def test_the_index_has_every_fault_with_its_title():
    index = (module.FOLDERS[0] / "README.md").read_text()
    for one in reproductions():
        assert f"| [{one.name}]({one.name}.md) | {one.title} |" in index
    assert index.count("\n| [") == len(reproductions())


def test_readme_counts_the_scripts():
    """Each shows a fault, but for one that compares two releases and shows a slowdown."""
    faults = len([one for one in reproductions() if not one.earlier])
    tens = ("", "Ten", "Twenty", "Thirty", "Forty", "Fifty", "Sixty", "Seventy", "Eighty", "Ninety")[faults // 10]
    ones = ("", "-one", "-two", "-three", "-four", "-five", "-six", "-seven", "-eight", "-nine")[faults % 10]
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    assert f"{tens}{ones} faults of released compilers," in readme
    assert len(reproductions()) == faults + 1
    assert "and one slowdown" in readme


def test_packages_are_read_from_the_head(folder):
    one = written(folder, "")
    assert (one.requirements, one.unpinned, one.title) == (("one==1.2", "two"), ("one", "two"), "A compiler is wrong")


@pytest.mark.first(3)
@pytest.mark.parametrize(
    ("source", "state", "printed"),
    [
        ("print('y is 2')\nraise SystemExit(1)", FaultState.STILL_THERE, "y is 2"),
        ("print('y is 1')", FaultState.MENDED, "y is 1"),
        ("print('1.01 (0.98 to 1.04)')\nraise SystemExit(3)", FaultState.UNDECIDED, "1.01 (0.98 to 1.04)"),
        (
            "import nothing_of_this_name",
            FaultState.UNKNOWN,
            "No module named 'nothing_of_this_name'",
        ),
        ("raise SystemExit(7)", FaultState.UNKNOWN, "exit status 7"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", FaultState.UNKNOWN, "exit status -11"),
    ],
)
def test_what_a_script_says_is_its_exit_status(folder, source, state, printed):
    found = reproduce(written(folder, source, HERE))
    assert found.state is state
    assert printed in found.printed


def test_a_script_whose_packages_are_not_installed_says_what_to_install(folder):
    found = reproduce(written(folder, "raise SystemExit(1)"))
    assert found.state is FaultState.UNKNOWN
    assert found.printed == "it needs one and two: pip install one==1.2 two"


def test_of_a_package_in_two_folders_the_version_is_that_of_the_first_one(folder, tmp_path, monkeypatch):
    """As in an environment that also sees the system's packages."""
    for where, version in (("own", "2"), ("system", "1")):
        info = tmp_path / where / f"two-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: two\nVersion: {version}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "own"), str(tmp_path / "system"), *sys.path])
    assert reproduce(written(folder, "", HEAD.replace('"one==1.2", ', ""))).versions == ("two==2",)


def test_a_package_that_has_lost_its_metadata_is_none(folder, tmp_path, monkeypatch):
    (tmp_path / "site" / "two-1.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    found = reproduce(written(folder, "", HEAD.replace('"one==1.2", ', "")))
    assert found.printed == "it needs two: pip install two"


def test_a_script_that_fails_says_which_tools_it_needs_beside_its_packages(folder):
    head = HERE.replace('# ///\n"', '# [tool.rnnbench]\n# tools = "g++: apt-get install g++"\n# ///\n"')
    failed = reproduce(written(folder, "import nothing_of_this_name", head))
    assert failed.printed.endswith("\nit also needs g++: apt-get install g++")
    assert reproduce(written(folder, "print('right')", head)).printed == "right"


def test_a_script_that_compares_two_releases_gets_the_interpreter_of_the_earlier_one(folder):
    one = written(folder, "import sys\nprint('beside', sys.argv[1])", TWO)
    assert one.earlier == ("numpy==2.0.0",)
    found = reproduce(one, earlier=sys.executable)
    assert (found.state, found.printed) == (FaultState.MENDED, f"beside {sys.executable}")
    assert found.earlier == (f"numpy=={np.__version__}",)


def test_only_a_script_that_compares_two_releases_has_a_second_environment(folder, tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(module, "plain_environment", lambda *wanted: made.append(wanted) or MadeEnvironment("python"))
    assert earlier_environment(written(folder, "", HERE), tmp_path) == ""
    assert earlier_environment(written(folder, "", TWO), tmp_path) == "python"
    assert made == [(("numpy==2.0.0",), tmp_path)]


def test_a_script_that_does_not_end_is_ended(folder, monkeypatch):
    monkeypatch.setattr(module, "TIME_LIMIT_S", 0.5)
    found = reproduce(written(folder, "import time\ntime.sleep(60)", HERE))
    assert found.state is FaultState.UNKNOWN
    assert "it did not end within" in found.printed


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("", "expected one block"),
        ("# /// script\n# dependencies = [\n# ///\n", "cannot be read"),
        ('# /// script\n# dependencies = ["=="]\n# ///\n', "cannot be read"),
    ],
)
def test_a_head_that_cannot_be_read_is_told(folder, head, message):
    with pytest.raises(ReproductionError, match=message):
        written(folder, "", head)


def test_an_unknown_name_is_told_with_the_nearest_ones():
    with pytest.raises(ReproductionError, match=r"no reproduction is called 'rnn-clip'; .*iree-onnx-rnn-clip"):
        find_reproduction("rnn-clip")


@pytest.mark.proof
@pytest.mark.parametrize("name", [*for_proof("iree-onnx-rnn-clip"), "openvino-passed-state"])
def test_a_fault_of_a_real_compiler_is_still_there(name):
    assert reproduce(find_reproduction(name)).state is FaultState.STILL_THERE
