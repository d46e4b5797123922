"""Adapters that are wrong, each in one way, with the check that must find it. All compile, run and look plausible."""

from __future__ import annotations

import faulty_aftermath  # noqa: F401 each module enlists its faults
import faulty_alike  # noqa: F401
import faulty_arrays  # noqa: F401
import faulty_contents  # noqa: F401
import faulty_counts  # noqa: F401
import faulty_edges  # noqa: F401
import faulty_givens  # noqa: F401
import faulty_kinds  # noqa: F401
import faulty_looks  # noqa: F401
import faulty_memory  # noqa: F401
import faulty_mixed  # noqa: F401
import faulty_neighbours  # noqa: F401
import faulty_networks  # noqa: F401
import faulty_returns  # noqa: F401
import faulty_rewinds  # noqa: F401
import faulty_sequels  # noqa: F401
import faulty_sessions  # noqa: F401
import faulty_streams  # noqa: F401
import faulty_timed  # noqa: F401
import faulty_turns  # noqa: F401
import faulty_values  # noqa: F401
import faulty_wear  # noqa: F401
from planted import FAULTS, Fault

__all__ = ["FAULTS", "Fault"]
