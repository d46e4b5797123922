"""The host in C for ONNX Runtime: built, and run on the artifact of a tiny network. The benchmarks have the others."""

from __future__ import annotations

import re
import shutil
import venv
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError, run

import numpy as np
import pytest
from hosts import FOLDER, HOSTS, build_host, compare, draw_frames, run_host, trial_of
from waiting import PATIENCE_S

from rnnbench.backends import find, request_of
from rnnbench.cases import Trial
from rnnbench.rnn import draw_weights

TINY = ("model.input=3", "model.hidden=4", "workload.steps=8")
LONGEST = 80

needs_compiler = pytest.mark.skipif(
    not all(map(shutil.which, ("cc", "make"))), reason="needs a C compiler and make: apt install gcc make"
)


@dataclass(frozen=True)
class Built:
    trial: Trial
    program: Path
    artifact: Path
    frames: np.ndarray

    def run(self, frames: np.ndarray) -> np.ndarray:
        return run_host(self.program, self.artifact, frames, self.trial.model.width)[0]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    folder = tmp_path_factory.mktemp("host")
    trial = trial_of(HOSTS["onnxruntime"], *TINY)
    request = request_of(trial, draw_weights(trial.model, trial.seed))
    (artifact,) = find("onnxruntime").build(request, folder).files.program
    return Built(trial, build_host("onnxruntime", folder), artifact, draw_frames(trial))


@needs_compiler
def test_a_host_in_c_writes_what_the_reference_says_of_each_stream(built: Built, tmp_path: Path) -> None:
    result = compare(built.trial, built.frames, built.run(built.frames), tmp_path)
    assert (result.verdict, result.detail) == ("pass", "")


@needs_compiler
def test_the_streams_of_a_host_do_not_disturb_each_other(built: Built) -> None:
    others = built.frames.copy()
    others[:, 1] = 0
    np.testing.assert_array_equal(built.run(others)[:, 0], built.run(built.frames)[:, 0])
    assert not np.array_equal(built.run(others)[:, 1], built.run(built.frames)[:, 1])


@needs_compiler
def test_a_comparison_finds_streams_that_share_a_state(built: Built, tmp_path: Path) -> None:
    in_one_stream = built.run(built.frames[:, [0, 0]])
    assert compare(built.trial, built.frames[:, [0, 0]], in_one_stream, tmp_path).verdict == "pass"
    assert compare(built.trial, built.frames, in_one_stream, tmp_path).verdict == "fail"


@needs_compiler
def test_a_host_says_what_is_wrong_with_its_artifact(built: Built, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CalledProcessError):
        run_host(built.program, Path("nowhere.onnx"), built.frames, built.trial.model.width)
    assert "host: " in capfd.readouterr().err


@needs_compiler
@pytest.mark.parametrize("name", HOSTS)
def test_a_python_without_the_package_ends_with_its_name_and_leaves_nothing_beside_the_sources(
    name: str, tmp_path: Path
) -> None:
    venv.create(tmp_path / "empty", symlinks=True)
    before = sorted(FOLDER.iterdir())
    bare = tmp_path / "empty" / "bin" / "python"
    command = ["make", "-C", str(FOLDER), name, f"PYTHON={bare}", f"BUILD={tmp_path}"]
    done = run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 2
    assert f"*** {bare} has no package " in done.stderr
    assert sorted(FOLDER.iterdir()) == before


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_is_short_and_stands_in_the_page(name: str) -> None:
    (source,) = (path for path in FOLDER.glob(f"{name}.c*"))
    assert len(source.read_text().splitlines()) <= LONGEST
    assert re.search(
        rf"^\| .*\[{re.escape(source.name)}\]\({re.escape(source.name)}\)", (FOLDER / "README.md").read_text(), re.M
    )
