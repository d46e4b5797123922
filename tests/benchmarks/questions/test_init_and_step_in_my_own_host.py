"""Hosts in C spare the cost of Python, and are right (minutes; docs/questions/init-and-step-in-my-own-host.md).

Every host loads what the page's command built, and writes what the reference says.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hosts import HOSTS, main
from question_pages import run_page

PACKAGES = ("onnxruntime", "onnx", "ai_edge_litert", "tensorflow", "openvino", "tvm", "torch")
SPARES_MOST = ("onnxruntime", "openvino")
"""Hosts whose `bound` calls go through a Python object for each call, which costs a third of a step or more."""


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    for package in PACKAGES:
        pytest.importorskip(package)
    if not all(map(shutil.which, ("cc", "c++", "make"))):
        pytest.skip("needs compilers for C and C++ and make: apt install gcc g++ make")
    folder: Path = tmp_path_factory.mktemp("hosts")
    run_page("init-and-step-in-my-own-host", folder, "--set", "measure.budget=200ms", "--set", "measure.processes=1")
    (run,) = (folder / "results").iterdir()
    main(run, [])
    return {one["host"]: one for one in json.loads((run / "hosts.json").read_text())}


def test_every_host_writes_what_the_reference_says(figures: dict[str, dict[str, Any]]) -> None:
    """`main` ends with an error where one does not."""
    assert sorted(figures) == sorted(HOSTS)


@pytest.mark.parametrize("name", SPARES_MOST)
def test_a_step_in_c_is_shorter_than_a_bound_call_from_python(figures: dict[str, dict[str, Any]], name: str) -> None:
    assert figures[name]["interval"][1] < 1
