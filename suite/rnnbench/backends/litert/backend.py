"""LitertBackend: the installed versions, the supported requests, and how a request becomes a program."""

from __future__ import annotations

import importlib
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from rnnbench.backends.base import ACTIVATIONS, Artifact, Probe, Program, Request, Support
from rnnbench.backends.litert import store
from rnnbench.backends.litert.runtime import LitertProgram
from rnnbench.backends.litert.shared_weights import LEAST_REPEATED_BYTES, repeats_much
from rnnbench.backends.shared import (
    Abilities,
    cut_matrix,
    int8_notes,
    int8_operations,
    load_or_build,
    of_one_step,
    probe_packages,
    program_folder,
    require_support,
)
from rnnbench.model_files import FileNetwork, ModelFileError, states_in_place, unchanged_path

ROUTES = ("tensorflow",)
PACKAGES = ("ai-edge-litert", "tensorflow")
KERAS_3_IS_NOT_FUSED = "tensorflow/tensorflow#126061"
"""The LSTM of Keras 3 is converted to a loop, that of Keras 2 to the operator."""
NOT_ON = {"cuda": "LiteRT's accelerators reach GPUs through OpenCL, WebGPU and Metal, and none does through CUDA."}
READS = {"tensorflow": frozenset({"tflite"})}
IN_BUFFERS = "The session keeps the states of the file in its buffers."
IN_PLACE = "The operators of the file keep its states in tensors of their own, and a call passes none."
INT8_RESULTS = (
    "LiteRT's products of int8 operands with fixed ranges (FULLY_CONNECTED, its LSTM) need ranges for their results "
    "too, and round them to 8 or 16 bits. In int8_static they are float32."
)
MOVES_TENSORS = frozenset(("WHILE", "IF"))
"""Operators that run another graph of the file. When that graph grows, all tensors move."""
ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}
"""For the converter. The interpreter reads neither."""


class LitertBackend:
    name = "litert"

    def probe(self) -> Probe:
        return replace(probe_packages(ROUTES, PACKAGES, "pip install 'rnnbench[litert]'"), reads=READS, not_on=NOT_ON)

    def support(self, request: Request) -> Support:
        reason = _unsupported(request)
        if reason:
            return Support("unsupported", reason)
        if request.file is not None:
            reason = _emulated(request.file, request.strategy.state)
            return Support("emulated" if reason else "native", reason, environment=ENVIRONMENT)
        upstream = KERAS_3_IS_NOT_FUSED if request.strategy.time == "fused" else ""
        return Support("native", upstream=upstream, environment=ENVIRONMENT, covers=frozenset({ACTIVATIONS}))

    def load(self) -> None:
        importlib.import_module("ai_edge_litert.interpreter")
        with suppress(ImportError):  # 2.1 has no options for it.
            importlib.import_module("ai_edge_litert.compiled_model")

    def build(self, request: Request, cache: Path) -> Program:
        require_support(self, request, Abilities(reads=READS))
        if request.file is not None:
            return self._file(request, request.file, cache)
        stored = store.load_or_build(request, cache)
        artifact = Artifact(
            source_digest=stored.facts.source_digest,
            operations=stored.facts.operations,
            int8_operations=int8_operations(request, stored.facts.operations, (store.FUSED, store.INT8_PRODUCT)),
            lowered=stored.facts.lowered,
            origin="library" if request.strategy.time == "fused" else "imported",
            math="exact",
            notes=(*_notes(request, stored.facts.why_not_compiled), *int8_notes(request)),
        )
        return LitertProgram(request, artifact, stored, lambda: self.build(of_one_step(request), cache))

    def _file(self, request: Request, network: FileNetwork, cache: Path) -> Program:
        from rnnbench.backends.litert.file_program import FileProgram, describe_file

        folder = program_folder(request, cache, self.probe().versions)
        stored = load_or_build(folder, partial(describe_file, network))
        return FileProgram(request, stored, lambda: self.build(of_one_step(request), cache))


def _emulated(network: FileNetwork, state: str) -> str:
    """What stands in for this way of keeping the states of a file; empty where LiteRT has it."""
    if state not in ("stitched", "stateful"):
        return ""
    names = {carried.before.name for carried in network.states}
    try:
        kept = names & states_in_place(unchanged_path(network))
    except ModelFileError:  # The build says what is wrong with the file.
        kept = set()
    if state == "stitched":
        return IN_PLACE if kept else ""
    return IN_BUFFERS if kept != names or MOVES_TENSORS & {*network.operators} else ""


def _unsupported(request: Request) -> str:
    """Why a request cannot be met; empty where it can."""
    if request.precision.int8 == "int8_weights":
        return "LiteRT's kernels with int8 weights quantise x and h in each call too: that is int8_dynamic."
    if request.precision.int8 == "int8_dynamic":
        return _not_fused(request) if request.strategy.time == "fused" else cut_matrix(request) or _left_out(request)
    if request.precision.int8 == "int8_static":
        return INT8_RESULTS
    if request.precision.uniform != "float32":
        return "LiteRT's kernels for products and gates are in float32 and in integers. The suite builds no others."
    return _not_fused(request) if request.strategy.time == "fused" else ""


def _left_out(request: Request) -> str:
    """Why the converter writes no product by a recurrent matrix; empty where it does."""
    strategy = request.strategy
    if strategy.state == "none" and strategy.chunk == 1 and strategy.time != "looped":
        return (
            "One step from zeros needs no product by a recurrent matrix, and the converter leaves it out. So that "
            "matrix is not in the program, and its int8 form cannot be checked."
        )
    return ""


def _not_fused(request: Request) -> str:
    model = request.stack
    if model.cell != "lstm":
        return f"The converter makes a fused operator from an LSTM only. LiteRT has none for the cell {model.cell}."
    if model.projection or model.clip is not None:
        return "The operator that the converter makes has no projection and no clip of the gates' inputs."
    if model.other_activations:
        return "The operator that the converter makes has no other activations than sigmoid and tanh."
    if request.strategy.state == "stitched":
        return "UNIDIRECTIONAL_SEQUENCE_LSTM keeps its state in variable tensors. It neither takes nor returns a state."
    return ""


def _notes(request: Request, why_not_compiled: str) -> tuple[str, ...]:
    notes = ["XNNPACK runs the operators that it supports, which is the interpreter's default"]
    if why_not_compiled:
        notes.append(f"each copy of the cell has packed weights of its own: CompiledModel failed ({why_not_compiled})")
    elif repeats_much(request):
        notes.append(
            f"CompiledModel runs the program, not the interpreter: the recurrent weights of all copies have "
            f"{LEAST_REPEATED_BYTES >> 20} MiB or more, and the copies share them in XNNPACK's cache of packed weights"
        )
    notes.append("a build imports TensorFlow: its time is separate, its memory is in the build's peak; a load does not")
    if request.strategy.time == "fused":
        notes.append("the model's cell_clip replaces the converter's, which is 10")
        return tuple(notes)
    if request.stack.cell != "counter":
        notes.append("the input projection of all steps of a call is one product, outside any loop")
    if request.strategy.copies:
        notes.append("the converter writes rows of y with DYNAMIC_UPDATE_SLICE, by an option that is off by default")
    return tuple(notes)
