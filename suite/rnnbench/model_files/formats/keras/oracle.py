"""The oracle of a `.keras` file: its layers built in float64, by Keras on TensorFlow."""

from __future__ import annotations

from pathlib import Path

from rnnbench.model_files.formats.keras.program import KerasProgram
from rnnbench.model_files.tensorflow_program import TensorflowOracle


def keras_oracle(path: Path) -> TensorflowOracle:
    """Raises ModelFileError for a file that is not read; MissingExtraError without Keras."""
    return TensorflowOracle(path, KerasProgram(path, "float64"))
