"""The context of all stages: the run's folders, its clock, and the callback that shows progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rnnbench.cases import Trial
from rnnbench.measure import WallTime
from rnnbench.worker import RunFolders


@dataclass(frozen=True)
class Context:
    """What every stage gets beside the trials."""

    folders: RunFolders
    wall_time: WallTime
    on_stage: Callable[[Trial, str], None]
    """Called with each trial and stage as it begins."""
