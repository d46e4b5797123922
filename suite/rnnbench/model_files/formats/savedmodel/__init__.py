"""SavedModel of TensorFlow 2: a signature's graph and its variables. Only operations on a list are read."""

from __future__ import annotations

from rnnbench.model_files.formats.format import Format
from rnnbench.model_files.formats.savedmodel.description import describe
from rnnbench.model_files.formats.savedmodel.oracle import saved_model_oracle

FORMAT = Format("savedmodel", (".pb",), describe, saved_model_oracle)
