"""TFLite: flatbuffers of LiteRT's operators. The schema of the package ai-edge-litert reads them."""

from __future__ import annotations

from rnnbench.model_files.formats.format import Format
from rnnbench.model_files.formats.tflite.description import describe
from rnnbench.model_files.formats.tflite.oracle import TfliteOracle

FORMAT = Format("tflite", (".tflite",), describe, TfliteOracle)
