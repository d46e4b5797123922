"""NumPy has no compiler: what a program is, is the list of the calls that Python makes."""

from __future__ import annotations

from pathlib import Path

from rnnbench.backends.base import OperationStage, Program, Request
from rnnbench.backends.explanation import Explanation, IrStage, Unreadable, loops_in
from rnnbench.backends.numpy.program import NumpyProgram


def explain(program: Program, request: Request, folder: Path) -> Explanation:
    assert isinstance(program, NumpyProgram)
    network = program.network()
    calls = IrStage(
        "calls",
        "The calls into NumPy that Python makes in one call of the program, with the shapes of their arrays.",
        "\n".join(network.listing()) + "\n",
        network.operations()[OperationStage.COMPILED],
        other_loops=loops_in(network.lowered()),
    )
    return Explanation(
        (f"a Python function over arrays of its session: x {list(network.x.shape)} to y {list(network.y.shape)}",),
        "In arrays of the session, which the calls overwrite; a reset fills them with zeros." if network.state else "",
        (calls, Unreadable("kernels", "NumPy's kernels and its BLAS are compiled libraries.")),
    )
