"""What somebody edits or installs while a run is on: its trials are then of two states of the same package."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rnnbench.backends import SeenFiles
from rnnbench.stages import Examined


def see_files(examined: Iterable[Examined]) -> SeenFiles:
    """The files of what these trials need of the running environment. Those of other environments are not looked at."""
    own = [one for one in examined if one.failure is None and one.support.interpreter in ("", sys.executable)]
    packages = {name for one in own for name in one.probe.versions}
    return SeenFiles({one.trial.target.backend for one in own}, {*packages, "numpy"})
