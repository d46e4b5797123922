"""Checks of users' model files keep to what a file takes."""

from __future__ import annotations

from dataclasses import replace

import onnx_files as files
from harness_trials import make_trial
from honest_adapter import HonestSession
from verdicts import failures

from rnnbench.conformance import edge_cases, refusal, suite
from rnnbench.model_files import FileSection, Given, describe, network_of


class InRange(HonestSession):
    """A table of tokens 5 to 9 alone, which a runtime may read without looking at bounds."""

    def compute(self, x):
        assert x.min() >= 5
        assert x.max() <= 9
        return super().compute(x)


def test_whole_numbers_stay_in_their_range_in_every_row(tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "CHECKS", (*edge_cases.EDGE_CASES, *refusal.REFUSAL))
    path = files.saved(files.embedding(), tmp_path / "tokens.onnx")
    section = FileSection(path.name, {"h": "next_h"}, batch=0)
    model = network_of(path, section, describe(path), Given(ranges={"tokens": (5, 9)}))
    trial = replace(make_trial(time="given", chunk=1), model=model, batch=3)
    assert not failures(trial, InRange, tmp_path)
