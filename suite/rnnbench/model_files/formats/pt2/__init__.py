"""PT2: programs of torch.export. No pickle of them is read; torch computes their operators."""

from __future__ import annotations

from rnnbench.model_files.formats.format import Format
from rnnbench.model_files.formats.pt2.description import describe
from rnnbench.model_files.formats.pt2.oracle import Pt2Oracle

FORMAT = Format("pt2", (".pt2",), describe, Pt2Oracle)
