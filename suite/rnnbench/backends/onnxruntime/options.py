"""Session options of ONNX Runtime for building and for running. A run always reads an optimised file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnxruntime as ort

FLAGS = ("execution_mode=sequential", "inter_op_num_threads=1", "enable_cpu_mem_arena=0")


def session_options(threads: int) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.enable_cpu_mem_arena = False
    # Errors only. It warns that an optimised file is for machines like this one; a cache is used on one machine.
    options.log_severity_level = 3
    return options


def loaded(path: Path, threads: int) -> Any:
    """An InferenceSession of an optimised file. It is not optimised again."""
    options = session_options(threads)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
