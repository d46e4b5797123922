"""What the site of the tests is made from: nights that no machine measured, a planted change and hostile names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import fake_records as fake
import made_history
import numpy as np

from rnnbench.history import Change
from rnnbench.results import SAMPLE_COLUMNS, Record, Run

NIGHTS, STEP = 14, 7
HOSTILE = '<img src=x onerror="window.hit=1">\'"</script><script>window.hit=2</script>\u2028\u202eetirw'
HOSTILE_SHOWN = '<img src=x onerror="window.hit=1">\'"</script><script>window.hit=2</script> \\u202eetirw'
"""What a page shows of it: a line separator is a space, and a sign that turns text around is written out."""


CHANGE = Change(
    machine="fake",
    level="trial",
    subject="t1",
    backend="fakelib",
    measure="bound",
    run="night",
    night="2026-01-30T02:00:00",
    last_run="before",
    versions=("1", "2"),
    ratio=1.1,
    interval=(1.05, 1.15),
    cause="program",
    reason="",
)
"""A slowdown of a trial on the day before the run of the fixture `content`."""


SAMPLES, DISTURBED = 500, 50


def samples() -> np.ndarray:
    """Of a latency around 100 µs, as rows of SAMPLE_COLUMNS: one of 5 ms, and some of disturbed blocks."""
    values = 1e-4 * np.exp(np.random.default_rng(0).normal(0, 0.05, SAMPLES))
    values[-1] = 5e-3
    rows = np.zeros((SAMPLES, len(SAMPLE_COLUMNS)))
    rows[:, SAMPLE_COLUMNS.index("seconds")] = values
    rows[:DISTURBED, SAMPLE_COLUMNS.index("disturbed")] = 1
    return rows


@dataclass(frozen=True)
class Made:
    """The site with what it was made from."""

    root: Path
    runs: tuple[Run, ...]
    """Of each night."""


def night(number: int, record: Record) -> Record:
    """From night STEP on, one backend has another version and is slower; one trial has hostile texts and fails."""
    record = fake.with_latencies(
        record, **{path: fake.with_interval(one) for path, one in record.timing.latency.items()}
    )
    if record.backend == "fakemlir" and number >= STEP:
        record = made_history.of_version(made_history.slower(record, 1.1), "2.0.0")
    if record.backend == "fakelib" and record.params.chunk == 64:
        failed = fake.record("fakelib", "ops", chunk=64, outcome="build-failed") if number >= STEP else record
        support = record.support.model_copy(update={"reason": HOSTILE, "upstream": "javascript:alert(1)"})
        reason = HOSTILE if number >= STEP else ""
        names = {"trial": f"{HOSTILE}/{record.trial}", "case": HOSTILE, "route": HOSTILE, "version": {HOSTILE: HOSTILE}}
        record = failed.model_copy(update={**names, "reason": reason, "support": support})
    bound = record.latency("bound")
    return fake.with_latencies(record, bound=fake.of_samples(bound, samples())) if bound else record
