"""The persistent kernel as a TIR function whose body is the CUDA source, and its compilation.

TIR has no words for weights in registers or for a barrier of the grid, so the source is CUDA (`tirx.cuda.func_call`).
TVM makes the launch, the shared memory and the host's function of it, and NVRTC the machine code.
"""

from __future__ import annotations

from typing import Any

from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as T

from rnnbench.backends.tvm.framework import import_tvm
from rnnbench.backends.tvm.persistent.layout import THREADS, Plan
from rnnbench.backends.tvm.persistent.source import ENTRY, arguments, source

LAUNCH = "tirx.kernel_launch_params"
COOPERATIVE = "tirx.use_cooperative_launch"
"""TVM's runtime launches a kernel with this tag so that all its blocks run at once, or not at all. None of TVM's passes
sets it for a function that is written as ours is."""


def kernel(plan: Plan) -> Any:
    """The PrimFunc `main(params, x, state…, y, scratch)`, of flat float32 arrays."""
    from tvm.backend.cuda.op import cuda_func_call

    sizes = {
        "params": max(1, plan.params),
        "x": plan.chunk * plan.batch * plan.model.input,
        "y": plan.chunk * plan.batch * plan.model.width,
        "scratch": plan.scratch,
    }
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("main")
        T.func_attr({"global_symbol": "main", "tirx.noalias": True})
        given = [
            T.arg(name, T.buffer((sizes.get(name, plan.state_size),), "float32")) for name in arguments(plan.state)
        ]
        with T.launch_thread("blockIdx.x", plan.blocks), T.launch_thread("threadIdx.x", THREADS):
            shared = T.alloc_buffer((plan.shared,), "float32", scope="shared.dyn")
            pointers = [array.access_ptr("rw") for array in (*given, shared)]
            T.evaluate(cuda_func_call(ENTRY, *pointers, source_code=source(plan)))
    return builder.get()


def compiled(function: Any, target: Any) -> Any:
    """The executable of a kernel, launched so that all its blocks run at once."""
    tvm = import_tvm()
    from tvm.tirx.build import split_host_device_mods, tir_to_runtime

    passes, finish_host, finish_device = tvm.tirx.get_default_tir_pipeline(target)
    module = passes(tvm.tirx.transform.BindTarget(target)(tvm.IRModule({"main": function})))
    host, devices = split_host_device_mods(module)
    of_gpu = {
        device: finish_device()(tvm.IRModule({name: _cooperative(f) for name, f in part.functions.items()}))
        for device, part in devices.items()
    }
    return tvm.runtime.Executable(tir_to_runtime(finish_host()(host), of_gpu, target.host))


def _cooperative(function: Any) -> Any:
    return function.with_attr(LAUNCH, [COOPERATIVE, *(str(tag) for tag in function.attrs[LAUNCH])])
