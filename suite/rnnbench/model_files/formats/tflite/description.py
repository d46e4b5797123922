"""What is in a TFLite file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rnnbench.model_files.describing import LONGEST_NAME, FileFacts, build_description
from rnnbench.model_files.description import ArrayDescription, Dim, FileDescription, Role, StatePair, option
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.tflite.features import depends_of, features_of
from rnnbench.model_files.formats.tflite.file import read_tflite
from rnnbench.model_files.formats.tflite.flow import flow_of
from rnnbench.model_files.formats.tflite.graph import QUANTISED, TfliteFile, keeping_variables
from rnnbench.model_files.formats.tflite.hybrid_weights import as_litert_reads
from rnnbench.model_files.formats.tflite.oracle import activations_of
from rnnbench.model_files.formats.tflite.rewriting import quantised_ends
from rnnbench.outside_text import safe_text

BATCH = "batch"
"""The name of the first axis of all inputs where the file leaves its size open: so TensorFlow's converter writes it."""


def describe(path: Path) -> FileDescription:
    """What is in the file. Raises ModelFileError with a sentence, and MissingExtraError without ai-edge-litert."""
    file = as_litert_reads(read_tflite(path))
    activations = activations_of(file)  # An operator that is refused is told before an array of its own.
    operators = Counter(operator.name for graph in file.graphs for operator in graph.operators)
    tensors = file.graphs[file.main].tensors
    starts = {tensors[number].sizes[:1] for number in file.inputs.values()}
    is_batch = starts == {(-1,)}
    inputs = [_array(file, name, number, "input", is_batch=is_batch) for name, number in file.inputs.items()]
    outputs = [_array(file, name, number, "output", is_batch=is_batch) for name, number in file.outputs.items()]
    facts = FileFacts(
        file=path.name,
        format="tflite",
        producer=safe_text(file.producer, LONGEST_NAME),
        operators=operators,
        weight_bytes=file.weight_bytes,
        activations=activations,
        features=tuple(features_of(file)),
        depends=depends_of(file),
    )
    return build_description(
        facts,
        inputs,
        outputs,
        flow=flow_of(file),
        known=[StatePair(variable.before, variable.after, "traced") for variable in file.variables],
        starts={variable.before for variable in file.variables if variable.has_start},
        notes=list(_notes(file)),
    )


def _notes(file: TfliteFile) -> Iterator[str]:
    ends, tensors = quantised_ends(file), file.graphs[file.main].tensors
    if ends:
        numbers = file.inputs | file.outputs
        kinds = ", ".join(f"{name} {tensors[numbers[name]].dtype}" for name in ends)
        yield (
            f"The file has scales and zero points at its ends ({kinds}). Here these arrays are float32: each input "
            "gets a QUANTIZE, and each output a DEQUANTIZE."
        )
    if kept := keeping_variables(file):
        yield (
            f"{', '.join(kept)} keeps its state in variables of its own. In LiteRT a call goes on from the last one's "
            "state, and so does a call here. If your program resets them before every call (reset_all_variables), say "
            f"that they are zero in each: {' '.join(_always_zero(file))}"
        )


def _always_zero(file: TfliteFile) -> Iterator[str]:
    yield option("state={}")
    for variable in file.variables:
        yield option(f"constants.{variable.before}=0")


def _array(file: TfliteFile, name: str, number: int, role: Role, *, is_batch: bool) -> ArrayDescription:
    tensor = file.graphs[file.main].tensors[number]
    if not name.isprintable() or not name.strip():
        raise ModelFileError("an input or output has a name that cannot be printed")
    if role == "input" and tensor.range and tensor.dtype not in QUANTISED:
        raise ModelFileError(f"its input {name} is {tensor.dtype} with a scale, which LiteRT does not make of floats")
    shape: list[Dim] = [None if size < 0 else size for size in tensor.sizes]
    if is_batch and shape and shape[0] is None:
        shape[0] = BATCH
    return ArrayDescription(name, role, tuple(shape), "float32" if tensor.range else tensor.dtype)
