"""The pool that verdicts are proved on: pairs of independent processes with slowdowns planted into one of each pair.

    python tests/benchmarks/verdict_pool.py PAIRS FILE    collect so many pairs and add them to FILE (.npz)

One trial of ONNX Runtime, its LSTM operator, sampled as `rnnbench ab` samples: fresh processes from one artifact, one a
side, blocks in turn, in shuffled order. For each slowdown the sides have a session of their own, so that one pair of
processes gives one observation of each. A load of varying strength runs on the other core.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rnnbench.cases import Trial
    from rnnbench.sampling.pair_sampling import TrialPair

HERE = Path(__file__).parent
PLANTED = HERE / "planted"
FAKE = HERE.parent / "fake"
DATA = HERE / "data"
KEPT = ("quiet", "busy", "xeon", "epyc")
"""The pools that are kept with the tests: the planted load alone beside them, and other jobs of the machine, too.

`xeon` is a busy one of another machine, and `epyc`, with blocks of 10 ms, a busy one of a third."""
STATS = ("median", "mean", "min", "max", "std", "count")
"""Of the calls of one block, in seconds."""
PARTS = {"half": 0.5, "quarter": 0.25}
"""Beside them, the median of the calls in the first part of a block: what a shorter block would have shown."""
WITH_PARTS = "xeon"
"""The pool of blocks of 20 ms that has them. The two before it are older."""


@dataclass(frozen=True)
class Pool:
    """`blocks` [pairs, slowdowns, rounds, sides, STATS and PARTS], A's side first.

    `wall` [pairs]: seconds that each took.
    """

    slowdowns: tuple[int, ...]
    blocks: np.ndarray
    wall: np.ndarray
    paced: float
    """Seconds of one block."""

    def medians(self, slowdown: int, of: str = "median") -> np.ndarray:
        """[pairs, rounds, sides], in seconds per call, of a whole block or of one of its PARTS."""
        return self.blocks[:, self.slowdowns.index(slowdown), :, :, (*STATS, *PARTS).index(of)]

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(
            path, slowdowns=self.slowdowns, blocks=self.blocks.astype(np.float32), wall=self.wall, paced=self.paced
        )


def read(path: Path) -> Pool:
    with np.load(path) as file:
        slowdowns = tuple(int(share) for share in file["slowdowns"])
        return Pool(slowdowns, file["blocks"].astype(np.float64), file["wall"], float(file["paced"]))


def joined(pools: Sequence[Pool]) -> Pool:
    first = pools[0]
    blocks, wall = (np.concatenate([getattr(pool, name) for pool in pools]) for name in ("blocks", "wall"))
    return Pool(first.slowdowns, blocks, wall, first.paced)


def collect(pairs: int, seed: int) -> Pool:
    """Sample `pairs` pairs of fresh processes, some three seconds each."""
    sys.path[:0] = [str(PLANTED), str(FAKE)]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PLANTED), os.environ.get("PYTHONPATH")]))
    from rnnbench_planted import SLOWDOWNS

    from rnnbench.sampling.pair_sampling import BLOCK_S, ROUNDS

    load = subprocess.Popen([sys.executable, str(HERE / "load_generator.py"), str(seed)])
    try:
        with tempfile.TemporaryDirectory() as folder:
            sampled = list(_sampled(Path(folder), pairs, seed))
    finally:
        load.kill()
        load.wait(60)
    blocks = np.array([pair for pair, _ in sampled])
    assert blocks.shape == (pairs, len(SLOWDOWNS), ROUNDS, 2, len(STATS) + len(PARTS))
    return Pool(SLOWDOWNS, blocks, np.array([wall for _, wall in sampled]), BLOCK_S)


def _sampled(run: Path, pairs: int, seed: int) -> Iterator[tuple[np.ndarray, float]]:
    from harness_trials import check_trial, context_in
    from rnnbench_planted import SLOWDOWNS

    from rnnbench.plan import examine
    from rnnbench.sampling.pair_sampling import PairSampling, TrialPair
    from rnnbench.sampling.trial_sampling import TrialSampling

    context = context_in(run)
    first = check_trial(_trial("0"), context)
    assert first.failure is None, first.failure
    sampling = PairSampling((context, context), seed)
    for number in range(pairs):
        trials = [
            TrialPair(*(TrialSampling(examine(_trial(route))) for route in (f"base-{s}", str(s))), paths=("bound",))
            for s in SLOWDOWNS
        ]
        started = time.monotonic()
        sampling.sample_pair(trials, number)
        wall = time.monotonic() - started
        for pair in trials:
            assert pair.is_alive, [side.failure for side in pair.sides]
        yield np.array([_described(pair) for pair in trials]), wall


def _described(pair: TrialPair) -> np.ndarray:
    """[rounds, sides, STATS and PARTS] of one pair of processes."""
    rounds = zip(*(side.paths["bound"].processes[-1] for side in pair.sides), strict=True)
    return np.array([[_stats(block.seconds) for block in turn] for turn in rounds])


def _stats(seconds: np.ndarray) -> list[float]:
    ends = np.cumsum(seconds)
    parts = [float(np.median(seconds[ends <= max(ends[0], share * ends[-1])])) for share in PARTS.values()]
    return [float(getattr(np, name)(seconds)) for name in STATS[:-1]] + [len(seconds), *parts]


def _trial(route: str) -> Trial:
    from harness_trials import make_trial

    from rnnbench.cases import Limits, Measure
    from rnnbench.rnn.spec import Model

    trial = make_trial(f"planted:{route}", "fused", chunk=64, limits=Limits(), measure=Measure())
    return replace(trial, model=Model(cell="lstm", input=64, hidden=128), steps=128)


if __name__ == "__main__":
    target = Path(sys.argv[2])
    fresh = collect(int(sys.argv[1]), seed=time.time_ns() % 2**32)
    joined([read(target), fresh] if target.exists() else [fresh]).save(target)
