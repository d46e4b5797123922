"""How `make test` installs what it needs: by uv, from where pip looks for packages, and by pip where uv cannot."""

from __future__ import annotations

import runpy
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "install.py"
LISTED = """\
:env:.cert='/etc/certificates.crt'
:env:.default-timeout='180'
:env:.find-links='/wheels'
global.disable-pip-version-check='true'
global.extra-index-url='https://one.example/simple\\nhttps://two.example/simple'
global.find-links='/others'
install.index-url='https://three.example/simple'
list.format='columns'
"""
"""As `pip config list` prints it."""
INSTALL = ["-c", "constraints.txt", "-e", ".[test]"]


@pytest.fixture
def commands(monkeypatch):
    """The commands that are run: `fails` has the programs that fail, and `listed` the settings of pip."""
    seen = SimpleNamespace(all=[], fails=set(), listed=LISTED, variables={})

    def run(command, env=None, **_):
        program = command[2]
        seen.all.append(command)
        seen.variables = env or seen.variables
        failed = program in seen.fails or (command[-1] == "uv" and "uv from the index" in seen.fails)
        return subprocess.CompletedProcess(command, int(failed), seen.listed if "config" in command else "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *INSTALL])
    return seen


def installer(commands):
    """The program that installed last."""
    return commands.all[-1][2]


def test_uv_looks_where_pip_does(commands):
    runpy.run_path(str(SCRIPT), run_name="__main__")
    command = commands.all[-1]
    assert installer(commands) == "uv"
    assert command[-len(INSTALL) :] == INSTALL
    given = [f"{option} {value}" for option, value in pairwise(command)]
    assert {
        "--default-index https://three.example/simple",
        "--index https://one.example/simple",
        "--index https://two.example/simple",
        "--find-links /wheels",
    } <= set(given)
    assert "/others" not in command, "a variable comes before a file"
    assert commands.variables["SSL_CERT_FILE"] == "/etc/certificates.crt"
    assert commands.variables["UV_HTTP_TIMEOUT"] == "180"


@pytest.mark.parametrize("program", ["uv from the index", "uv"])
def test_pip_installs_where_uv_is_not_there_or_fails(commands, program):
    commands.fails.add(program)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert ended.value.code == 0
    assert installer(commands) == "pip"
    assert commands.all[-1][-len(INSTALL) :] == INSTALL


def test_pip_installs_where_it_has_a_setting_that_uv_has_not(commands):
    commands.listed += "global.keyring-provider='subprocess'\n"
    with pytest.raises(SystemExit):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert installer(commands) == "pip"
    assert not [command for command in commands.all if command[2] == "uv"]


def test_a_failure_of_both_is_the_status(commands):
    commands.fails |= {"uv", "pip"}
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert ended.value.code == 1
