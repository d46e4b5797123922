"""Finding sources and packages that change during a run: its trials would then mix two versions of a package."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rnnbench.backends import SeenFiles
from rnnbench.stages import Examined


def see_files(examined: Iterable[Examined]) -> SeenFiles:
    """The files of the packages that these trials use in the running environment. Other environments are left out."""
    usable = [one for one in examined if one.failure is None and one.support.interpreter in ("", sys.executable)]
    packages = {name for one in usable for name in one.probe.versions}
    return SeenFiles({one.trial.target.backend for one in usable}, {*packages, "numpy"})
