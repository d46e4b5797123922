"""What is told of a pip that failed is why, and what to do."""

from __future__ import annotations

import errno
import os
import sys

import pytest

from rnnbench.pipeline import NotNowError
from rnnbench.pipeline.made_environments import run_installer
from rnnbench.pipeline.pip_errors import errors_of, has_no_index
from rnnbench.pipeline.releases import versions_of_index

RETRY = (
    "WARNING: Retrying (Retry(total={}, connect=None)) after connection broken by 'NewConnectionError(…)': /simple/x/"
)
NESTED = """\
  error: subprocess-exited-with-error
  × pip subprocess to install build dependencies did not run successfully.
      ERROR: No matching distribution found for hatchling
  note: This error originates from a subprocess, and is likely not a problem with pip.
"""


@pytest.fixture
def no_network(monkeypatch):
    """An index that nobody serves."""
    for name, value in {"CONFIG_FILE": "/dev/null", "INDEX_URL": "http://127.0.0.1:9/simple", "RETRIES": "1"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    for name in ("FIND_LINKS", "EXTRA_INDEX_URL", "NO_INDEX"):
        monkeypatch.delenv(f"PIP_{name}", raising=False)


@pytest.mark.proof
def test_releases_of_an_index_that_cannot_be_reached(no_network):
    with pytest.raises(NotNowError, match=r"^fake: the package index cannot be reached; see whether .*--list FILE$"):
        versions_of_index("fake")


def test_an_environment_of_an_index_that_cannot_be_reached(no_network, tmp_path):
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(tmp_path), "rnnbench-no-such-package"]
    with pytest.raises(NotNowError, match=r"'fake==1': the environment could not be made: the package index cannot be"):
        run_installer(command, "fake==1")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_full_disk_is_told_as_such_and_not_as_an_error_of_the_release(number):
    said = f"ERROR: Could not install packages due to an OSError: [Errno {number}] {os.strerror(number)}: '/x/y'"
    told = f"'fake==1': the environment could not be made: {os.strerror(number)}; free space on the disks of"
    with pytest.raises(NotNowError, match=told):
        run_installer([sys.executable, "-c", f"import sys; sys.exit({said!r})"], "fake==1")


def test_an_index_that_was_reached_at_last_is_no_reason():
    assert not has_no_index(RETRY.format(4) + "\nERROR: No matching distribution found for fake==9")
    assert has_no_index(RETRY.format(1) + "\n" + RETRY.format(0) + "\nERROR: No matching distribution found for fake")


def test_the_error_of_a_pip_that_pip_ran_is_told():
    assert errors_of(NESTED, 2) == "ERROR: No matching distribution found for hatchling"
    assert errors_of("it died\n", 2) == "it died"
