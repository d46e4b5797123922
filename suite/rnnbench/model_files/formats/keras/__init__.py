"""Keras: `.keras` files (a zip) and `.h5` files, of layers and weights. No code of them runs: layers are on a list."""

from __future__ import annotations

from rnnbench.model_files.formats.format import Format
from rnnbench.model_files.formats.keras.description import describe
from rnnbench.model_files.formats.keras.oracle import keras_oracle

FORMAT = Format("keras", (".keras", ".h5", ".hdf5"), describe, keras_oracle)
