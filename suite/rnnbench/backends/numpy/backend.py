"""NumpyBackend: what it supports, and the weights that a build prepares and caches."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import numpy as np

from rnnbench.backends.base import ACTIVATIONS, LENGTHS, Artifact, Probe, ProgramFiles, Request, Support
from rnnbench.backends.numpy.network import Network
from rnnbench.backends.numpy.program import NumpyProgram
from rnnbench.backends.numpy.weights_file import by_name, for_products, load_weights, save_weights
from rnnbench.backends.shared import Abilities, of_one_step, require_support
from rnnbench.disk import read_cached, write_text
from rnnbench.rnn import LAYER_PRIMITIVES, Weights, runs_together

DTYPES = ("float32", "float64")
AUTHORS = {"eager": LAYER_PRIMITIVES}
COVERS = frozenset({ACTIVATIONS, LENGTHS})
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class NumpyBackend:
    name = "numpy"

    def probe(self) -> Probe:
        return Probe(routes=("eager",), versions={"numpy": version("numpy")}, authors=AUTHORS, baseline=True)

    def support(self, request: Request) -> Support:
        strategy = request.strategy
        if request.route != "eager":
            return _unsupported(f"NumPy has the route eager, and not {request.route}.")
        if request.precision.uniform not in DTYPES:
            return _unsupported(
                "NumPy's products call BLAS in float32 and float64 only, and all of a program has one dtype."
            )
        if strategy.time == "fused":
            return _unsupported("NumPy has no RNN operator.")
        if strategy.time != "looped" and not runs_together(strategy.time):
            return _unsupported("NumPy executes eagerly, so there is no program whose loop could be unrolled.")
        environment = {name: str(request.threads) for name in THREADS}
        if strategy.state == "stateful":
            reason = "NumPy has no program that could keep a state; the session keeps it in arrays."
            return Support("emulated", reason, environment=environment, covers=COVERS)
        return Support("native", environment=environment, covers=COVERS)

    def load(self) -> None:
        """Nothing to import: the suite itself uses NumPy."""

    def build(self, request: Request, cache: Path) -> NumpyProgram:
        require_support(self, request, Abilities(authors=AUTHORS))
        dtype = np.dtype(request.precision.compute)
        source = _source_digest(request)
        path = cache / f"numpy-{source[:32]}.npz"
        listing = path.with_suffix(".txt")
        cached = listing.exists() and read_cached(path, load_weights) is not None
        if not cached:
            save_weights(path, for_products(request.weights, dtype))
        weights = load_weights(path)
        network = Network(request, weights, dtype)
        if not cached:
            write_text(listing, "\n".join([source, *network.listing()]))
        artifact = Artifact(
            source_digest=source,
            operations=network.operations(),
            lowered=network.lowered(),
            origin="authored",
            math="exact",
            flags=(f"blas={_blas()}",),
            notes=(
                "The input projection of a chunk is one product before its steps.",
                "A session allocates the output of every operation when it opens, and the operations write there.",
            ),
            hoisted=request.strategy.chunk,
        )
        files = ProgramFiles((path,), (listing,))
        return NumpyProgram(request, weights, artifact, files, cached, lambda: self.build(of_one_step(request), cache))


def _unsupported(reason: str) -> Support:
    return Support("unsupported", reason)


def _source_digest(request: Request) -> str:
    """Digest of the request. Stitched and stateful are one program; with state `none` it begins by writing zeros."""
    program = {
        "model": request.model.params,
        "time": request.strategy.time,
        "carried": request.strategy.state != "none",
        "chunk": request.strategy.chunk,
        "batch": request.batch,
        "dtype": request.precision.compute,
        "ragged": request.ragged,
    }
    return _digest([json.dumps(program, sort_keys=True)], request.weights)


def _digest(lines: Iterable[str], weights: Weights) -> str:
    sha = hashlib.sha256("\n".join(lines).encode())
    for key, array in by_name(weights).items():
        sha.update(f"{key} {array.dtype}".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()


def _blas() -> str:
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas['name']} {blas['version']}"
