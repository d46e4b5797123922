"""A build leaves everything that another process needs to run the program without compiling it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from waiting import PATIENCE_S

from rnnbench.backends.base import BuildError
from rnnbench.backends.tensorflow import TensorflowBackend
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.weights import draw_inputs

LOAD = """
import json, pickle, sys
from pathlib import Path
from rnnbench.backends.tensorflow import TensorflowBackend, xla
requests, folder, x = pickle.load(sys.stdin.buffer)
backend = TensorflowBackend()
backend.load()
results = []
for request in requests:
    program = backend.build(request, folder)
    y = program.open().step({"x": x})["y"]
    results.append({"cached": program.cached, "lowered": program.artifact.lowered, "y": y.tolist()})
stored = {path.name for path in folder.rglob("*.pb") if path.parent.name == "xla"}
print(json.dumps([results, len({path.name for path in xla.process_folder().glob("*.pb")} - stored)]))
"""


@pytest.mark.proof
def test_another_process_loads_and_compiles_nothing(build, ask, folder: Path) -> None:
    routes = ("graph", "keras-xla")
    programs, requests = [build(route) for route in routes], [ask(route) for route in routes]
    x = draw_inputs(requests[0].model, 4, 1, seed=1)
    done = subprocess.run(
        [sys.executable, "-c", LOAD],
        input=pickle.dumps((requests, folder, x)),
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    results, compiled = json.loads(done.stdout)
    assert compiled == 0
    for program, result in zip(programs, results, strict=True):
        assert result["cached"]
        assert result["lowered"] == program.artifact.lowered
        np.testing.assert_array_equal(np.array(result["y"], np.float32), program.open().step({"x": x})["y"])


def test_a_load_installs_the_code_that_the_build_left(build, ask, folder: Path, monkeypatch) -> None:
    """XLA then compiles nothing: the proof above starts another process."""
    from rnnbench.backends.tensorflow import xla

    build("xla")
    installed: list[Path] = []
    monkeypatch.setattr(xla, "install_compiled", installed.append)
    assert TensorflowBackend().build(ask("xla"), folder).cached
    (place,) = installed
    assert list(place.glob("*.pb"))


def test_a_program_for_another_number_of_threads_or_another_keras_is_built_anew(ask, monkeypatch) -> None:
    """Code that XLA compiled for one thread has no products for several, and would be found for them."""
    from rnnbench.backends.tensorflow import saved

    request = ask("xla")
    keys = {saved._key(request), saved._key(replace(request, threads=2))}
    installed = saved.version
    monkeypatch.setattr(saved, "version", lambda package: "3.0" if package == "keras" else installed(package))
    assert len(keys | {saved._key(request)}) == 3


def test_running_pools_keep_their_size(build, ask, folder: Path) -> None:
    build("graph")
    request = ask("graph")
    with pytest.raises(BuildError, match="threads=2 must be set before TensorFlow runs anything"):
        TensorflowBackend().build(type(request)(**{**vars(request), "threads": 2}), folder)


@pytest.mark.first(1)
@pytest.mark.parametrize("route", ["graph", "xla", "keras", "keras-xla"])
def test_float64_is_computed_in_float64(build, ask, route: str) -> None:
    request = ask(route, dtype="float64")
    x = draw_inputs(request.model, 4, 1, seed=1, dtype="float64")
    y = build(route, dtype="float64").open().step({"x": x})["y"]
    np.testing.assert_allclose(y, run_reference(request.model, request.weights, x).y, rtol=1e-12, atol=1e-12)
