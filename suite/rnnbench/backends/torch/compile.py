"""Route compile: torch.compile of the whole module as one graph, saved as a function that loads without compiling.

`aot_compile` of torch.compile gives a function that can be saved. Inductor's folder, beside it in the cache, has the
machine code that the function loads.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch._guards import TracingContext, tracing
from torch._inductor.utils import run_and_get_code

from rnnbench.backends.base import Request
from rnnbench.backends.shared import CUDA
from rnnbench.backends.torch.inductor import build_error, described, inductor_in, network, tracing_settings
from rnnbench.backends.torch.network import example_inputs, module_to_trace, stream_state
from rnnbench.backends.torch.store import CachedBuild, Described, load_or_build, source_digest
from rnnbench.backends.torch.stream import Opener
from rnnbench.backends.torch.traced_stream import TracedStream

OPTIONS: Mapping[str, Any] = MappingProxyType(
    {
        "cpp_wrapper": True,
        "size_asserts": False,
        "guard_filter_fn": torch.compiler.skip_all_guards_unsafe,
    }
)
"""C++ instead of Python calls the kernels, which saves a third of the time of an unrolled LSTM of 128 units. There are
no guards, because they would repeat in every call the checks that the session has made."""
CUDA_OPTIONS: Mapping[str, Any] = MappingProxyType({**OPTIONS, "cpp_wrapper": False})
"""Python calls the kernels, as it does for every user of torch.compile on a GPU: C++ there would need CUDA's toolkit.
`launch: graph` leaves out what these calls cost."""


def build(request: Request, cache: Path) -> tuple[CachedBuild, Opener]:
    """The compiled function in the cache, which is loaded with the module whose weights and buffers it reads."""
    source = source_digest(request)
    rnn = network(request)
    with inductor_in(cache):
        function = load_or_build(cache, source, partial(_compile, request, rnn, source))
    return function, partial(_open, request, rnn, function.path, cache)


def _open(request: Request, rnn: nn.Module, path: Path, cache: Path) -> TracedStream:
    module = module_to_trace(request, rnn)
    # A saved scan (torch 2.13) installs a guard when it is loaded, and needs a tracing context for that.
    with inductor_in(cache), tracing(TracingContext(None)), path.open("rb") as file:
        function: Any = torch.compiler.load_compiled_function(file, external_data={"module": module})
    function.disable_guard_check()
    return TracedStream(function, function, stream_state(request, module), request.strategy.state == "stitched")


def _compile(request: Request, rnn: nn.Module, source: str, path: Path) -> Described:
    module, options = module_to_trace(request, rnn), CUDA_OPTIONS if request.device == CUDA else OPTIONS

    def program(*arguments: Tensor) -> Any:
        return module(*arguments)

    def compiled() -> Any:
        # torch.compile takes entries out of the options that it is given.
        graph: Any = torch.compile(program, fullgraph=True, dynamic=False, options=dict(options))
        return graph.aot_compile((example_inputs(request), {}))

    with tracing_settings(request):
        try:
            function, codes = run_and_get_code(compiled)
        except Exception as error:
            raise build_error("torch.compile", error) from error
    function.save_compiled_function(str(path), external_data={"module": module})
    code = "\n".join(codes)
    flags = tuple(f"{name}={value}" for name, value in options.items() if value in (True, False))
    note = "the function is called without guards: the session makes the checks that they would repeat"
    return described(request, source, code, note, flags), code
