"""Two made-up runs on disk, and an export as the command makes it."""

from __future__ import annotations

from pathlib import Path

import fake_records as fake
import numpy as np
from click.testing import CliRunner

from rnnbench.cli.export import export
from rnnbench.results import Finding, FindingKind, Record, save_samples

OLD, NEW = "20260131T120000Z-fake_case", "20260201T120000Z-fake_case"
STARTED = {OLD: "2026-01-31T12:00:00Z", NEW: "2026-02-01T12:00:00Z"}
SLOWER = fake.record().trial
SAMPLES = 100
"""Stored samples of a process."""


def made_records(run: str) -> list[Record]:
    """Three trials with figures, one of them 20 % slower in the run NEW. Then one of each kind without figures."""
    slower = fake.record(bound=120e-6 if run == NEW else 100e-6, spread=0.001)
    bound = slower.timing.latency["bound"].model_copy(update={"interval": (90e-6, 125e-6)})
    measured = fake.record("fakemlir", "linalg")
    disbelieved = Finding(kind=FindingKind.TIME, detail="fake: work was moved out of the call", disbelieved=True)
    return [
        fake.with_latencies(slower, bound=bound),
        measured,
        fake.record("fakemlir", "linalg", time="unrolled:4", same_as=measured.trial),
        fake.record("fakemlir", "onnx", findings=(disbelieved,)),
        fake.record("fakemlir", "onnx", time="unrolled", outcome="nonconforming"),
        fake.record("fakekernel", "tir", outcome="crashed"),
        fake.record("fakelib", "ops", state="stateful", outcome="unsupported"),
    ]


def made_run(root: Path, run: str) -> Path:
    """With samples whose median in each process is that of the record."""
    records, samples = [], []
    for record in made_records(run):
        latencies = record.timing.latency if record.same_as is None else {}
        rows = {path: _samples(latency.process_medians, STARTED[run]) for path, latency in latencies.items()}
        records.append(fake.with_latencies(record, **{p: fake.of_samples(latencies[p], rows[p]) for p in rows}))
        samples += [(record.trial[-8:], path, of_path) for path, of_path in rows.items()]
    folder = fake.write_run(root / run, records, started=STARTED[run])
    for digest, path, of_path in samples:
        save_samples(folder, digest, path, of_path)
    return folder


def _samples(medians: tuple[float, ...], started: str) -> np.ndarray:
    around = np.linspace(0.98, 1.02, SAMPLES)
    begun = np.datetime64(started.removesuffix("Z")).astype(float)
    return np.concatenate(
        [
            np.column_stack(
                [
                    np.full(SAMPLES, process),
                    np.zeros(SAMPLES),
                    begun + 60 * process + np.cumsum(median * around),
                    median * around,
                    np.zeros(SAMPLES),
                ]
            )
            for process, median in enumerate(medians)
        ]
    )


def exported(name: str, run: Path) -> bytes:
    """Standard output of `rnnbench export`."""
    done = CliRunner().invoke(export, [str(run), f"--format={name}"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout_bytes
