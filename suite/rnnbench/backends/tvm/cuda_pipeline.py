"""TVM's own pipeline for CUDA, as `relax.get_default_pipeline` has it, with a look at the module that leaves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir.transform import Sequential, module_pass
from tvm.relax.backend.cuda import pipeline as cuda


def cuda_pipeline(target: Any, inspect: Callable[[Any], object]) -> Any:
    """Its default schedules (dlight) included. `inspect` is called with the module as it leaves the pipeline."""

    def passes(module: Any, _: Any) -> Any:
        with target:
            module = Sequential(
                [
                    *cuda.library_dispatch_passes(target),
                    *cuda.legalize_passes(target),
                    *cuda.dataflow_lower_passes(target),
                    *cuda.finalize_passes(target),
                ]
            )(module)
        inspect(module)
        return module

    return module_pass(passes, opt_level=0)
