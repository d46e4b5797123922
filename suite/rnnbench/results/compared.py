"""What a comparison of two runs needs of a record: with it alone, runs of many trials take little memory."""

from __future__ import annotations

from rnnbench.results.record import Record


def compared_record(record: Record) -> Record:
    """The record without what `compare_runs` never looks at: about half of its memory is left."""
    return record.model_copy(
        update={
            "conformance": {name: check for name, check in record.conformance.items() if check.verdict == "fail"},
            "timing": record.timing.model_copy(update={"state_copy": None, "dispatch_floor": None}),
            "anchor": None,
            "floor": None,
            "metrics": {},
        }
    )
