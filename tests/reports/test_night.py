"""The page of a night: short enough for a comment, and what is left out is said."""

from __future__ import annotations

import re
from dataclasses import replace

from rnnbench.history import Alert, Detection, Measured
from rnnbench.reports import COMMENT_CHARACTERS, Commands, NightSummary, night_json, night_page
from rnnbench.reports.night import COMMANDS, CUT, SHOWN

OF_NO_RUN = Commands(())


def night(problems: tuple[str, ...]) -> NightSummary:
    return NightSummary("2026-01-01", "m", (), (), (), (), (), (), (), (), {}, problems)


def test_a_page_that_no_comment_holds_is_cut_between_two_lines_and_says_so() -> None:
    problem = "the site was not made: " + "x" * 1_900
    page = night_page(night((problem,) * 50), OF_NO_RUN)
    assert len(page) <= COMMENT_CHARACTERS
    assert page.endswith(f"{'x' * 1_900}.\n\n{CUT}\n")


def test_a_page_is_cut_at_the_last_line_that_a_comment_holds() -> None:
    for length in range(1_400, 1_500, 5):
        page = night_page(night(("x" * length,) * SHOWN), OF_NO_RUN)
        assert COMMENT_CHARACTERS - length - 10 < len(page) <= COMMENT_CHARACTERS


def test_a_page_that_a_comment_holds_is_whole() -> None:
    page = night_page(night(("the site was not made",)), OF_NO_RUN)
    assert "## Machine" in page
    assert CUT not in page


def test_of_many_lines_the_first_are_shown_and_the_others_are_counted() -> None:
    problems = tuple(f"problem {number}" for number in range(SHOWN + 2))
    assert f"\n- problem {SHOWN - 1}.\n- and 2 more\n" in night_page(night(problems), OF_NO_RUN)
    whole = night_page(night(problems[:SHOWN]), OF_NO_RUN)
    assert f"\n- problem {SHOWN - 1}.\n" in whole
    assert "- and " not in whole


def test_slow_calls_are_counted_and_told_and_no_night_with_them_is_quiet() -> None:
    told = replace(night(()), slow_calls=("fakelib: some calls of the newest version are slow",))
    page = night_page(told, OF_NO_RUN)
    assert "0 problems, 1 warning of slow calls." in page
    assert "## Slow calls\n\n- fakelib: some calls of the newest version are slow.\n" in page
    assert night_json(told)["slow_calls"] == list(told.slow_calls)
    assert "slow calls" not in night_page(night(("the site was not made",)), OF_NO_RUN)


def confirmed(number: int, backend: str = "fakelib") -> Alert:
    found = Detection(
        machine="m",
        backend=backend,
        what="bound",
        evidence="compared",
        night="2026-01-01T02:00:00",
        run="night",
        ratio=1.2,
        versions=("p 1", "p 2"),
        members=(f"case/{backend}:ops/looped/h1-{number:08d}",),
    )
    measured = Measured(ratio=1.2, interval=(1.19, 1.21), versions=("1", "2"), on="2026-01-01")
    return Alert(id=f"alert-{number}", state="confirmed", ab=measured, found=found)


def test_the_first_confirmed_alerts_have_their_commands_on_the_page() -> None:
    page = night_page(replace(night(()), confirmed=tuple(map(confirmed, range(COMMANDS + 1)))), OF_NO_RUN)
    commands = page.partition("## What to do")[2]
    assert re.findall(r"^`(alert-\d)`:\n\n```sh\nrnnbench ab .*--a p==1 --b p==2$", commands, re.MULTILINE) == [
        f"alert-{number}" for number in range(COMMANDS)
    ]
    assert "What to do" not in night_page(night(("the site was not made",)), OF_NO_RUN)


def test_a_page_that_is_cut_has_no_commands_and_leaves_no_block_open() -> None:
    long = replace(night(("x" * 1_900,) * 40), confirmed=(confirmed(1, "W" * 1_000),))
    page = night_page(long, OF_NO_RUN)
    assert page.endswith(f"{CUT}\n")
    assert "```" not in page
