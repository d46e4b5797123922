"""Puts the fake backend's distribution on the path, here and for the workers that tests start."""

from __future__ import annotations

import os
import sys
from pathlib import Path

FAKE = str(Path(__file__).parent / "fake")

sys.path.insert(0, FAKE)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [FAKE, os.environ.get("PYTHONPATH")]))
