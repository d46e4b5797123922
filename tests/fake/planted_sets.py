"""All programs that are planted for a check to find, by what they do. `docs/reliability.md` has the counts."""

from __future__ import annotations

from collections.abc import Mapping

from faulty_adapters import FAULTS
from faulty_leavings import LEAVINGS
from moved_work import LIARS

PLANTED: Mapping[str, tuple[str, ...]] = {
    "compute, return or keep something wrong": tuple(fault.name for fault in FAULTS),
    "move work out of the timed call": tuple(liar.name for liar in LIARS),
    "leave a setting of the process changed": tuple(leaving.name for leaving in LEAVINGS),
}
"""Names of programs by class. A test goes through each registry: `conformance/test_faults.py`,
`worker/test_moved_work.py` and `worker/test_process_state.py`."""
