"""Anchors: trials of pinned versions, each examined in an environment with these versions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rnnbench.cases import Trial
from rnnbench.pipeline.environments import open_side
from rnnbench.pipeline.made_environments import ENVIRONMENTS, SideError
from rnnbench.plan import examine_all, unavailable
from rnnbench.stages import Examined

MAKING_ANCHORS = "Making the environments of the anchors, where they are not there yet."


def examine_with_anchors(trials: Iterable[Trial], environments: Path = ENVIRONMENTS) -> list[Examined]:
    """Examine the trials: each anchor in its own environment, the others in the running one. Keeps their order.

    Environments are made in the folder `environments`, and used again. An anchor whose environment cannot be made or
    used is unavailable.
    """
    trials = list(trials)
    anchors: defaultdict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.pinned:
            anchors[trial.pinned].append(trial)
    examined = {one.trial.id: one for one in examine_all(trial for trial in trials if not trial.pinned)}
    for pins, of_pins in anchors.items():
        examined |= {one.trial.id: one for one in _examined(pins, of_pins, environments)}
    return [examined[trial.id] for trial in trials]


def _examined(pins: str, anchors: Sequence[Trial], environments: Path) -> list[Examined]:
    # In their own environment the anchors are ordinary trials.
    plain = [replace(anchor, pinned="") for anchor in anchors]
    try:
        seen = open_side(pins, plain, environments).examined()
    except SideError as error:
        return [unavailable(anchor, f"no environment with its pinned versions: {error}") for anchor in anchors]
    return [replace(one, trial=anchor) for one, anchor in zip(seen, anchors, strict=True)]
