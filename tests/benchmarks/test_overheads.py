"""Bound calls of each runtime's best programs cost what careful scripts reached (minutes; docs/backends/overview.md).

Each figure is a ratio to `torch.nn.LSTM` over 32 steps a call, sampled by turns with it, so that machines can be
compared. The suite's own machinery builds, checks and samples; a sitting is of one backend and the base.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from rnnbench.backends import registry
from rnnbench.cases import Target, Trial, load_case
from rnnbench.pipeline import NoProgress, run_trials
from rnnbench.plan import begin_run
from rnnbench.results import Store, read_run
from rnnbench.results.record import Record

NOISE = 1.3
"""The figures to meet were minima of a busy machine, within ±30 %."""
CASE = """\
schema: 1
name: overheads
model: {cell: lstm, input: 64, hidden: HIDDEN}
workload: {steps: 32, chunk: [1, 8, 32]}
strategy: {time: [fused, looped, unrolled], state: [stitched, stateful]}
measure: {budget: 800ms, processes: 2}
"""


@dataclass(frozen=True)
class Figure:
    """A program, and the microseconds a step that scripts reached with it at hidden 128 and 512; None where unknown."""

    target: str
    time: str
    state: str
    chunk: int
    hidden_128: float | None
    hidden_512: float | None

    def microseconds(self, hidden: int) -> float | None:
        return {128: self.hidden_128, 512: self.hidden_512}[hidden]

    def goal(self, hidden: int) -> float | None:
        """What was reached, as a ratio to nn.LSTM on the same machine."""
        reached, base = self.microseconds(hidden), BASE.microseconds(hidden)
        return reached / base if reached and base else None

    def is_for(self, trial: Trial) -> bool:
        strategy = trial.strategy
        asked = (str(trial.target), strategy.time, strategy.state, strategy.chunk)
        return asked == (self.target, self.time, self.state, self.chunk)


BASE = Figure("torch:eager", "fused", "stitched", 32, 18, 242)
"""The scripts called the module nn.LSTM, as public calls do: those are the base. Bound calls go to the operator under
it; the ratio to that stands beside."""
FIGURES = [
    BASE,
    Figure("torch:eager", "fused", "stitched", 1, 333, 1130),
    Figure("torch:eager", "looped", "stitched", 1, 54, 275),
    Figure("litert:tensorflow", "unrolled", "stitched", 1, 20, 202),
    Figure("litert:tensorflow", "unrolled", "stateful", 1, 10.2, 204),
    Figure("onnxruntime:onnx", "fused", "stitched", 1, 28, 240),
    Figure("onnxruntime:onnx", "fused", "stateful", 1, 31, 258),
    Figure("onnxruntime:onnx", "fused", "stateful", 8, 10, 219),
    Figure("onnxruntime:onnx", "fused", "stitched", 32, 6.9, 193),
    Figure("onnxruntime:onnx", "looped", "stitched", 32, 28, 633),
    Figure("onnxruntime:loop", "looped", "stitched", 32, 31, 675),
    Figure("onnxruntime:onnx", "unrolled", "stitched", 32, 28, 550),
    Figure("openvino:onnx", "fused", "stateful", 1, 49, 285),
    Figure("openvino:onnx", "fused", "stateful", 8, 14, 203),
    Figure("openvino:onnx", "fused", "stitched", 32, 8.6, 201),
    Figure("openvino:onnx", "looped", "stitched", 32, 24, 790),
    Figure("openvino:onnx", "unrolled", "stitched", 32, 15, 750),
    Figure("jax:jit", "looped", "stitched", 1, 39, 303),
    Figure("jax:jit", "looped", "stitched", 32, 12.7, 217),
    Figure("jax:jit", "unrolled", "stitched", 32, 9.9, 205),
    Figure("tensorflow:graph", "unrolled", "stitched", 1, 135, None),
    Figure("tensorflow:keras", "looped", "stateful", 1, 226, None),
    Figure("tensorflow:keras", "unrolled", "stateful", 1, 158, None),
    Figure("tensorflow:keras", "looped", "stateful", 32, 78, 299),
    Figure("tensorflow:keras-xla", "looped", "stateful", 32, 17, 220),
]


def here(backend: str) -> list[Target]:
    """The targets of a backend's figures that are installed."""
    named = dict.fromkeys(figure.target for figure in FIGURES if figure.target.startswith(f"{backend}:"))
    targets = [Target(*name.split(":")) for name in named]
    return [t for t in targets if registry.find(t.backend).probe().lack(t.route) is None]


def sampled(folder: Path, hidden: int, targets: list[Target]) -> dict[Figure, Record]:
    """The record of each figure's program on these targets, and of the base, in the order of FIGURES."""
    case = folder / "overheads.yaml"
    case.write_text(CASE.replace("HIDDEN", str(hidden)))
    base = Target(*BASE.target.split(":"))
    asked = {base: [BASE]} | {target: [f for f in FIGURES if f.target == str(target)] for target in targets}
    trials = load_case(case).trials(list(asked))
    wanted = {trial: figure for trial in trials for figure in asked[trial.target] if figure.is_for(trial)}
    plan = begin_run(list(wanted), Store(folder / "results"))
    run_trials(plan, NoProgress())
    by_name = {trial.id: figure for trial, figure in wanted.items()}
    records = {by_name[record.trial]: record for record in read_run(plan.folder).records}
    return {figure: records[figure] for figure in FIGURES if figure in records}


@pytest.mark.parametrize("backend", dict.fromkeys(figure.target.partition(":")[0] for figure in FIGURES))
@pytest.mark.parametrize("hidden", [128, 512])
def test_bound_calls_cost_no_more_than_scripts_made_them_cost(hidden: int, backend: str, tmp_path: Path) -> None:
    targets = here(backend)
    if not targets:
        pytest.skip(f"{backend} is not installed")
    records = sampled(tmp_path, hidden, targets)
    for record in records.values():
        assert record.outcome == "ok", f"{record.trial}: {record.reason}"
    base_bound, base_public = (records[BASE].latency(path) for path in ("bound", "public"))
    assert base_bound is not None, "the base was sampled"
    assert base_public is not None, "the base was sampled both ways"
    base, missed = base_public.per_step, []
    print(f"\nBase: nn.LSTM {base * 1e6:.3g} µs a step, the operator under it {base_bound.per_step * 1e6:.3g} µs")
    print("| hidden | program | chunk | µs | scripts' µs | to the operator | to nn.LSTM | to meet |  |")
    print("|---|---|---|---|---|---|---|---|---|")
    for figure, record in records.items():
        bound = record.latency("bound")
        assert bound is not None, f"{record.trial} was sampled"
        goal, ratio, spent = figure.goal(hidden), bound.per_step / base, bound.per_step * 1e6
        verdict = "" if goal is None else "met" if ratio <= goal * NOISE else "**missed**"
        cells = [
            str(hidden),
            f"`{figure.target}` {record.strategy}",
            str(figure.chunk),
            f"{spent:.3g}",
            f"{figure.microseconds(hidden) or '—'}",
            f"{bound.per_step / base_bound.per_step:.2f}",
            f"{ratio:.2f}",
            f"{goal:.2f}" if goal else "—",
            verdict,
        ]
        print("|", " | ".join(cells), "|")
        if verdict == "**missed**":
            missed.append(f"{record.trial}: {ratio:.2f}, and {goal:.2f} was to be met")
    assert not missed, "\n".join(missed)
