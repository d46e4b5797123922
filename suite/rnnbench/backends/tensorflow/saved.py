"""Building a request into a SavedModel under the cache, and loading it from there.

A folder `tensorflow-<key>` has the model, `facts.json` with the fields of its artifact, and in `xla/` the code that XLA
compiled. `identity` has what tells programs apart: that code, or the functions of the graph under canonical names.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rnnbench.backends.base import BuildError, OperationStage, ProgramFiles, Request
from rnnbench.backends.shared import CUDA
from rnnbench.backends.tensorflow import canonical, lowered, xla
from rnnbench.backends.tensorflow.executor import executor
from rnnbench.backends.tensorflow.process import prepare_process
from rnnbench.backends.tensorflow.support import is_compiled, is_keras
from rnnbench.disk import read_cached, remove_folder

FACTS, IDENTITY = "facts.json", "identity"


@dataclass(frozen=True)
class Loaded:
    model: Any
    function: Any
    """The concrete function `step`, which has run once."""
    cached: bool
    facts: dict[str, Any]
    """Fields of its Artifact."""
    files: ProgramFiles


def load_or_build(request: Request, cache: Path, make: Callable[[], Any], jit: bool) -> Loaded:
    """The module that `make` traces, saved and loaded; or that of an earlier build under `cache`."""
    prepare_process(request.threads, request.device)
    folder = cache / f"tensorflow-{_key(request)}"
    kept = read_cached(folder / FACTS, _read_facts)
    if kept is not None:
        model, function, _ = _load(folder, jit)
        _require_results_on_the_device(request, executor(function)(_zeros(function)))
        return Loaded(model, function, True, kept, _files(folder))
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="tensorflow-") as name:
        work = Path(name) / "model"
        _save(make(), work)
        model, function, library = _load(work, jit)
        facts = _run_and_read(request, function, library, work)
        (work / FACTS).write_text(json.dumps(facts))
        remove_folder(folder)
        work.replace(folder)
    return Loaded(model, function, False, facts, _files(folder))


def _read_facts(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(path.read_text())
    return facts


def _files(folder: Path) -> ProgramFiles:
    beside = (folder / FACTS, folder / IDENTITY)
    program = (path for path in sorted(folder.rglob("*")) if path.is_file() and path not in beside)
    return ProgramFiles(tuple(program), (folder / IDENTITY,))


def _key(request: Request) -> str:
    """XLA compiles other code for one thread than for several, and looks for what it compiled by the program alone."""
    model, weights = request.model.params, request.weights.digest(request.model)
    made_for = [version("tensorflow"), version("keras"), request.device, request.threads, *_capability(request)]
    fields = [*made_for, request.route, model, weights, request.strategy, request.precision]
    return hashlib.sha256(repr([*fields, request.batch, request.ragged]).encode()).hexdigest()[:32]


def _capability(request: Request) -> list[str]:
    """The GPU that code is compiled for; empty on the processor."""
    import tensorflow as tf

    if request.device != CUDA:
        return []
    details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
    return [str(details.get("device_name")), str(details.get("compute_capability"))]


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
    executed, results = _first_call(function)
    _require_on_the_device(request, executed)
    _require_results_on_the_device(request, results)
    marks, time = lowered.KERAS if is_keras(request.route) else lowered.AUTHORED, request.strategy.time
    if executed is None or is_compiled(request.route):
        entry = xla.store_compiled(library.functions[0].signature.name, folder / "xla")
        try:
            compiled = xla.compiled(entry, marks, time)
        except BuildError:
            if request.device != CUDA:
                raise
            compiled = xla.compiled_again(function, marks, time)
        identity, counts, facts["lowered"] = compiled.executable, compiled.operations, compiled.lowered
    else:
        identity = b"".join(definition.SerializeToString(deterministic=True) for definition in library.functions)
        counts, facts["lowered"] = lowered.operations(executed), lowered.lowered(executed, marks, time)
    (folder / IDENTITY).write_bytes(identity)
    if request.file is not None:
        facts["lowered"] = "given"
    return {
        **facts,
        "operations": {OperationStage.INPUT: canonical.operations(library.functions), OperationStage.COMPILED: counts},
    }


def _require_on_the_device(request: Request, executed: Any) -> None:
    """Raise BuildError where TensorFlow leaves arithmetic of a program for a GPU to the processor, as it may unasked.

    A user's file may have operators that no GPU has.
    """
    if request.device != CUDA or request.file is not None or executed is None:
        return
    if left := lowered.on_the_processor(executed):
        raise BuildError(f"TensorFlow would compute on the processor, and copy there and back: {', '.join(left)}")


def _require_results_on_the_device(request: Request, results: Sequence[Any]) -> None:
    """Raise BuildError where a program for a GPU returned numbers from the processor's memory.

    XLA compiles a whole program for one device, and has no graph that would tell where its operators are.
    """
    if request.device != CUDA or request.file is not None:
        return
    places = {tensor.device for tensor in results if tensor.dtype.is_floating and "device:GPU" not in tensor.device}
    if places:
        raise BuildError(f"TensorFlow computed for a GPU, and returned results from {', '.join(sorted(places))}")


def executed_graph(files: ProgramFiles) -> Any:
    """The graph of `_first_call`, of a program that an earlier build saved."""
    folder = next(path.parent for path in files.program if path.name == "saved_model.pb")
    return _first_call(_load(folder, jit=False)[1])[0]


def _first_call(function: Any) -> tuple[Any, list[Any]]:
    """Call a function for the first time. Returns the GraphDef that the executor ran (optimised, lowered and pruned),
    and the results.

    The graph is None where XLA ran it. Grappler's result, one stage earlier, still has unused copies of the cell.
    """
    from tensorflow.python.eager import context

    arguments, call = _zeros(function), executor(function)
    context.enable_graph_collection()
    try:
        results = call(arguments)
        collected = context.export_run_metadata().function_graphs
    finally:
        context.disable_graph_collection()
    return joined([partition for graphs in collected for partition in graphs.partition_graphs]), results


def joined(partitions: Sequence[Any]) -> Any:
    """One GraphDef of the partitions of an executed graph, one for each device; None where there is none.

    Beside a GPU's, there may be one of the processor.
    """
    if not partitions:
        return None
    first, *others = partitions
    for partition in others:
        first.node.extend(partition.node)
    return first


def _zeros(function: Any) -> list[Any]:
    """Zeros as arguments of a call whose results are not used. It changes the state of the model, not of a session."""
    import tensorflow as tf

    captured = function.captured_inputs
    uncaptured = function.inputs[: len(function.inputs) - len(captured)]
    return [*(tf.zeros(tensor.shape, tensor.dtype) for tensor in uncaptured), *captured]
