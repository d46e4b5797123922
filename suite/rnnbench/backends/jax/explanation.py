"""JAX's two texts of a program: StableHLO, which XLA is given, and the HLO that XLA made of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rnnbench.backends.base import Program, Request
from rnnbench.backends.explanation import Explanation, IrStage, Unreadable, counted, shortened
from rnnbench.backends.jax import lowered
from rnnbench.backends.jax.program import JaxProgram, lowered_by_jax

_OPERATION = re.compile(r"^\s*(?:%[\w:]+ = |)\"?([a-z_]+\.[a-z_0-9]+)", re.MULTILINE)


def explain(program: Program, request: Request, folder: Path) -> Explanation:
    assert isinstance(program, JaxProgram)
    module = shortened(lowered_by_jax(request, program.dtype).as_text())
    functions = tuple(re.findall(r"func\.func public @(.*?) \{$", module, re.MULTILINE))
    carried = (
        "One flat array of all layers. Each call consumes it (it is donated) and returns a new one, which the session "
        "keeps. A reset makes a new array of zeros."
    )
    return Explanation(functions, "" if request.strategy.state == "none" else carried, _stages(program, module))


def _stages(program: JaxProgram, given: str) -> Iterator[IrStage | Unreadable]:
    names = counted(_OPERATION.findall(given))
    yield IrStage("stablehlo", "What JAX traced, and XLA is given.", given, names, "mlir", "func.func public")
    (kept,) = program.files.identity
    hlo = kept.read_text()
    yield IrStage(
        "optimised-hlo", "What XLA made of it, without origins.", hlo, lowered.operations(hlo), "hlo", "ENTRY "
    )
    yield Unreadable("llvm", "XLA writes its LLVM IR only where XLA_FLAGS has --xla_dump_to when JAX starts.")
