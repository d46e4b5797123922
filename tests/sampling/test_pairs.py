"""Pairs are added until all is judged, and no longer; the sides of a pair are sampled alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from harness_trials import make_trial

from rnnbench.cases.trial import Target
from rnnbench.measure.sampling import Block
from rnnbench.results.verdict import LOOKS
from rnnbench.run import paired
from rnnbench.run.account import Account
from rnnbench.run.compose import compose
from rnnbench.run.paired import Match, cost, decide, note_anchors, sample_pair, split_matches
from rnnbench.run.parts import MEMORY_SHARE
from rnnbench.run.prepare import Findings, examine, prepare, start_worker
from rnnbench.run.process import Workplace

pytest.importorskip("scipy")


def match(change: float, spread: float, seed: int = 0) -> tuple[Match, list[float]]:
    ratios = np.exp(np.random.default_rng(seed).normal(np.log1p(change), spread, LOOKS[-1]))
    return Match(examine(make_trial()), examine(make_trial()), paths=("bound",)), list(ratios)


def sampled(planned: dict[int, list[float]], asked: list[list[int]]):
    """A sampler that reads off what each match's pairs are to show."""

    def sample(matches: Sequence[Match], number: int) -> None:
        asked.append([id(item) for item in matches])
        for item in matches:
            item.ratios.setdefault("bound", []).append(planned[id(item)][number])

    return sample


def test_what_is_decided_is_left_and_the_rest_goes_on() -> None:
    (clear, clear_ratios), (noisy, noisy_ratios) = match(0.10, 0.002), match(0.0, 0.05)
    asked: list[list[int]] = []
    decide([clear, noisy], 1e9, 0.03, sampled({id(clear): clear_ratios, id(noisy): noisy_ratios}, asked))
    assert clear.judged["bound"].verdict == "SLOWER"
    assert len(clear.ratios["bound"]) == LOOKS[0]
    assert all(id(noisy) in items for items in asked)
    assert len(noisy.ratios["bound"]) in LOOKS[3:]


def test_a_hopeless_trial_ends_undecided_at_the_last_look() -> None:
    item, ratios = match(0.0, 0.5)
    decide([item], 1e9, 0.03, sampled({id(item): ratios}, []))
    assert (item.judged["bound"].verdict, item.judged["bound"].observations) == ("UNDECIDED", LOOKS[-1])
    assert cost([item]).startswith(f"A verdict took {2 * LOOKS[-1]} processes")


def test_a_budget_that_is_spent_ends_it_with_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    item, ratios = match(0.0, 0.5)
    clock = SimpleNamespace(monotonic=iter(range(0, 10_000, 10)).__next__)
    monkeypatch.setattr(paired, "time", clock)
    decide([item], 30.0, 0.03, sampled({id(item): ratios}, []))
    assert len(item.ratios["bound"]) == 3
    assert item.seconds == 30
    assert item.judged["bound"].interval is not None


def test_the_trials_of_a_pair_share_its_time() -> None:
    (one, ratios), (other, others) = match(0.10, 0.001), match(0.10, 0.001, 1)
    decide([one, other], 1e9, 0.03, sampled({id(one): ratios, id(other): others}, []))
    assert one.seconds == other.seconds > 0


@pytest.fixture
def prepared(tmp_path):
    def prepare_trial(target: str) -> Findings:
        workplace = Workplace.of_run(tmp_path)
        findings = examine(make_trial(target))
        for _ in prepare(findings, start_worker(findings, workplace, "log"), workplace, Account(), _quiet):
            continue
        assert findings.failure is None, findings.failure
        return findings

    return prepare_trial


@pytest.fixture
def take_pairs(tmp_path, monkeypatch):
    """Sample so many pairs of processes in turns of short blocks."""
    monkeypatch.setattr(paired, "BLOCK_S", 0.002)
    workplace = Workplace.of_run(tmp_path)

    def take(matches: Sequence[Match], rounds: int, pairs: int = 1) -> None:
        for number in range(pairs):
            sample_pair(matches, (workplace, workplace), Account(), _quiet, str(number), rounds=rounds)

    return take


def test_a_pair_of_processes_gives_one_ratio_and_blocks_to_both_sides(prepared, take_pairs) -> None:
    item = Match(prepared("fake:honest"), prepared("fake:honest"))
    take_pairs([item], rounds=3, pairs=2)
    assert item.whole
    for path in ("bound", "public"):
        assert len(item.ratios[path]) == 2
        assert all(ratio > 0 for ratio in item.ratios[path])
        for findings in item.sides:
            assert [len(blocks) for blocks in findings.blocks[path]] == [3, 3]
            assert findings.is_measured()


def test_a_side_that_dies_fails_its_trial_and_spares_the_others(prepared, take_pairs) -> None:
    dying = Match(prepared("fake:honest"), prepared("fake:sample-segfaults"))
    sound = Match(prepared("fake:honest"), prepared("fake:honest"))
    take_pairs([dying, sound], rounds=3)
    assert dying.b.failure is not None
    assert dying.b.failure.outcome == "crashed"
    assert not dying.ratios
    assert sound.whole
    assert len(sound.ratios["bound"]) == 1


def test_a_pair_warms_up_until_calls_are_at_rest_or_their_time_is_spent(prepared, take_pairs) -> None:
    item = Match(prepared("fake:honest"), prepared("fake:honest"))
    take_pairs([item], rounds=1, pairs=2)
    for findings in item.sides:
        for path in ("bound", "public"):
            warmups = findings.warmups[path]
            assert len(warmups) == len(findings.blocks[path]) == 2
            assert all(warmup.is_over and warmup.windows for warmup in warmups)
        warmup = compose(findings).latency("bound").sampling.warmup
        assert warmup.calls > 0
        assert 0 <= warmup.stationary <= 2


def test_backends_are_sampled_in_turn_each_in_processes_of_its_own(prepared, take_pairs) -> None:
    fake = Match(prepared("fake:honest"), prepared("fake:honest"))
    numpy = Match(prepared("numpy:eager"), prepared("numpy:eager"))
    take_pairs([fake, numpy], rounds=4)
    assert [len(item.ratios["bound"]) for item in (fake, numpy)] == [1, 1]
    first, last = ([f(b.start for b in item.a.blocks["bound"][0]) for item in (fake, numpy)] for f in (min, max))
    assert max(first) < min(last), "neither was done before the other began"


def test_what_a_side_never_sampled_is_left_out_of_the_other_s_record(prepared, take_pairs) -> None:
    item = Match(prepared("fake:honest"), prepared("fake:honest"))
    item.b.trial = replace(item.b.trial, target=Target("fake", "build-fails"))
    take_pairs([item], rounds=1)
    assert item.b.failure is not None
    assert not item.a.blocks
    assert compose(item.a).latency("bound") is None


def test_matches_that_memory_does_not_hold_are_parted_with_the_anchor_in_every_part() -> None:
    matches = [match(0.0, 0.0)[0] for _ in range(3)]
    for item in matches:
        for findings in item.sides:
            findings.started, findings.loaded = {"imported": 100}, {"run_peak": 110}
    (whole,) = split_matches(matches, available=round(2 * (100 + 3 * 10) / MEMORY_SHARE))
    assert whole.trials == matches
    parts = list(split_matches(matches, available=round(2 * (100 + 2 * 10) / MEMORY_SHARE)))
    assert [len(part.trials) for part in parts] == [2, 2]
    again = parts[1].anchor
    assert again is parts[1].trials[0]
    assert again not in matches
    assert again.a.trial == matches[0].a.trial
    for part, seconds in zip(parts, (1.0, 2.0), strict=True):
        for side, findings in enumerate(part.anchor.sides):
            findings.blocks = {"bound": [[Block(0.0, 1, np.array([seconds + side]))]]}
    note_anchors(parts)
    assert [item.a.anchor.bound for item in matches] == [1.0, 1.0, 2.0]
    assert [item.b.anchor.bound for item in matches] == [2.0, 2.0, 3.0]
    assert [item.a.anchor.group for item in matches] == [0, 0, 1]


def _quiet(trial, stage) -> None:
    """Nobody is told."""
