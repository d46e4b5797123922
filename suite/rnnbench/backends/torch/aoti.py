"""Route aoti: torch.export and AOTInductor make a package of machine code and weights that needs no Python."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from rnnbench.backends.base import Arrays, Bound, Request
from rnnbench.backends.shared import CUDA, SynchronousBound
from rnnbench.backends.torch.inductor import build_error, described, inductor_in, network, tracing_settings
from rnnbench.backends.torch.network import example_inputs, module_to_trace, zero_state
from rnnbench.backends.torch.split_states import may_split, of_their_own
from rnnbench.backends.torch.store import CachedBuild, Described, load_or_build, source_digest
from rnnbench.backends.torch.stream import Chunk, Opener, Queued, ToNumpy, inference

PACKED: Mapping[str, Any] = MappingProxyType(
    {"freezing": True, "max_autotune": True, "max_autotune_gemm_backends": "CPP"}
)
"""Inductor packs the weights when it compiles (`freezing`, which AOTInductor's page advises for processors), and makes
their products from its template in C++."""
CHOSEN: Mapping[str, Any] = MappingProxyType({**PACKED, "max_autotune_gemm_backends": "ATEN,CPP"})
"""The same, but each product is built both ways and timed in the build: ATen's is the faster one for many rows, and the
only one for some products."""
MANY_ROWS = 16
"""Rows from which the products are timed. With 8, those of the template took half of the time (docs/backends/torch.md).
"""


def build(request: Request, cache: Path) -> tuple[CachedBuild, Opener]:
    """The package in the cache. Every stream loads it again, because its runner must not be used by two threads."""
    source = source_digest(request)
    with inductor_in(cache):
        package = load_or_build(cache, source, partial(_compile, request, source), ".pt2")
    return package, partial(_open, request, package.path)


def _open(request: Request, path: Path) -> PackageStream:
    """A stateful program reads and writes tensors of its stream in place (`user_managed` buffers)."""
    model = torch._inductor.aoti_load_package(path, run_single_threaded=True)
    state = {} if request.strategy.state == "none" else zero_state(request)
    stitched = request.strategy.state == "stitched"
    if state and not stitched:
        model.loader.load_constants(state, False, False, True)
    return PackageStream(model, state, stitched)


class PackageStream:
    """`state` has the tensors that a stitched state starts from, or the buffers that a stateful program writes."""

    def __init__(self, model: Any, state: Mapping[str, Tensor], stitched: bool) -> None:
        self._model = model
        self._names = list(state)
        self._buffers = [] if stitched else list(state.values())
        self.results: list[Tensor] = [torch.empty(0), *(state.values() if stitched else ())]
        """The results of the last call: y, and a stitched state."""
        self._may_split = may_split(self.results[1:])

    @property
    def state(self) -> dict[str, Tensor]:
        return dict(zip(self._names, self._buffers or self.results[1:], strict=True))

    def write(self, state: Mapping[str, Tensor]) -> None:
        if self._buffers:
            for buffer, name in zip(self._buffers, self._names, strict=True):
                buffer.copy_(state[name])
        else:
            self.results[1:] = [state[name] for name in self._names]

    def step(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """A stitched y is copied: Inductor returns an h that is a view of y's last row, and the caller may change y."""
        if len(self.results) == 1:
            y: Tensor = self._model(x)
            return y
        self.results = list(self._model(x, *self.results[1:]))
        if self._may_split:
            self.results[1:] = of_their_own(self.results[1:])
        return self.results[0].clone()

    def prepare(self, x: Tensor, lengths: Tensor | None = None) -> Callable[[], Tensor]:
        """A call with this x, for one who records it (`Recordable`)."""
        return partial(self._run, x)

    def _run(self, x: Tensor) -> Tensor:
        self.results = self._model.loader.run([x, *self.results[1:]])
        return self.results[0]

    def bind(self, ring: Sequence[Chunk], to_numpy: ToNumpy) -> Bound:
        (x, *_), *_ = ring
        kind = SplitPackageBound if self._may_split else PackageBound if x.is_cpu else QueuedPackageBound
        return kind(self, self._model.loader.run, [x for x, *_ in ring], to_numpy)


class PackageBound(SynchronousBound):
    """One frame of Python above the package's runner, which takes a list and returns a list.

    The results of a call are the arguments of the next one, with the next x in the place of y. A new list for each call
    would cost 1 µs, and inference mode 1.5 µs, where the network has removed the interpreter from the cache.
    """

    def __init__(self, stream: PackageStream, run: Any, ring: Sequence[Tensor], to_numpy: ToNumpy) -> None:
        self._stream = stream
        self._run = run
        self._next_x = cycle(ring).__next__
        self._to_numpy = to_numpy

    def __call__(self) -> None:
        arguments = self._stream.results
        arguments[0] = self._next_x()
        self._stream.results = self._run(arguments)

    def output(self) -> Arrays:
        with inference(True):
            return {"y": self._to_numpy(self._stream.results[0].clone())}


class SplitPackageBound(PackageBound):
    """A bound call of a program whose state, as a row of y, may begin within a vector, and is then copied."""

    def __call__(self) -> None:
        super().__call__()
        self._stream.results[1:] = of_their_own(self._stream.results[1:])


class QueuedPackageBound(Queued, PackageBound):
    pass


def _compile(request: Request, source: str, path: Path) -> Described:
    copies = request.strategy.copies
    module = module_to_trace(request, network(request))
    with tracing_settings(request):
        try:
            exported = torch.export.export(module, example_inputs(request), strict=copies is not None)
            settings = _package(exported, path, _settings(request))
        except Exception as error:
            raise build_error("AOTInductor", error) from error
    code = _code(path)
    note = "bound calls use the package's runner, without the checks of its Python callable"
    return described(request, source, code, note, tuple(f"{name}={value}" for name, value in settings.items())), code


def _settings(request: Request) -> tuple[Mapping[str, Any], ...]:
    """Inductor's settings for a program, the fastest first.

    With `freezing`, torch 2.13 takes a buffer that the program writes for a constant
    (docs/upstream/torch-aoti-frozen-buffer.md). Its template has no float64.
    """
    is_stateful, is_double = request.strategy.state == "stateful", request.precision.compute == "float64"
    if request.device == CUDA or is_stateful or is_double:
        return ({},)
    return (PACKED, CHOSEN, {}) if request.batch < MANY_ROWS else (CHOSEN, {})


def _package(exported: Any, path: Path, settings: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Make the package with the first settings with which Inductor compiles the program. Returns them."""
    *others, last = settings
    for tried in others:
        try:
            torch._inductor.aoti_compile_and_package(exported, package_path=str(path), inductor_configs=dict(tried))
        except Exception:  # noqa: BLE001 it has no template for one of the products, or cannot freeze it
            continue
        return tried
    torch._inductor.aoti_compile_and_package(exported, package_path=str(path), inductor_configs=dict(last))
    return last


def _code(path: Path) -> str:
    """The generated C++ in the package, which is beside its machine code."""
    with zipfile.ZipFile(path) as package:
        names = sorted(name for name in package.namelist() if name.endswith(".cpp"))
        return "\n".join(package.read(name).decode() for name in names)
