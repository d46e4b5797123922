"""The oracle of a `.keras` file: its layers in float64, by Keras on TensorFlow."""

from __future__ import annotations

from pathlib import Path

from rnnbench.model_files.formats.keras.layers import NARROW, policies_of
from rnnbench.model_files.formats.keras.program import KerasProgram
from rnnbench.model_files.tensorflow_program import TensorflowOracle
from rnnbench.model_files.tensorflow_types import InFloat64


def keras_oracle(path: Path) -> TensorflowOracle:
    """Raises ModelFileError for a file that is not read; MissingExtraError without Keras.

    Layers of one type are built in float64. If they have several types, the graph of a call says where they round.
    """
    program = KerasProgram(path)
    policies = policies_of(program.file.config)
    if NARROW & policies or policies >= {"float32", "float64"}:
        return TensorflowOracle(path, InFloat64(program))
    return TensorflowOracle(path, KerasProgram(path, "float64"))
