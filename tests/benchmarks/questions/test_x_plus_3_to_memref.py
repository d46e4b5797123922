"""x + 3 becomes a load, an addition and a store; an LSTM hundreds (minutes; docs/questions/x-plus-3-to-memref.md).

What the page's commands show: x + 3 down to memory, and where the operations of an LSTM come from.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness_command import run_command
from question_pages import ROOT, read_page

X_PLUS_3, ONNX = "x_plus_3/iree:onnx", "keras_lstm/iree:onnx"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the page's commands wrote, and what they printed in `printed.txt`."""
    for package in ("iree.compiler", "onnx", "tensorflow", "matplotlib"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("explained")
    for command in read_page("x-plus-3-to-memref").commands:
        done = run_command(folder, *(str(ROOT / word) if word.endswith(".yaml") else word for word in command))
        with (folder / "printed.txt").open("a") as printed:
            printed.write(done.stdout)
    return folder


@pytest.fixture(scope="module")
def counts(folder: Path) -> dict[str, dict[str, int]]:
    """Operations by stage, of each program."""
    found: dict[str, dict[str, int]] = {}
    for line in (folder / "printed.txt").read_text().splitlines():
        if program := re.match(r"(\w+/[\w:]+)/", line):
            stages = found.setdefault(program[1], {})
        elif stage := re.match(r" ([a-z-]+) +([\d,]+) +\d+ +[\d,]+ ", line):
            stages[stage[1]] = int(stage[2].replace(",", ""))
    return found


def by_source(folder: Path, stage: str) -> dict[str, int]:
    (listed,) = re.findall(rf"^{stage} by source: (.*)$", (folder / "printed.txt").read_text(), re.MULTILINE)
    return {name: int(count) for name, _, count in (part.rpartition(" ") for part in listed.split(", "))}


def test_one_addition_is_a_load_an_addition_and_a_store(folder: Path) -> None:
    (kernel,) = folder.glob("explained/x_plus_3-*/*-kernels.mlir")
    for operation in ("memref.load", "arith.addf", "memref.store"):
        assert kernel.read_text().count(operation) == 1
    (machine,) = folder.glob("explained/x_plus_3-*/*-llvm.ll")
    assert machine.read_text().count(" fadd ") == 1


def test_the_host_around_it_has_far_more_operations_than_the_kernel(counts: dict[str, dict[str, int]]) -> None:
    assert counts[X_PLUS_3]["vm"] > 5 * counts[X_PLUS_3]["kernels"]


def test_one_lstm_operator_is_hundreds_of_operations(counts: dict[str, dict[str, int]]) -> None:
    assert counts[ONNX]["given"] < 20
    assert counts[ONNX]["input"] > 5 * counts[ONNX]["given"]
    assert counts[ONNX]["kernels"] + counts[ONNX]["vm"] > 500


def test_most_of_what_keras_traces_is_no_cell_of_the_loop(folder: Path) -> None:
    traced = by_source(folder, "traced")
    assert traced["cells in a loop"] < 0.3 * sum(traced.values())
    # Keras calls the cell once more, outside of the loop. What is not used of it is dropped before the graph runs.
    assert by_source(folder, "executed")["cells outside of loops"] < traced["cells outside of loops"]
