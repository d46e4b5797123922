"""What sampling and the other stages are given beside the trials: folders, clocks, and whom to tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rnnbench.cases import Trial
from rnnbench.measure import WallTime
from rnnbench.worker import RunFolders


@dataclass(frozen=True)
class Context:
    folders: RunFolders
    wall_time: WallTime
    on_stage: Callable[[Trial, str], None]
    """Called with each trial and stage as it begins."""
