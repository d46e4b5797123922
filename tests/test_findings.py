"""The findings of README have the figures of the reference run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rnnbench.results import read_run

ROOT = Path(__file__).parents[1]
SECTION = (ROOT / "README.md").read_text(encoding="utf-8").split("## Five findings")[1].split("## How to read")[0]
FINDINGS = re.sub(r"\s+", " ", SECTION)
RUN = "reference"
REPORT = ROOT / "reports" / RUN / "report.md"
SAME = ("backend", "route", "time", "state", "chunk", "model_hidden")
"""What two trials of a ratio have in common, but for the axis of the ratio."""
OTHERS = ("iree", "jax", "litert", "numpy", "onnxruntime", "openvino", "torch", "tvm")
"""The backends of a range. Findings name TensorFlow apart."""


@cache
def rows(run: str = RUN) -> list[dict[str, Any]]:
    return [row for row in read_run(ROOT / "results" / run).rows() if row["outcome"] == "ok"]


def fastest(run: str, fixed: dict[str, Any]) -> dict[str, Any]:
    """The row of the fastest program of a compiler or runtime."""
    compared = (row for row in rows(run) if row["origin"] != "kernel" and fixed.items() <= row.items())
    return min(compared, key=lambda row: row["bound_per_step_s"])


def assert_told(
    text: str, axis: str, values: tuple[object, object], backends: Iterable[str], fixed: dict[str, Any]
) -> None:
    """The figures at `{}` are the latency of a step at one value of an axis over that at the other.

    Figures of two digits are those of the report, which compares process by process: they may differ in the last one.
    """
    figure = r"([\d.]+)(?: to ([\d.]+))?"
    told = re.search(re.escape(text).replace(r"\{\}", figure), FINDINGS)
    assert told is not None, text
    low, high = told.groups()
    new, old = (
        {
            tuple(row[name] for name in SAME if name != axis): row["bound_per_step_s"]
            for row in rows()
            if row["backend"] in backends and row[axis] == value and fixed.items() <= row.items()
        }
        for value in values
    )
    measured = [new[key] / old[key] for key in new.keys() & old.keys()]
    near = {"abs": 0.051 if len(low.split(".")[1]) == 1 else 0.0101}
    assert float(low) == pytest.approx(min(measured), **near)
    assert float(high or low) == pytest.approx(max(measured), **near)


@pytest.mark.parametrize(
    ("text", "backends", "hidden"),
    [
        ("a call of one step takes {} times as long as one step of a 16-step call", OTHERS, 512),
        ("and in TensorFlow {} times. At 128 units", ["tensorflow"], 512),
        ("and in TensorFlow {} times. rnnbench run", ["tensorflow"], 128),
    ],
)
def test_a_call_of_one_step(text: str, backends: Iterable[str], hidden: int) -> None:
    fixed = {"time": "looped", "model_hidden": hidden}
    assert_told(text, "chunk", (1, 16), backends, fixed)


@pytest.mark.parametrize(
    ("text", "backend"),
    [
        ("takes {} of the time in IREE", "iree"),
        ("and {} in OpenVINO. In LiteRT", "openvino"),
        ("In LiteRT it takes {}. In", "litert"),
    ],
)
def test_a_state_inside_the_program(text: str, backend: str) -> None:
    fixed = {"chunk": 1, "model_hidden": 128}
    assert_told(text, "state", ("stateful", "stitched"), [backend], fixed)


def test_where_a_state_inside_the_program_makes_no_certain_difference() -> None:
    """The first column of verdicts has calls of one step."""
    _, small, large = re.split(r"\n### .*hidden \d+,", REPORT.read_text(encoding="utf-8").split("## Pictures")[0])
    row = re.compile(r"^\| (\w+):\w+ \| stateful ÷ stitched \| \w+ \| [^|]* ([A-Z]+) \|", re.MULTILINE)
    verdicts = [row.findall(text) for text in (small, large)]
    assert len(verdicts[0]) == len(verdicts[1]) > len(OTHERS)
    certain = [{backend for backend, verdict in found if verdict in ("FASTER", "SLOWER")} for found in verdicts]
    assert not certain[0] & {"onnxruntime", "jax", "tensorflow"}
    assert not certain[1]


@pytest.mark.parametrize(
    ("text", "backend"),
    [
        ("takes {} of the loop's time in IREE", "iree"),
        ("{} in TensorFlow", "tensorflow"),
        ("{} in OpenVINO and 0.65", "openvino"),
        ("It takes {} of the loop's time in ONNX Runtime", "onnxruntime"),
        ("{} in JAX and", "jax"),
        ("and {} in LiteRT.", "litert"),
    ],
)
def test_sixteen_unrolled_steps(text: str, backend: str) -> None:
    fixed = {"chunk": 16, "model_hidden": 128, "state": "stitched"}
    assert_told(text, "time", ("unrolled", "looped"), [backend], fixed)


@pytest.mark.parametrize(
    ("text", "chunk", "backend"),
    [
        ("the fastest is LiteRT with a TensorFlow cell without a loop ({:.1f} µs)", 1, "litert"),
        ("it is ONNX Runtime's own LSTM ({:.1f} µs a step)", 16, "onnxruntime"),
    ],
)
def test_the_fastest_runtime(text: str, chunk: int, backend: str) -> None:
    best = fastest(RUN, {"model_hidden": 128, "chunk": chunk})
    assert best["backend"] == backend
    assert text.format(1e6 * best["bound_per_step_s"]) in FINDINGS


def test_the_fastest_runtime_without_avx512() -> None:
    run, small, large = "lstm_streaming_avx2", {"model_hidden": 128, "chunk": 16}, {"model_hidden": 512, "chunk": 16}
    best = fastest(run, small)
    assert best["backend"] == "iree"
    assert f"no runtime is faster than IREE ({1e6 * best['bound_per_step_s']:.1f} µs a step)" in FINDINGS
    assert fastest(run, large)["backend"] == "tvm"
    iree, openvino = (fastest(run, {**large, "backend": name})["bound_per_step_s"] for name in ("iree", "openvino"))
    assert iree == pytest.approx(openvino, rel=0.02)


def test_the_shortest_build_of_litert() -> None:
    shortest = min(row["build_s"] for row in rows() if row["backend"] == "litert" and row["build_s"])
    assert f"LiteRT's conversion takes {shortest:.1f} s or more" in FINDINGS
