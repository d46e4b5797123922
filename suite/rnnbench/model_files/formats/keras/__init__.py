"""Keras: `.keras` files, a zip of layers and weights. No code of them runs: layers are those of a list."""

from __future__ import annotations

from rnnbench.model_files.formats.format import Format
from rnnbench.model_files.formats.keras.description import describe
from rnnbench.model_files.formats.keras.oracle import keras_oracle

FORMAT = Format("keras", ".keras", describe, keras_oracle)
