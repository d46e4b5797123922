"""TVM's `time_evaluator`, which repeats one call in C++; and an empty kernel or function with as many arguments."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rnnbench.backends.base import Program, Request
from rnnbench.backends.timing_tool import NoToolError, Tool
from rnnbench.backends.tvm.buffers import Buffer, StateBuffer
from rnnbench.backends.tvm.framework import import_tvm, target
from rnnbench.backends.tvm.relax_program import RelaxProgram
from rnnbench.backends.tvm.tir_program import TirProgram
from rnnbench.rnn import draw_inputs

HAND_ON = "rnnbench.hand_state_on"
"""The global function that `time_evaluator` calls, untimed, before each call of a stitched kernel."""


def own_tool(program: Program, request: Request, cache: Path) -> Tool:
    tvm = import_tvm()
    if request.device != "cpu":
        raise NoToolError("the tool is run on the processor alone")
    if request.strategy.state == "none":
        raise NoToolError("programs that carry a state are timed, whose calls cost the most")
    if isinstance(program, TirProgram):
        evaluate, arguments = partial(program.module.time_evaluator, f_preproc=HAND_ON), _kernel_arguments(program)
        empty = _empty_kernel(arguments)
    elif isinstance(program, RelaxProgram):
        machine = tvm.relax.VirtualMachine(program.library, tvm.cpu())
        evaluate, arguments = machine.time_evaluator, _function_arguments(request)
        empty = _empty_function(arguments)
    else:
        raise NoToolError("called through the same virtual machine in the same way as tvm:relax, which is timed")
    return Tool("TVM time_evaluator", "median", partial(_measure, evaluate, arguments), empty)


def _measure(evaluate: Callable[..., Any], arguments: list[Any], seconds: float) -> float:
    once = evaluate("main", import_tvm().cpu(), number=1, repeat=3)(*arguments)
    calls = max(3, int(seconds / statistics.median(once.results)))
    timer = evaluate("main", import_tvm().cpu(), number=1, repeat=calls)
    return float(statistics.median(timer(*arguments).results))


def _kernel_arguments(program: TirProgram) -> list[Any]:
    """The kernel's arguments, its state handed on from call to call.

    The state says from which end the weights are read next. Given the same one again and again, a kernel would begin
    where its last call did not end, and take a quarter longer.
    """
    import tvm_ffi

    request = program.request
    model, chunk = request.stack, request.strategy.chunk
    states = {"stitched": 2, "stateful": 1}[request.strategy.state]
    state = [StateBuffer(model.state_shapes(request.batch)) for _ in range(states)]
    y = Buffer(chunk * request.batch * model.width)

    def hand_on(*_: object) -> None:
        state[0].array[:] = state[-1].array

    tvm_ffi.register_global_func(HAND_ON, hand_on, override=True)
    return [buffer.tensor for buffer in (program.params, _inputs(request), *state, y)]


def _function_arguments(request: Request) -> list[Any]:
    shapes = request.model.state_shapes(request.batch).values()
    state = tuple(Buffer(rows * batch * size, (rows, batch, size)).tensor for rows, batch, size in shapes)
    shape = (request.strategy.chunk, request.batch, request.model.width)
    last = (Buffer(shape[0] * shape[1] * shape[2], shape).tensor, state)
    x = _inputs(request, (shape[0], shape[1], request.model.input))
    return [x.tensor, last if request.strategy.state == "stitched" else state]


def _inputs(request: Request, shape: tuple[int, ...] | None = None) -> Buffer:
    x = draw_inputs(request.model, request.strategy.chunk, request.batch, 0)
    buffer = Buffer(x.size, shape)
    buffer.array[:] = x.ravel()
    return buffer


def _empty_kernel(arguments: list[Any]) -> Callable[[], object]:
    """A kernel with as many arguments that stores one number."""
    tvm = import_tvm()
    from tvm.script.ir_builder import IRBuilder
    from tvm.tirx.script import builder as T

    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("main")
        T.func_attr({"global_symbol": "main", "tirx.noalias": True})
        buffers = [T.arg(f"array_{i}", T.buffer((1,), "float32")) for i, _ in enumerate(arguments)]
        T.buffer_store(buffers[-1], T.float32(0), [0])
    module = tvm.compile(tvm.IRModule({"main": builder.get()}), target=target()).mod
    return partial(module["main"], *(Buffer(1).tensor for _ in arguments))


def _empty_function(arguments: list[Any]) -> Callable[[], object]:
    """A Relax function with as many arguments that returns the second."""
    tvm = import_tvm()
    variables = [tvm.relax.Var(f"argument_{i}", _type(value)) for i, value in enumerate(arguments)]
    builder = tvm.relax.BlockBuilder()
    with builder.function("main", variables):
        builder.emit_func_output(variables[1])
    machine = tvm.relax.VirtualMachine(tvm.compile(builder.get(), target=target()), tvm.cpu())
    return partial(machine["main"], *arguments)


def _type(value: Any) -> Any:
    relax = import_tvm().relax
    if isinstance(value, tuple):
        return relax.TupleType([_type(part) for part in value])
    return relax.TensorType(tuple(value.shape), "float32")
