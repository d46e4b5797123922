"""Records that no machine made, every name saying so: three fake backends, every outcome, planted latencies."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from rnnbench.devices import Device
from rnnbench.results.journal import append_record, write_info
from rnnbench.results.record import (
    Artifact,
    CheckResult,
    Environment,
    MemoryUse,
    Outcome,
    Params,
    Record,
    SupportResult,
)
from rnnbench.results.run import Run
from rnnbench.results.run_info import RunInfo
from rnnbench.results.samples import SAMPLE_COLUMNS
from rnnbench.results.timing import Latency, Timing

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
CHECKS = ("values", "chunks", "reset", "repeat", "isolation", "state", "timed")
BITS = ("reset", "repeat")
"""Checks that compare bits, and so have no error figures."""
BACKENDS: dict[tuple[str, str], tuple[Literal["library", "imported", "authored"], Literal["exact", "approximate"]]] = {
    ("fakelib", "ops"): ("library", "exact"),
    ("fakemlir", "linalg"): ("authored", "exact"),
    ("fakemlir", "onnx"): ("imported", "exact"),
    ("fakekernel", "tir"): ("authored", "approximate"),
}
STAGES: dict[Outcome, str] = {
    "ok": "",
    "nonconforming": "check",
    "unsupported": "support",
    "unavailable": "probe",
    "build-failed": "build",
    "run-failed": "check",
    "crashed": "sample",
    "timed-out": "build",
    "out-of-memory": "build",
}
REASONS: dict[Outcome, str] = {
    "ok": "",
    "nonconforming": "y differs from the oracle by 0.31 after 117 calls, 4e+05 times the rounding",
    "unsupported": "fakelib has no operator that keeps its own state",
    "unavailable": "the package fake-kernel is not installed; pip install 'rnnbench[fake]'",
    "build-failed": "fake-compile exited with 1: error: failed to legalize operation 'fake.loop'",
    "run-failed": "RuntimeError: fake device lost",
    "crashed": "the worker died of signal 11 (SIGSEGV)",
    "timed-out": "building took more than its 120 s (limits.build)",
    "out-of-memory": "the build's processes passed 4 GiB (limits.memory)",
}


def latency(seconds: float, chunk: int = 1, processes: int = 3, spread: float = 0.01, seed: int = 0) -> Latency:
    """A latency whose process medians scatter by `spread` around `seconds` per call."""
    generator = np.random.default_rng([seed, int(seconds * 1e12)])
    medians = seconds * np.exp(generator.normal(0.0, spread, processes))
    median = float(np.median(medians))
    return Latency(
        count=1000 * processes,
        kept=1000 * processes,
        min=median * 0.93,
        median=median,
        mean=median * 1.02,
        p90=median * 1.10,
        p99=median * 1.60,
        max=median * 9.0,
        per_step=median / chunk,
        process_medians=tuple(float(m) for m in medians),
    )


def with_interval(of: Latency, half_width: float = 0.01) -> Latency:
    """The latency with an interval of ±`half_width` around the middle of its processes."""
    middle = statistics.geometric_mean(of.process_medians)
    return of.model_copy(update={"interval": (middle / (1 + half_width), middle * (1 + half_width))})


SOFTWARE_DEVICE = Device("fakepipe", driver="a fake driver", capability="Fake 1.0", software=True)


def record(
    backend: str = "fakelib",
    route: str = "ops",
    *,
    time: str = "looped",
    state: str = "stitched",
    chunk: int = 16,
    launch: Literal["stream", "graph"] = "stream",
    hidden: int = 128,
    outcome: Outcome = "ok",
    bound: float | None = 100e-6,
    processes: int = 3,
    spread: float = 0.01,
    seed: int = 0,
    lowered: str | None = None,
    **changes: Any,
) -> Record:
    """One record. `bound` is seconds per call; the public latency is 40 µs above it."""
    origin, math = BACKENDS.get((backend, route), ("authored", "exact"))
    built = outcome in ("ok", "nonconforming", "run-failed", "crashed")
    sampled = outcome in ("ok", "nonconforming") and bound is not None
    graph = ("graph",) if launch == "graph" else ()
    trial = (
        f"fake_case/{backend}:{route}/{'-'.join((time, state, *graph))}/h{hidden}-b1-c{chunk}-float32-cpu-t1-"
        f"{abs(hash_of(backend, route, time, state, chunk, hidden, *graph)):08x}"
    )
    content: dict[str, Any] = {
        "trial": trial,
        "case": "fake_case",
        "backend": backend,
        "route": route,
        "version": {f"{backend}-package": "1.2.3"},
        "rnnbench": "0.1.0",
        "params": Params(
            model={"cell": "lstm", "input": 64, "hidden": hidden},
            time=time,
            state=state,
            chunk=chunk,
            launch=launch,
            steps=128,
            batch=1,
            dtype="float32",
            device="cpu",
            threads=1,
            seed=0,
        ),
        "support": SupportResult(
            level="unsupported" if outcome == "unsupported" else "native",
            reason=REASONS["unsupported"] if outcome == "unsupported" else "",
            upstream="fake/project#7" if outcome == "unsupported" else "",
        ),
        "outcome": outcome,
        "stage": STAGES[outcome],
        "reason": REASONS[outcome],
        "environment": Environment(threads_requested=1, threads_seen=3, affinity=(0,), load=0.4),
    }
    if built:
        content["artifact"] = Artifact(
            source_digest="0" * 64,
            digest="f" * 64,
            nbytes=400_000 + 50 * chunk,
            operations={"compiled": {"dispatches": 4}},
            lowered=lowered if lowered is not None else _lowered(time, chunk),
            origin=origin,
            math=math,
            flags=("--fake-opt=3",),
            notes=("fake: the input projection is hoisted out of the loop",),
        )
        content["conformance"] = _checks(outcome)
        content["memory"] = MemoryUse(imported=50 << 20, build_peak=300 << 20, run_peak=90 << 20, steady=80 << 20)
    if sampled and bound is not None:
        content["timing"] = Timing(
            build_s=1.5 + (0.2 * chunk if time == "unrolled" else 0.0),
            build_origin="cold",
            load_s=0.02,
            first_call_s=0.004,
            latency={
                "bound": latency(bound, chunk, processes, spread, seed),
                "public": latency(bound + 40e-6, chunk, processes, spread, seed + 1),
            },
        )
    return Record(**{**content, **changes})


def of_samples(latency: Latency, rows: np.ndarray) -> Latency:
    """The latency with the number, the least and the greatest of these samples, which are all of them."""
    seconds = rows[:, SAMPLE_COLUMNS.index("seconds")]
    low, high = float(seconds.min()), float(seconds.max())
    return latency.model_copy(update={"count": len(rows), "kept": len(rows), "min": low, "max": high})


def with_latencies(of: Record, **latencies: Latency | None) -> Record:
    """The record with these latencies by path; None leaves one out."""
    merged = {path: latency for path, latency in {**of.timing.latency, **latencies}.items() if latency is not None}
    return of.model_copy(update={"timing": of.timing.model_copy(update={"latency": merged})})


def hash_of(*parts: object) -> int:
    """A small hash that is the same in every process, unlike `hash`."""
    value = 2166136261
    for byte in repr(parts).encode():
        value = (value ^ byte) * 16777619 % (1 << 32)
    return value


def whole_run(seed: int = 0, scale: float = 1.0) -> Iterator[Record]:
    """A matrix of 2 sizes × 3 chunks × 3 strategies on four targets, with every outcome and a `same_as` in it."""
    cost = {"fakelib:ops": (4e-6, 6e-6), "fakemlir:linalg": (12e-6, 12e-6), "fakemlir:onnx": (20e-6, 34e-6)}
    cost["fakekernel:tir"] = (2e-6, 4e-6)
    for hidden in (128, 512):
        for chunk in (1, 16, 128):
            for (backend, route), (per_call, per_step) in zip(BACKENDS, cost.values(), strict=True):
                for time, state in (("looped", "stitched"), ("unrolled", "stitched"), ("looped", "stateful")):
                    factor = scale * (1.0 if time == "looped" else 0.7) * (1.1 if state == "stateful" else 1.0)
                    seconds = factor * (per_call + per_step * chunk * (hidden / 128) ** 1.8)
                    outcome: Outcome = "unsupported" if (backend, state) == ("fakelib", "stateful") else "ok"
                    yield record(
                        backend,
                        route,
                        time=time,
                        state=state,
                        chunk=chunk,
                        hidden=hidden,
                        outcome=outcome,
                        bound=seconds,
                        seed=seed,
                        lowered="looped 1" if (route, time, chunk) == ("onnx", "unrolled", 16) else None,
                    )
    shared = record("fakemlir", "linalg", time="unrolled", state="stitched", chunk=1, bound=18e-6)
    yield record("fakemlir", "linalg", time="unrolled:4", chunk=1, bound=None, same_as=shared.trial)
    for index, outcome in enumerate(OUTCOMES):
        if outcome not in ("ok", "unsupported"):
            yield record("fakekernel", "tir", time="unrolled:4", chunk=2**index, outcome=outcome, bound=1e-6)


def _lowered(time: str, chunk: int) -> str:
    name, _, copies = time.partition(":")
    if name == "unrolled":
        return f"looped 1 of {copies}" if copies else f"unrolled {chunk}"
    return "fused" if name == "fused" else "looped 1"


def _checks(outcome: Outcome) -> dict[str, CheckResult]:
    checks = {name: CheckResult(verdict="pass", max_abs=3e-7, max_ulp=5.0, rounding=1.4) for name in CHECKS}
    if outcome == "nonconforming":
        checks["timed"] = CheckResult(
            verdict="fail", detail=REASONS["nonconforming"], max_abs=0.31, max_ulp=5e6, rounding=4e5
        )
    checks |= {name: CheckResult(verdict="pass") for name in BITS}
    return checks


def info(**changes: Any) -> RunInfo:
    content: dict[str, Any] = {
        "run": "20260131T120000Z-fake_case",
        "started": "2026-01-31T12:00:00Z",
        "finished": "2026-01-31T12:10:00Z",
        "rnnbench": "0.1.0",
        "command": ("rnnbench", "run", "fake_case.yaml"),
        "cases": ("fake_case",),
        "seed": 0,
        "machine": {"cpu": "Fake CPU 9000", "cores": 2, "memory": 24 << 30},
        "versions": {"fakelib": {"fakelib-package": "1.2.3"}, "fakemlir": {"fakemlir-package": "1.2.3"}},
        "seconds": {"total": 600.0, "build": 300.0, "check": 100.0, "sample": 150.0},
    }
    return RunInfo(**{**content, **changes})


def run(records: Iterable[Record] = (), name: str = "fake", **changes: Any) -> Run:
    """A run in memory."""
    return Run(Path(name), info(run=name, **changes), tuple(records))


def write_run(folder: Path, records: Iterable[Record], **changes: Any) -> Path:
    """A run on disk, as the journal leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_info(folder, info(run=folder.name, **changes))
    for entry in records:
        append_record(folder, entry)
    return folder
