"""A request compiled into an executable, and streams through that executable."""

from __future__ import annotations

import hashlib
import importlib
import pickle
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import serialize_executable

from rnnbench.backends.base import (
    Arrays,
    Artifact,
    Bound,
    BuildError,
    OperationStage,
    Origin,
    Program,
    ProgramFiles,
    Request,
)
from rnnbench.backends.jax import lowered, placement, store
from rnnbench.backends.jax.network import is_flat, network, state_argument
from rnnbench.backends.shared import ChunkedProgram, ChunkedSession, of_one_step
from rnnbench.cases import STREAM
from rnnbench.rnn import FUSED


def build_program(request: Request, cache: Path) -> JaxProgram:
    """The program of a request that `support` takes. Raises BuildError."""
    dtype = np.dtype(getattr(jnp, str(request.precision.uniform)))
    device = placement.device_of(request)
    if request.strategy.time == FUSED:
        importlib.import_module("rnnbench.backends.jax.cudnn")
    name = store.key(request, dtype)
    stored = store.load(cache, name, device)
    if stored is None:
        try:
            new = compile_program(request, dtype)
        except jax.errors.JaxRuntimeError as error:
            raise BuildError(f"XLA: {error}") from error
        store.save(cache, name, new.serialised, new.hlo, new.artifact)
        compiled, artifact = new.executable, new.artifact
    else:
        compiled, artifact = stored
    tail = partial(build_program, of_one_step(request), cache)
    path, identity = store.paths(cache, name)
    files = ProgramFiles((path,), (identity,))
    return JaxProgram(request, artifact, files, compiled, dtype, device, stored is not None, tail)


@dataclass(frozen=True)
class Compilation:
    """What XLA made of a request."""

    executable: jax.stages.Compiled
    serialised: bytes
    """The executable as `serialize_executable` writes it, for the store."""
    hlo: str
    """Its optimised HLO."""
    artifact: Artifact


def compile_program(request: Request, dtype: np.dtype[np.generic]) -> Compilation:
    """Compile a request for its device. Raises JaxRuntimeError with the words of XLA."""
    source = lowered_by_jax(request, dtype)
    compiled = source.compile(placement.compiler_options(request))
    stablehlo, hlo = source.as_text(), compiled.as_text()
    serialised = pickle.dumps(serialize_executable.serialize(compiled))
    artifact = Artifact(
        source_digest=hashlib.sha256(stablehlo.encode()).hexdigest(),
        operations={
            OperationStage.INPUT: dict(sorted(Counter(re.findall(r"\bstablehlo\.\w+", stablehlo)).items())),
            OperationStage.COMPILED: lowered.operations(hlo),
        },
        lowered="given" if request.file is not None else lowered.lowered(hlo, request.strategy.time),
        origin=_origin(request),
        math="exact",
        flags=placement.flags(request),
        notes=_notes(request),
    )
    return Compilation(compiled, serialised, hlo, artifact)


def lowered_by_jax(request: Request, dtype: np.dtype[np.generic]) -> jax.stages.Lowered:
    """The request's program as JAX lowers it for XLA on the request's device."""
    with placement.placed(request):
        return traced(request, dtype).lower()


def traced(request: Request, dtype: np.dtype[np.generic]) -> jax.stages.Traced:
    """The request's program. To be called, and lowered, within `placement.placed`."""
    x = jax.ShapeDtypeStruct((request.strategy.chunk, request.batch, request.model.input), dtype)
    carried = request.strategy.state != "none"
    arguments: tuple[Any, ...] = (x, state_argument(request, dtype)) if carried else (x,)
    if request.ragged:
        arguments = (x, jax.ShapeDtypeStruct((request.batch,), np.dtype(np.int32)))
    # Without the lines of Python that each operation came from, equal programs are equal bytes.
    jax.config.update("jax_traceback_in_locations_limit", 0)
    return jax.jit(network(request), donate_argnums=(1,) if carried else ()).trace(*arguments)


def _origin(request: Request) -> Origin:
    if request.file is not None:
        return "imported"
    return "library" if request.strategy.time == FUSED else "authored"


def _notes(request: Request) -> tuple[str, ...]:
    if request.file is not None:
        note = "The functions are the file's own, called from a function of JAX that lays arrays out."
        return (note, *_notes_of_state(request))
    notes = ["The weights are constants of the executable."]
    if request.strategy.time == FUSED:
        notes.append("cuDNN has the batch first: x and y are transposed inside the call.")
    elif not request.model.is_exact:
        notes.append("The input projection of all steps of a call is one product, outside any loop.")
    if request.strategy.launch != STREAM:
        notes.append("A call is one CUDA graph. It has a copy of a loop's body for each pass.")
    return (*notes, *_notes_of_state(request))


def _notes_of_state(request: Request) -> tuple[str, ...]:
    kept = "The state of all layers is one flat array, donated to each call."
    if not is_flat(request):
        kept = "The states have several types: each is an array, donated to each call."
    return () if request.strategy.state == "none" else (kept,)


class JaxProgram(ChunkedProgram):
    """A loaded executable."""

    def __init__(
        self,
        request: Request,
        artifact: Artifact,
        files: ProgramFiles,
        compiled: jax.stages.Compiled,
        dtype: np.dtype[np.generic],
        device: jax.Device,
        cached: bool,
        build_tail: Callable[[], Program],
    ) -> None:
        super().__init__(request, artifact, cached, build_tail)
        self.files = files
        self.call: Callable[..., Any] = compiled
        self.dtype = dtype
        self.device = device

    def open(self) -> JaxSession:
        return JaxSession(self)


class JaxSession(ChunkedSession):
    """A stream. Its state is the array that the last call returned; the next call consumes it."""

    def __init__(self, program: JaxProgram) -> None:
        super().__init__(program)
        self._call = program.call
        self._compute = program.dtype
        self._device = program.device
        self._is_flat = is_flat(program.request)
        self.state: Any = None
        self.reset()

    def _advance(self, x: np.ndarray) -> np.ndarray:
        x = x.astype(self._compute, copy=False)
        if self._streams:
            y, self.state = self._call(x, self.state)
        else:
            (y,) = self._call(x)
        return self.to_host(y)

    def _advance_ragged(self, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        (y,) = self._call(x.astype(self._compute, copy=False), lengths)
        return self.to_host(y)

    def to_host(self, array: Any) -> np.ndarray:
        """A copy, in the dtype that sessions exchange; waits until the array is there."""
        return np.array(array, self._dtype)

    def to_device(self, array: np.ndarray) -> Any:
        """A copy of floating-point numbers, in the device's memory."""
        return self._placed(array.astype(self._compute, copy=False))

    def _placed(self, array: np.ndarray) -> Any:
        """A copy, since JAX (0.10) may take an array's memory even where it is told not to. It takes a quarter of the
        time of `jnp.array` with a device."""
        return jax.device_put(np.array(array), self._device)

    def _read_state(self) -> dict[str, np.ndarray]:
        if self._is_flat:
            return self._state_of_flat(self.to_host(self.state))
        return {s.name: np.array(array, s.dtype) for s, array in zip(self._states, self.state, strict=True)}

    def _write_state(self, state: Arrays) -> None:
        if self._is_flat:
            self.state = self.to_device(self._flat_state(state))
            return
        model = self._program.request.model
        dtypes = {s.name: jnp.dtype(model.state_dtype(s.name, str(self._compute))) for s in self._states}
        self.state = [self._placed(state[name].astype(dtype, copy=False)) for name, dtype in dtypes.items()]

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        chunks = [self.to_device(x) for x in ring]
        if self._streams:
            return StreamBound(self, self._call, chunks)
        return WholeBound(self, self._call, [(x,) for x in chunks])

    def _bind_ragged(self, ring: list[tuple[np.ndarray, np.ndarray]]) -> Bound:
        return WholeBound(self, self._call, [(self.to_device(x), self._placed(lengths)) for x, lengths in ring])


class _JaxBound:
    """Calls on arrays that were put on the device beforehand, one for each chunk."""

    def __init__(self, session: JaxSession, call: Callable[..., Any], ring: list[Any]) -> None:
        self._session = session
        self._call = call
        self._next = cycle(ring).__next__
        self._y: Any = None

    def sync(self) -> None:
        if self._y is not None:
            self._y.block_until_ready()

    def output(self) -> Arrays:
        return {"y": self._session.to_host(self._y)}


class StreamBound(_JaxBound):
    """Calls that take the state that the last call returned, and keep the one that they return."""

    def __call__(self) -> None:
        session = self._session
        self._y, session.state = self._call(self._next(), session.state)


class WholeBound(_JaxBound):
    """Calls that start from zeros. The ring has x, and the rows' lengths where they have any."""

    def __call__(self) -> None:
        (self._y,) = self._call(*self._next())
