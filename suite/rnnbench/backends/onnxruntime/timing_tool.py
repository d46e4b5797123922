"""ONNX Runtime's own tool is not in its wheel."""

from __future__ import annotations

from pathlib import Path

from rnnbench.backends.base import Program, Request
from rnnbench.backends.timing_tool import NoToolError, Tool


def own_tool(program: Program, request: Request, cache: Path) -> Tool:
    raise NoToolError(
        "onnxruntime_perf_test comes with a build of ONNX Runtime and not with its wheel; the profile that the wheel "
        "can write times each node and adds to what it times"
    )
