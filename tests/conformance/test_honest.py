"""Honest adapters are never accused: any model, any dtype, and any way of rounding that a runtime may have."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, product

import pytest
from harness_trials import make_trial
from honest_adapter import HonestSession
from honest_arithmetic import HONEST, OneByOne
from honest_variants import VARIANTS
from hypothesis import given, settings
from hypothesis import strategies as st
from quick_tests import for_proof, runs_all
from random_models import models
from verdicts import failures, verdicts

from rnnbench.cases import Strategy
from rnnbench.conformance import CHECKS, suite
from rnnbench.rnn import Arithmetic, Model

pytestmark = pytest.mark.usefixtures("few_turns")

SHAPES = ((1, "gru", 4.0), (7, "rnn", 1.0), (33, "lstm", 4.0), (2, "rnn", 4.0), (65, "gru", 1.0), (7, "lstm", 1.0))
"""Hidden units, cells and gains of weights, in turn. All adapters of a shape are compared with one reference."""
MODELS = 1 + runs_all() if settings.default.derandomize else settings.default.max_examples
"""Models of each arithmetic and dtype: one in `make test`; 125, so 4,000 in all, with the profile `explore`."""
DTYPES = ("float16", "bfloat16", "float32", "float64")
EACH_ONCE = [*zip(HONEST, cycle(DTYPES))]
"""Each arithmetic and each dtype; the proof has every pair."""


@pytest.mark.first(4)
@pytest.mark.parametrize(
    ("arithmetic", "dtype"),
    [*EACH_ONCE, *for_proof(*(pair for pair in product(HONEST, DTYPES) if pair not in EACH_ONCE))],
    ids=lambda value: getattr(value, "__name__", value),
)
@given(
    model=models(layers=st.integers(1, 2)),
    batch=st.integers(1, 3),
    chunk=st.integers(1, 4),
    calls=st.integers(1, 3),
    seed=st.integers(0, 2**31),
    state=st.sampled_from(["none", "stitched"]),
)
@settings(max_examples=MODELS)
def test_honest_adapters_are_not_accused(
    arithmetic: type[Arithmetic], dtype, model, batch, chunk, calls, seed, state, tmp_path
) -> None:
    if model.direction != "forward":
        state = "none"
    steps = chunk * calls if state == "none" else chunk * calls + calls - 1
    strategy = Strategy("looped", state, chunk)
    trial = replace(make_trial(), model=model, dtype=dtype, batch=batch, strategy=strategy, steps=steps, seed=seed)
    session = type("Session", (HonestSession,), {"arithmetic": arithmetic})
    assert failures(trial, session, tmp_path) == {}


@pytest.mark.proof
@pytest.mark.parametrize("state", ["none", "stitched"])
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.__name__)
def test_what_only_looks_like_a_fault_is_not_accused(variant, state, references) -> None:
    assert failures(replace(make_trial(state=state), batch=3), variant, references) == {}


@pytest.mark.first(7)
@pytest.mark.parametrize(
    ("variant", "hidden", "cell", "gain"),
    [(variant, *shape) for variant, shape in zip(VARIANTS, cycle(SHAPES))],
)
def test_what_only_looks_like_a_fault_is_not_accused_at_any_size(variant, hidden, cell, gain, references) -> None:
    model = Model(cell=cell, input=3, hidden=hidden, gain=gain)
    trial = replace(make_trial(chunk=3), model=model, batch=2)
    assert failures(trial, variant, references) == {}


def test_sums_in_float16_of_which_a_part_is_infinite_are_not_accused(tmp_path, monkeypatch) -> None:
    """Weights of 30 and inputs of ten thousand: the terms are infinite, and their sum may be."""
    first, *others = CHECKS
    compared = [check for check in others if check.name in ("saturation", "magnitudes")]
    monkeypatch.setattr(suite, "CHECKS", [first, *compared])
    model = Model(cell="rnn", input=3, hidden=2, layers=2, gain=30.0)
    session = type("Session", (HonestSession,), {"arithmetic": OneByOne})
    trial = replace(make_trial(), model=model, batch=2, dtype="float16")
    results = verdicts(trial, session, tmp_path)
    assert {name: result.verdict for name, result in results.items()} == {
        "values": "pass",
        "saturation": "chaotic",
        "magnitudes": "chaotic",
    }


def test_the_rest_of_a_stream_that_chunks_do_not_fill_is_no_part_of_bound_calls(references, monkeypatch) -> None:
    first, *others = CHECKS
    monkeypatch.setattr(suite, "CHECKS", [first, *(check for check in others if check.name == "nan")])
    assert failures(make_trial(chunk=5), HonestSession, references) == {}
