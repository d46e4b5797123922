"""Every way of dying in every stage: the right outcome, no other trial harmed (hours; docs/reliability.md).

RNNBENCH_DYING=bound,verify takes only these stages. RNNBENCH_DYING_BACKEND=dying-real takes ONNX Runtime's adapter, and
RNNBENCH_DYING_WAYS=aborts,spins takes only these ways.
"""

from __future__ import annotations

import os
import time

import pytest
from dying_runs import FAKE, SHARED, Death, die_together
from ways_of_dying import WAYS

TOGETHER = 20
"""Trials that die in one run. Those that die while they are sampled begin each other's worker anew."""
CHECKED = ("import", "build", "load", "check")
"""Stages of `check` too. There, trials are forked children of one worker; in a run each has its own."""
SELECTED, CHOSEN = (tuple(filter(None, os.environ.get(f"RNNBENCH_DYING{of}", "").split(","))) for of in ("", "_WAYS"))
BACKEND = os.environ.get("RNNBENCH_DYING_BACKEND", FAKE)


def deaths(stage: str) -> list[Death]:
    return [(stage, way) for way in CHOSEN or WAYS]


def test_there_are_sixty_ways_or_more():
    assert len(WAYS) >= 60


STAGES = [(stage, "run") for stage in ("support", *CHECKED, *SHARED)]
STAGES += [(stage, "check") for stage in ("support", *CHECKED)]


@pytest.mark.parametrize(("stage", "command"), [one for one in STAGES if not SELECTED or one[0] in SELECTED])
def test_each_way_has_its_outcome_and_harms_no_other_trial(stage, command, tmp_path):
    dying, mistakes, began = deaths(stage), [], time.monotonic()
    for first in range(0, len(dying), TOGETHER):
        together = dying[first : first + TOGETHER]
        ended = die_together(together, tmp_path / str(first), timed=command == "run", backend=BACKEND)
        wrong = [*ended.mistakes(together), *ended.late]
        print("".join(f"\n  {line}" for line in wrong), end="", flush=True)
        mistakes += wrong
    print(f"\n{command}, {stage}: {len(dying)} ways, {len(mistakes)} mistakes, {time.monotonic() - began:.0f} s")
    assert not mistakes
