"""What a comparison of two runs needs of a record: with it alone, runs of many trials take little memory."""

from __future__ import annotations

from rnnbench.results.record import Record
from rnnbench.results.timing import Latency, Sampling

_SAMPLING = Sampling()


def compared_record(record: Record) -> Record:
    """The record without what `compare_runs` never looks at: a third of its memory is left."""
    timing = record.timing
    latency = {path: _compared_latency(one) for path, one in timing.latency.items()}
    return record.model_copy(
        update={
            "conformance": {name: check for name, check in record.conformance.items() if check.verdict == "fail"},
            "timing": timing.model_copy(update={"latency": latency, "state_copy": None, "dispatch_floor": None}),
            "anchor": None,
            "floor": None,
            "metrics": {},
        }
    )


def _compared_latency(latency: Latency) -> Latency:
    calls = latency.sampling.calls_per_sample
    sampling = _SAMPLING if calls == 1 else Sampling(calls_per_sample=calls)
    return latency.model_copy(update={"interval": None, "sampling": sampling})
