"""Text in which nothing is escaped takes a short way, which changes nothing; tables in narrow terminals."""

from __future__ import annotations

import random

import pytest
from rich.console import Console
from rich.table import Table as Grid

from rnnbench.reports import escape
from rnnbench.reports.escape import LONGEST_SHOWN, escaped, grid, line, print_grid

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


def test_an_entity_of_the_text_is_shown_as_it_is_written() -> None:
    assert escaped("a &lt;b&#62; & c") == "a &amp;lt;b&amp;#62; & c"


def test_a_long_word_that_is_not_plain_at_its_end_is_searched_once() -> None:
    assert escape._PLAIN.fullmatch("a" * LONGEST_SHOWN + "*") is None


def test_long_text_is_cut_though_it_is_plain() -> None:
    assert "more characters in the record" in escaped("a" * (LONGEST_SHOWN + 1))


def table() -> Grid:
    shown = grid("Latencies")
    shown.add_column("verdict", overflow="fold")
    shown.add_column("trial", overflow="fold")
    shown.add_column("bound\n/call", justify="right", no_wrap=True)
    shown.add_row("[bold]authored[/bold]")
    shown.add_row(line("UNDECIDED"), line("case/iree:linalg/" + 20 * "long"), line("1.00 ms"))
    shown.add_row(line("SLOWER"), line(""), line("12.00 ms"))
    return shown


def printed(width: int, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_grid(Console(width=width), table())
    return [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_in_a_narrow_terminal_each_row_of_a_table_is_a_list_of_its_cells(capsys: pytest.CaptureFixture[str]) -> None:
    narrow = printed(38, capsys)
    assert narrow[:3] == ["Latencies", "authored", "verdict      UNDECIDED"]
    assert narrow[-3:] == ["bound /call  1.00 ms", "verdict      SLOWER", "bound /call  12.00 ms"]
    assert max(map(len, narrow)) <= 38


def test_a_table_stands_where_it_cuts_no_figure_and_breaks_long_words_alone(capsys: pytest.CaptureFixture[str]) -> None:
    wide = printed(39, capsys)
    assert wide[0] == "Latencies"
    (row,) = (line for line in wide if line.startswith("UNDECIDED  case/iree:linalg"))
    assert row.endswith("1.00 ms")
