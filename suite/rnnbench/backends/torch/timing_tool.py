"""torch.utils.benchmark on the call that `bound` makes; for AOTInductor's packages, a compiled loop without Python."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.benchmark import Timer

from rnnbench.backends.base import Program, Request
from rnnbench.backends.timing_tool import NoToolError, Tool
from rnnbench.backends.torch.inductor import inductor_in
from rnnbench.backends.torch.stream import PreparedStream, TorchProgram, TorchSession, inference
from rnnbench.rnn import draw_inputs

COMPILE_S = 240
EMPTY = "empty.pt2"
LOOP = """
#include <chrono>
#include <torch/torch.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

struct Stream {
  torch::inductor::AOTIModelPackageLoader loader;
  std::vector<at::Tensor> arguments;

  // Hands the state that the last call returned to the next.
  void call() {
    std::vector<at::Tensor> results = loader.run(arguments);
    for (size_t i = 1; i < arguments.size(); ++i) arguments[i] = results[i];
  }
};

// A stream through the package's runner that lives as long as the process; `shapes` has three sizes of each input.
extern "C" void* open_stream(const char* path, const int64_t* shapes, int64_t inputs) {
  c10::InferenceMode guard;
  auto* stream = new Stream{{path, "model", /*run_single_threaded=*/true}, {}};
  for (int64_t i = 0; i < inputs; ++i, shapes += 3)
    stream->arguments.push_back(torch::rand({shapes[0], shapes[1], shapes[2]}) - 0.5);
  return stream;
}

// The seconds that each of `calls` calls takes, after a tenth as many that are not counted.
extern "C" void time_calls(void* opened, int64_t calls, double* seconds) {
  c10::InferenceMode guard;
  auto& stream = *static_cast<Stream*>(opened);
  for (int64_t i = 0; i < calls / 10 + 1; ++i) stream.call();
  for (int64_t i = 0; i < calls; ++i) {
    auto start = std::chrono::steady_clock::now();
    stream.call();
    seconds[i] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
}
"""


def own_tool(program: Program, request: Request, cache: Path) -> Tool:
    assert isinstance(program, TorchProgram)
    if request.route == "aoti":
        return Tool("a compiled loop", "median", _compiled_loop(request, cache), _empty_package(request, cache))
    return Tool("torch.utils.benchmark", "mean", _timer(program, request), _empty())


def _timer(program: TorchProgram, request: Request) -> Callable[[float], float]:
    session = program.open()
    assert isinstance(session, TorchSession)
    assert isinstance(session._stream, PreparedStream)
    x = torch.tensor(draw_inputs(request.model, request.strategy.chunk, request.batch, 0))
    with inference(True):
        call = session._stream.prepare(x)
    timer = Timer("call()", globals={"call": call}, num_threads=request.threads)

    def measure(seconds: float) -> float:
        with inference(True):
            return float(timer.timeit(_calls(seconds, timer.timeit(1).mean)).mean)

    return measure


def _compiled_loop(request: Request, cache: Path) -> Callable[[float], float]:
    if request.strategy.state != "stitched":
        raise NoToolError("the loop hands the state on, as a stitched program has it")
    (package,) = (path for path in cache.rglob("*.pt2") if path.name != EMPTY)
    library = ctypes.CDLL(str(_compile(cache)))
    library.open_stream.restype = ctypes.c_void_p
    library.time_calls.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
    shapes = [(request.strategy.chunk, request.batch, request.model.input)]
    shapes += request.model.state_shapes(request.batch).values()
    flat = (ctypes.c_int64 * (3 * len(shapes)))(*(size for shape in shapes for size in shape))
    stream = library.open_stream(str(package).encode(), flat, len(shapes))

    def median_of(calls: int) -> float:
        times = np.empty(calls)
        library.time_calls(stream, calls, times.ctypes.data)
        return float(np.median(times))

    def measure(seconds: float) -> float:
        return median_of(_calls(seconds, median_of(1)))

    return measure


def _calls(seconds: float, each: float) -> int:
    return max(3, int(seconds / each))


def _compile(cache: Path) -> Path:
    """The loop against the libtorch of the wheel, kept in the cache."""
    root = Path(torch.__file__).parent
    source, library = cache / "loop.cpp", cache / "loop.so"
    if library.exists():
        return library
    source.write_text(LOOP)
    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    command = [
        os.environ.get("CXX", "g++"),
        *("-O2", "-std=c++20", "-shared", "-fPIC", f"-D_GLIBCXX_USE_CXX11_ABI={abi}"),
        *(f"-I{root / folder}" for folder in ("include", "include/torch/csrc/api/include")),
        *(str(source), "-o", str(library), f"-L{root / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10"),
        f"-Wl,-rpath,{root / 'lib'}",
    ]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoToolError(f"the loop could not be compiled: {error}") from error
    if process.returncode:
        raise NoToolError(f"the loop could not be compiled: {process.stderr[-300:]}")
    return library


class _Nothing(torch.nn.Module):
    def forward(self, *arguments: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(argument + 0 for argument in arguments)


def _empty_package(request: Request, cache: Path) -> Callable[[], Any]:
    """A call of a package's runner with as many arguments and results, of one number each, as `bound` makes it."""
    path = cache / EMPTY
    numbers = [torch.zeros(1) for _ in range(1 + len(request.model.state_shapes(request.batch)))]
    if not path.exists():
        with inductor_in(cache):
            exported = torch.export.export(_Nothing(), tuple(numbers))
            torch._inductor.aoti_compile_and_package(exported, package_path=str(path))
    model: Any = torch._inductor.aoti_load_package(str(path), run_single_threaded=True)
    run = model.loader.run

    def call() -> None:
        run(numbers)

    return call


def _empty() -> Callable[[], Any]:
    """A call of one of torch's operators that has nothing to do, in inference mode, as `bound` enters it."""
    x = torch.zeros(0)

    def call() -> None:
        with inference(True):
            x.view(0)

    return call
