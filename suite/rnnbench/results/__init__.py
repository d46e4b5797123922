"""Results: what a run leaves behind, and everything that is read from it.

This is the ground floor of the suite. It imports nothing else of it but the declaration of latency paths
(`rnnbench.measure.paths`) and the statistics of intervals (`rnnbench.measure.interval`). Start with `read_run`, and
with `record.py` for what a record holds; `docs/results.md` says it for readers of the files.

Names are imported when they are first used: a run starts hundreds of workers, and each needs a few of them only.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.optional import MissingExtraError, require
    from rnnbench.results.artifact import Artifact, Math, OperationStage, Origin
    from rnnbench.results.compare import (
        COMPARED_PATHS,
        BuildChange,
        Comparison,
        LatencyChange,
        OutcomeChange,
        compare_runs,
    )
    from rnnbench.results.journal import append_record, write_info
    from rnnbench.results.model import FrozenModel
    from rnnbench.results.reading import StoreError
    from rnnbench.results.record import (
        FAILURES,
        SCHEMA,
        Anchor,
        CheckResult,
        CheckVerdict,
        Environment,
        ExpectedFailureResult,
        LatencyFloor,
        MemoryUse,
        Outcome,
        Params,
        Record,
        SupportResult,
    )
    from rnnbench.results.run_info import Conditions, RunInfo
    from rnnbench.results.samples import SAMPLES_CAP, read_samples, samples_file, save_samples
    from rnnbench.results.store import Run, Store, read_run
    from rnnbench.results.timing import (
        STEPS_PER_S,
        DispatchFloor,
        Latency,
        Sampling,
        SideLatency,
        StoppedBy,
        Timing,
        Warmup,
    )
    from rnnbench.results.verdict import ERROR_RATE, LOOKS, SMALLEST, Judgement, Verdict, judge_pairs, pair_ratio

_NAMES = {
    "artifact": ("Artifact", "Math", "OperationStage", "Origin"),
    "compare": ("COMPARED_PATHS", "BuildChange", "Comparison", "LatencyChange", "OutcomeChange", "compare_runs"),
    "model": ("FrozenModel",),
    "optional": ("MissingExtraError", "require"),
    "record": (
        "FAILURES",
        "SCHEMA",
        "Anchor",
        "CheckResult",
        "CheckVerdict",
        "Environment",
        "ExpectedFailureResult",
        "LatencyFloor",
        "MemoryUse",
        "Outcome",
        "Params",
        "Record",
        "SupportResult",
    ),
    "run_info": ("Conditions", "RunInfo"),
    "journal": ("append_record", "write_info"),
    "reading": ("StoreError",),
    "samples": ("SAMPLES_CAP", "read_samples", "samples_file", "save_samples"),
    "store": ("Run", "Store", "read_run"),
    "timing": ("STEPS_PER_S", "DispatchFloor", "Latency", "Sampling", "SideLatency", "StoppedBy", "Timing", "Warmup"),
    "verdict": ("ERROR_RATE", "LOOKS", "SMALLEST", "Judgement", "Verdict", "judge_pairs", "pair_ratio"),
}
__all__ = [
    "COMPARED_PATHS",
    "ERROR_RATE",
    "FAILURES",
    "LOOKS",
    "SAMPLES_CAP",
    "SCHEMA",
    "SMALLEST",
    "STEPS_PER_S",
    "Anchor",
    "Artifact",
    "BuildChange",
    "CheckResult",
    "CheckVerdict",
    "Comparison",
    "Conditions",
    "DispatchFloor",
    "Environment",
    "ExpectedFailureResult",
    "FrozenModel",
    "Judgement",
    "Latency",
    "LatencyChange",
    "LatencyFloor",
    "Math",
    "MemoryUse",
    "MissingExtraError",
    "OperationStage",
    "Origin",
    "Outcome",
    "OutcomeChange",
    "Params",
    "Record",
    "Run",
    "RunInfo",
    "Sampling",
    "SideLatency",
    "StoppedBy",
    "Store",
    "StoreError",
    "SupportResult",
    "Timing",
    "Verdict",
    "Warmup",
    "append_record",
    "compare_runs",
    "judge_pairs",
    "pair_ratio",
    "read_run",
    "read_samples",
    "require",
    "samples_file",
    "save_samples",
    "write_info",
]
__getattr__ = lazy_names(__name__, _NAMES)
