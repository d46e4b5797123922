"""StableHLO: a module of MLIR as text, with its states as arguments and results or in globals of `ml_program`."""

from __future__ import annotations

from rnnbench.model_files.formats.format import Format
from rnnbench.model_files.formats.stablehlo.description import describe
from rnnbench.model_files.formats.stablehlo.oracle import StablehloOracle

FORMAT = Format("stablehlo", (".mlir",), describe, StablehloOracle)
