"""ONNX: graphs of ONNX's own operators. The package onnx reads them, and its reference evaluator computes them."""

from __future__ import annotations

from rnnbench.model_files.formats.format import Format
from rnnbench.model_files.formats.onnx.description import describe
from rnnbench.model_files.formats.onnx.oracle import OnnxOracle

FORMAT = Format("onnx", (".onnx",), describe, OnnxOracle)
