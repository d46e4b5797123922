"""Building a request into a SavedModel under the cache, and loading it from there.

A folder `tensorflow-<key>` has the model, `facts.json` with the fields of its artifact, and in `xla/` the code that XLA
compiled.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rnnbench.backends.base import OperationStage, Request
from rnnbench.backends.tensorflow import canonical, lowered, xla
from rnnbench.backends.tensorflow.executor import executor
from rnnbench.backends.tensorflow.process import prepare_process


@dataclass(frozen=True)
class Loaded:
    model: Any
    function: Any
    """The concrete function `step`, which has run once."""
    cached: bool
    facts: dict[str, Any]
    """Fields of its Artifact."""


def load_or_build(request: Request, cache: Path, make: Callable[[], Any], jit: bool) -> Loaded:
    """The module that `make` traces, saved and loaded; or that of an earlier build under `cache`."""
    prepare_process(request.threads)
    folder = cache / f"tensorflow-{_key(request)}"
    if (folder / "facts.json").exists():
        model, function, _ = _load(folder, jit)
        executor(function)(_zeros(function))
        return Loaded(model, function, True, json.loads((folder / "facts.json").read_text()))
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="tensorflow-") as name:
        work = Path(name) / "model"
        _save(make(), work)
        model, function, library = _load(work, jit)
        facts = _run_and_read(request, function, library, work)
        (work / "facts.json").write_text(json.dumps(facts))
        work.replace(folder)
    return Loaded(model, function, False, facts)


def _key(request: Request) -> str:
    model, weights = request.model.model_dump_json(), request.weights.digest(request.model)
    fields = [version("tensorflow"), request.route, model, weights, request.strategy, request.precision]
    return hashlib.sha256(repr([*fields, request.batch, request.ragged]).encode()).hexdigest()[:32]


def _save(module: Any, folder: Path) -> None:
    import tensorflow as tf

    tf.saved_model.save(module, str(folder))


def _load(folder: Path, jit: bool) -> tuple[Any, Any, canonical.Library]:
    import tensorflow as tf

    if jit:
        xla.install_compiled(folder / "xla")
    model = tf.saved_model.load(str(folder))
    (function,) = model.step.concrete_functions
    library = canonical.library(function, function.variables)
    if jit:
        xla.rename(function, library)
    return model, function, library


def _run_and_read(request: Request, function: Any, library: canonical.Library, folder: Path) -> dict[str, Any]:
    """Make the first call, in which Grappler or XLA compiles, and read the artifact's fields from the result."""
    facts: dict[str, Any] = {"source_digest": library.digest}
    executed = _executed_graph(function)
    cell = request.model.cell
    if executed is None:
        entry = xla.store_compiled(library.functions[0].signature.name, folder / "xla")
        facts["digest"], facts["nbytes"], counts, facts["lowered"] = xla.compiled(entry, cell)
    else:
        facts["digest"], facts["nbytes"] = library.digest, _size(folder)
        counts, facts["lowered"] = lowered.operations(executed), lowered.lowered(executed, cell)
    return {
        **facts,
        "operations": {OperationStage.INPUT: canonical.operations(library.functions), OperationStage.COMPILED: counts},
    }


def _executed_graph(function: Any) -> Any:
    """Call a function for the first time, and return the GraphDef that the executor ran: optimised, lowered and pruned.

    None where XLA ran it. Grappler's result, one stage earlier, still has unused copies of the cell.
    """
    from tensorflow.python.eager import context

    arguments, call = _zeros(function), executor(function)
    context.enable_graph_collection()
    try:
        call(arguments)
        collected = context.export_run_metadata().function_graphs
    finally:
        context.disable_graph_collection()
    partitions = [partition for graphs in collected for partition in graphs.partition_graphs]
    return partitions[0] if partitions else None


def _zeros(function: Any) -> list[Any]:
    """Zeros as arguments of a call whose results are not used. It changes the state of the model, not of a session."""
    import tensorflow as tf

    captured = function.captured_inputs
    uncaptured = function.inputs[: len(function.inputs) - len(captured)]
    return [*(tf.zeros(tensor.shape, tensor.dtype) for tensor in uncaptured), *captured]


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
