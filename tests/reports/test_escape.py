"""Text in which nothing is escaped takes a short way, which changes nothing."""

from __future__ import annotations

import random

import pytest

from rnnbench.reports import escape
from rnnbench.reports.escape import LONGEST_SHOWN, escaped

PARTS = (
    *"aZ09.,:;%+()=±×µ÷—✓≈†‡-_*`$|[]<&\\/@ \t\n\x1b",
    *("www.", "mailto:", "xmpp:", "http://", "&lt;", "](", "  ", "12.3 µs", "iree:linalg"),
)


def test_the_short_way_gives_what_the_long_way_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(0)
    texts = ["".join(chance.choices(PARTS, k=chance.randrange(12))) for _ in range(5000)]
    short = [escaped(text) for text in texts]
    assert 100 < sum(escape._PLAIN.fullmatch(text) is not None for text in texts) < 4900
    monkeypatch.setattr(escape, "_PLAIN", escape.re.compile(r"(?!)"))
    assert short == [escaped(text) for text in texts]


@pytest.mark.parametrize("text", ["12.3 µs", "1.02 (0.98 to 1.04) SAME", "iree:linalg ≈", "✓ 3.1×", "—", "6.2 %"])
def test_what_most_cells_show_takes_the_short_way(text: str) -> None:
    assert escape._PLAIN.fullmatch(text)


def test_a_long_word_that_is_not_plain_at_its_end_is_searched_once() -> None:
    assert escape._PLAIN.fullmatch("a" * LONGEST_SHOWN + "*") is None


def test_long_text_is_cut_though_it_is_plain() -> None:
    assert "more characters in the record" in escaped("a" * (LONGEST_SHOWN + 1))
