"""A network in one file of another package runs from a case to a report, on two backends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from quick_tests import for_proof
from waiting import PATIENCE_S

from rnnbench.rnn import broken_families, families, registry

FILE = '''\
from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from rnnbench.rnn import Model, Size
from rnnbench.rnn.composed import ComposedNetwork, Placed
from rnnbench.rnn.layers import Dense, Recurrent, TimeConvolution


class Toy(ComposedNetwork):
    """x: 5 features. y: a convolution and a GRU side by side, through a dense layer."""

    network: ClassVar[str] = "toy"
    input: Size = Field(default=5, description="Size of x at each step.")
    hidden: Size = Field(default=6, description="Units of the GRU.")

    def compose(self) -> Sequence[Placed]:
        return [
            Placed("conv", TimeConvolution(self.input, 4, 3, "relu")),
            Placed("gru", Recurrent(Model(cell="gru", input=4, hidden=self.hidden)), ("conv",)),
            Placed("out", Dense(4 + self.hidden, 2), ("conv", "gru")),
        ]
'''
CASE = """\
schema: 1
name: mine
model: {network: toy, hidden: [6, 9]}
workload: {steps: 8, chunk: 4}
strategy: {time: looped, state: stitched}
limits: {endurance: 10ms}
measure: {budget: 50ms, processes: 1}
"""


@pytest.fixture
def package(tmp_path):
    """A folder with the file, installed as another package would be, and a case of the network."""
    (tmp_path / "toy_network.py").write_text(FILE)
    installed = tmp_path / "toy_network-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-network\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[rnnbench.networks]\ntoy = toy_network:Toy\n")
    (tmp_path / "case.yaml").write_text(CASE)
    return tmp_path


def rnnbench(package: Path, *arguments: str, status: int = 0) -> str:
    paths = [str(package), os.environ.get("PYTHONPATH", ""), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "COLUMNS": "160"}
    command = [sys.executable, "-m", "rnnbench", *arguments]
    done = subprocess.run(
        command, cwd=package, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("programs", [["numpy:eager"], *for_proof(["numpy:eager", "onnxruntime:onnx"])])
def test_it_runs_on_any_backend_and_stands_in_the_report(package, programs):
    rnnbench(package, "run", "case.yaml", f"--backend={','.join(programs)}", "--filter=hidden=6")
    (report,) = package.glob("reports/*/report.md")
    text = report.read_text()
    assert f"{len(programs)} trial{'s' * (len(programs) > 1)}: {len(programs)} ok" in text
    assert "mine: toy, input 5, hidden 6" in text
    for program in programs:
        assert f"| {program} | looped-stitched |" in text
    assert "× of floor" in text


@pytest.mark.proof
def test_its_keys_are_told_where_they_are_wrong(package):
    told = rnnbench(package, "list", "case.yaml", "--set", "model.layers=3", status=2)
    assert "the network toy has no layers; its keys are input, hidden" in told


def test_a_case_to_begin_with_names_the_sizes_that_it_needs(package):
    file = package / "toy_network.py"
    file.write_text(FILE.replace("Field(default=6, ", "Field(").replace("Units of the", "Units of\\nthe"))
    rnnbench(package, "new", "toy", "-o", "begun.yaml")
    assert "# hidden:                         # Needed: Units of the GRU." in (package / "begun.yaml").read_text()


BROKEN = {
    "class Toy(": "class Toy(]",
    'class Toy(ComposedNetwork):\n    """x': 'Toy = 5\nclass Other(ComposedNetwork):\n    """x',
    "def compose(": "def composed(",
    '= "toy"': '= "tyo"',
    "class Toy": "raise SystemExit(0)\nclass Toy",
}
WHY = ["SyntaxError", "it is no subclass", "it does not define compose", "network: ClassVar[str] = 'toy'", "SystemExit"]


@pytest.mark.parametrize(
    ("right", "wrong", "why"), [(*each, why) for each, why in zip(BROKEN.items(), WHY, strict=True)]
)
def test_one_that_cannot_be_loaded_is_told_in_its_case(package, monkeypatch, right, wrong, why):
    (package / "toy_network.py").write_text(FILE.replace(right, wrong))
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.delitem(sys.modules, "toy_network", raising=False)
    registry._families_and_broken.cache_clear()
    try:
        assert "toy" not in families()
        assert broken_families()["toy"].startswith("the network 'toy' (toy_network:Toy) cannot be loaded: ")
        assert why in broken_families()["toy"]
    finally:
        registry._families_and_broken.cache_clear()


@pytest.mark.proof
def test_one_that_is_broken_is_told_where_it_is_used_and_nowhere_else(package):
    (package / "toy_network.py").write_text(FILE.replace("class Toy(", "class Toy(]"))
    told = rnnbench(package, "list", "case.yaml", "--backend=numpy", status=2)
    assert "case.yaml:3:18: model.network: the network 'toy' (toy_network:Toy) cannot be loaded: SyntaxError" in told
    assert "repair or uninstall the package that provides it" in told
    other = rnnbench(
        package, "list", "case.yaml", "--backend=numpy", "--set", "model={cell: lstm, input: 2, hidden: 3}"
    )
    assert other.endswith("1 trial\n")


@pytest.mark.first(1)
@pytest.mark.parametrize("name", ["rnnoise", "toy"])
def test_a_name_that_several_packages_have_is_refused_where_it_is_used(package, name):
    """Of the suite and of another package, or of two other ones."""
    other = package / "other-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text(f"[rnnbench.networks]\n{name} = other_network:Other\n")
    told = rnnbench(package, "list", "case.yaml", "--backend=numpy", "--set", f"model={{network: {name}}}", status=2)
    assert f"model.network: several packages have a network '{name}': other_network:Other, " in told
    assert "rename it in one of them, or uninstall one" in told
    rnnbench(package, "list", "case.yaml", "--backend=numpy", "--set", "model={network: mingru, input: 4, hidden: 4}")


ODD = """
class Odd(Dense):
    @property
    def projected(self) -> int:
        return self.width + 1


class Toy("""


def test_layers_that_contradict_themselves_are_told_in_the_case(package):
    (package / "toy_network.py").write_text(
        FILE.replace("class Toy(", ODD).replace('Placed("out", Dense', 'Placed("out", Odd')
    )
    told = rnnbench(package, "list", "case.yaml", "--backend=numpy", status=2)
    assert (
        "case.yaml:3:18: model.network: the layers of toy contradict each other: ValueError: layer 2 projects to"
        in told
    )
