"""Copies grow with the chunk, and loops do not (minutes; docs/questions/unroll-loop-or-recursion.md).

What the page's command finds, and what compilers make of a step that calls itself.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from question_pages import run_page
from waiting import PATIENCE_S

from rnnbench.results import Growth, Row, by_chunk, fit_growth

TARGETS = ("tvm", "onnxruntime", "torch")
CONSTANT = 0.25
"""A cost that does not grow with the chunk has an exponent below this."""
TORCH_EXPORT = """
import torch
class Steps(torch.nn.Module):
    def forward(self, x, h):
        return h if x.shape[0] == 0 else self.forward(x[1:], torch.tanh(x[0] + h))
program = torch.export.export(Steps(), (torch.zeros(16, 8), torch.zeros(8)))
print(sum(node.target is torch.ops.aten.tanh.default for node in program.graph.nodes))
"""
TORCH_SCRIPT = """
import torch
@torch.jit.script
def steps(x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    if x.shape[0] == 0:
        return h
    return steps(x[1:], torch.tanh(x[0] + h))
"""
JAX = """
import jax, jax.numpy as jnp
def steps(x, h):
    return h if x.shape[0] == 0 else steps(x[1:], jnp.tanh(x[0] + h))
print(str(jax.make_jaxpr(steps)(jnp.zeros((16, 8)), jnp.zeros(8))).count("tanh"))
"""
JAX_COND = """
import jax, jax.numpy as jnp
def steps(n, h):
    return jax.lax.cond(n == 0, lambda: h, lambda: steps(n - 1, jnp.tanh(h)))
jax.make_jaxpr(steps)(16, jnp.zeros(8))
"""
ONNX = """
import onnx
import onnxruntime
model = onnx.parser.parse_model('''<ir_version: 10, opset_import: ["": 21, "own": 1]>
main (int64 n, float[8] h) => (float[8] y) { y = own.steps (n, h) }
<domain: "own", opset_import: ["": 21, "own": 1]>
steps (n, h) => (y) {
  zero = Constant <value_int = 0> ()
  one = Constant <value_int = 1> ()
  done = Equal (n, zero)
  y = If (done) <then_branch = ended () => (a) { a = Identity (h) },
                 else_branch = again () => (b) { m = Sub (n, one)  g = Tanh (h)  b = own.steps (m, g) }>
}''')
onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder: Path = tmp_path_factory.mktemp("unroll")
    smaller = ("workload.chunk=[1, 8, 64]", "workload.steps=256", "measure.budget=150ms")
    options = [word for one in smaller for word in ("--set", one)]
    return run_page("unroll-loop-or-recursion", folder, *options, "--processes", "1")


def growth(rows: list[Row], backend: str, time: str, figure: str) -> Growth:
    program = [row for row in rows if (row["backend"], row["time"], row["outcome"]) == (backend, time, "ok")]
    fitted = fit_growth(by_chunk([(row["chunk"], row[figure]) for row in program]))  # type: ignore[misc]
    assert fitted is not None
    return fitted


@pytest.mark.parametrize("backend", TARGETS)
def test_the_operations_of_copies_grow_with_the_chunk_and_those_of_a_loop_do_not(rows: list[Row], backend: str) -> None:
    assert growth(rows, backend, "looped", "operations_compiled").exponent.value < CONSTANT
    assert growth(rows, backend, "unrolled", "operations_compiled").exponent.value > 2 * CONSTANT


@pytest.mark.parametrize("backend", TARGETS)
def test_copies_take_longer_to_build_the_more_there_are(rows: list[Row], backend: str) -> None:
    looped, unrolled = (growth(rows, backend, time, "build_s").exponent.value for time in ("looped", "unrolled"))
    assert unrolled > looped


def test_the_loop_of_relax_is_a_function_that_calls_itself(rows: list[Row]) -> None:
    looped = [row for row in rows if (row["backend"], row["time"]) == ("tvm", "looped") and row["chunk"] != 1]
    assert {row["lowered"] for row in looped} == {"looped 1"}


@pytest.mark.parametrize("program", [TORCH_EXPORT, JAX], ids=["torch.export", "jax"])
def test_a_recursion_over_known_steps_becomes_copies(program: str, tmp_path: Path) -> None:
    assert _run_alone(program, tmp_path).stdout.split() == ["16"]


@pytest.mark.parametrize(
    ("program", "refusal"),
    [
        pytest.param(TORCH_SCRIPT, "Recursive calls are not supported", id="torch.jit.script"),
        pytest.param(JAX_COND, "RecursionError", id="jax.lax.cond"),
        pytest.param(ONNX, "must not be recursive", id="onnxruntime"),
    ],
)
def test_a_recursion_in_the_program_is_refused(program: str, refusal: str, tmp_path: Path) -> None:
    done = _run_alone(program, tmp_path)
    assert done.returncode == 1
    assert refusal in done.stderr


def _run_alone(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `program` from a file, since `torch.jit.script` reads the source of what it compiles."""
    file = folder / "program.py"
    file.write_text(program)
    return subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
