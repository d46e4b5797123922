"""An adapter whose module dies when it is imported, in the way that a variable names."""

from __future__ import annotations

import os

from rnnbench_dying import DyingBackend
from ways_of_dying import WAYS

ENTRY = "RNNBENCH_DYING_ENTRY"
if way := os.environ.get(ENTRY):
    WAYS[way].does()


class EntryBackend(DyingBackend):
    name = "dying-entry"
