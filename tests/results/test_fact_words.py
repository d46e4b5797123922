"""Facts that changed: each other value is good news, bad news or neither, and has a sentence."""

from __future__ import annotations

import pytest

from rnnbench.results import FACTS, fact_direction, fact_sentence


@pytest.mark.parametrize(
    ("fact", "before", "after", "direction"),
    [
        ("outcome", "ok", "crashed", "worse"),
        ("outcome", "crashed", "ok", "better"),
        ("outcome", "crashed", "unsupported", "neutral"),
        ("failed_checks", "values", "state, values", "worse"),
        ("failed_checks", "state, values", "values", "better"),
        ("failed_checks", "values", "", "better"),
        ("support", "native", "emulated", "worse"),
        ("support", "emulated", "native", "better"),
        ("support", "native", "a level of a newer version", "neutral"),
        ("believed", "true", "false", "worse"),
        ("measured", "true", "false", "worse"),
        ("measured", "false", "true", "neutral"),
        ("lowered", "looped 1", "unrolled 16", "neutral"),
    ],
)
def test_another_value_is_good_or_bad_news_or_neither(fact: str, before: str, after: str, direction: str) -> None:
    assert fact_direction(fact, before, after) == direction


@pytest.mark.parametrize("fact", FACTS)
def test_every_fact_has_a_sentence_and_a_value_that_stays_is_no_news(fact: str) -> None:
    assert fact_sentence(fact, "ok", "crashed")
    assert fact_direction(fact, "ok", "ok") == "neutral"
