"""The oracle of a SavedModel: its graph with all floats in float64."""

from __future__ import annotations

from pathlib import Path

from rnnbench.model_files.formats.savedmodel.program import SavedModelProgram
from rnnbench.model_files.tensorflow_program import TensorflowOracle


def saved_model_oracle(path: Path) -> TensorflowOracle:
    """Raises ModelFileError for a file that is not read; MissingExtraError without TensorFlow."""
    return TensorflowOracle(path, SavedModelProgram(path, double=True))
