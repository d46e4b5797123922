"""PT2: programs of torch.export. No pickle of them is read; torch computes their operators."""

from __future__ import annotations

from rnnbench.model_files.formats.format import Format
from rnnbench.model_files.pt2_description import describe
from rnnbench.model_files.pt2_oracle import Pt2Oracle

FORMAT = Format("pt2", ".pt2", describe, Pt2Oracle)
