"""The reference of a trial. It is computed before the checks, within its own limit: its time is not the program's."""

from __future__ import annotations

from typing import Protocol

from rnnbench.cases import Trial
from rnnbench.conformance import ReferenceTrajectories
from rnnbench.disk import read_cached, read_plain, write_text
from rnnbench.sampling import Context
from rnnbench.worker import Command, ComputeReference, Reply, WorkerError

CHECKS_REFERENCES = 10
"""Some checks compute references of their own, from other states and inputs. Together they may take this many times
the seconds of the reference that is computed before the checks."""

LEAST_SHARE, START_S = 0.1, 0.1
"""A worker that used fewer CPU seconds than this share of its limit minus START_S was stopped or hung, and did not
compute the reference. This is the fault of its own trial. Other trials then compute the reference."""


class AskableWorker(Protocol):
    """What the reference needs of a worker."""

    def ask(self, command: Command[Reply], timeout: float, memory: int | None = None) -> Reply: ...


def compute_reference(trial: Trial, worker: AskableWorker, context: Context) -> float:
    """Compute the parts of the reference that no earlier trial has computed, within `limits.reference`.

    Returns the seconds that checks may add for references of their own. A reference that was too slow for one trial is
    not begun for another trial with the same limit. Raises WorkerError.
    """
    limit = trial.limits.reference
    late = ReferenceTrajectories(trial, context.folders.references).late_file
    if (read_cached(late, lambda file: float(read_plain(file))) or 0.0) >= limit:
        raise WorkerError("timed-out", f"{_too_slow(limit)}. Another trial has shown this", alive=True)
    context.on_stage(trial, "reference")
    try:
        figures = worker.ask(ComputeReference(trial), limit, trial.limits.memory)
    except WorkerError as error:
        if error.outcome != "timed-out":
            raise
        if error.cpu_s is not None and error.cpu_s < LEAST_SHARE * limit - START_S:
            raise WorkerError("timed-out", _not_computed(limit, error.cpu_s), alive=error.alive) from error
        write_text(late, f"{limit}")
        raise WorkerError("timed-out", _too_slow(limit), alive=error.alive) from error
    return min(limit, CHECKS_REFERENCES * figures.seconds)


def _not_computed(limit: float, cpu_s: float) -> str:
    return (
        f"its worker had {limit:.4g} s (limits.reference) to compute the float64 reference, and used "
        f"{cpu_s:.2g} s of the processor: it hung, was stopped, or found no free core; killed"
    )


def _too_slow(limit: float) -> str:
    return (
        f"its float64 reference takes more than {limit:.4g} s (limits.reference), so its program was not checked. Give "
        f"it more, as in --set limits.reference={4 * limit:.4g}s, or fewer steps"
    )
