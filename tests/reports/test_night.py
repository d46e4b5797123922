"""The page of a night: short enough for a comment, and what is left out is said."""

from __future__ import annotations

from rnnbench.reports import COMMENT_CHARACTERS, NightSummary, night_page
from rnnbench.reports.night import CUT, SHOWN


def night(problems: tuple[str, ...]) -> NightSummary:
    return NightSummary("2026-01-01", "m", (), (), (), (), (), (), (), (), {}, problems)


def test_a_page_that_no_comment_holds_is_cut_between_two_lines_and_says_so() -> None:
    problem = "the site was not made: " + "x" * 1_900
    page = night_page(night((problem,) * 50))
    assert len(page) <= COMMENT_CHARACTERS
    assert page.endswith(f"{'x' * 1_900}.\n\n{CUT}\n")


def test_a_page_that_a_comment_holds_is_whole() -> None:
    page = night_page(night(("the site was not made",)))
    assert "## Machine" in page
    assert CUT not in page


def test_of_many_lines_the_first_are_shown_and_the_others_are_counted() -> None:
    problems = tuple(f"problem {number}" for number in range(SHOWN + 2))
    assert f"\n- problem {SHOWN - 1}.\n- and 2 more\n" in night_page(night(problems))
    whole = night_page(night(problems[:SHOWN]))
    assert f"\n- problem {SHOWN - 1}.\n" in whole
    assert "- and " not in whole
