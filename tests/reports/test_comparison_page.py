"""The page for a pull request's comment: the answer in 40 lines, all else folded, and never more than GitHub takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import fake_records as fake
import pytest

from rnnbench.reports import COMMENT_CHARACTERS, comparison_markdown
from rnnbench.reports.comparison_page import VISIBLE_LINES, VISIBLE_TARGETS
from rnnbench.results import Comparison, Record, compare_runs

pytest.importorskip("scipy")


def visible_lines(page: str) -> list[str]:
    """What is read before anything is unfolded: lines that are not blank, and of each fold its summary."""
    shown, folded = [], False
    for line in page.splitlines():
        if line == "</details>":
            folded = False
        elif not folded and line.strip():
            shown.append(line)
        folded = folded or line.startswith("<details>")
    return shown


def many_of(count: int, *, side: int) -> Iterator[Record]:
    """Trials of which every fourth changes in one way: slower, faster, crashed, lowered to another form."""
    for number in range(1, count + 1):
        kind = number % 4 if side and number % 3 else -1
        yield fake.record(
            ("fakelib", "fakemlir")[number % 2],
            ("ops", "linalg")[number % 2],
            chunk=number,
            bound={0: 1.3e-3, 1: 8e-4}.get(kind, 1e-3),
            spread=1e-3,
            seed=side,
            outcome="crashed" if kind == 2 else "ok",
            lowered="unrolled 8" if kind == 3 else None,
        )


@pytest.fixture(scope="module")
def many() -> Comparison:
    machine = {**fake.info().machine, "python": "3.12.1"}
    base = fake.run(list(many_of(600, side=0)), "main")
    return compare_runs(base, fake.run(list(many_of(600, side=1))[:-9], "pull", machine=machine))


def test_of_many_trials_the_answer_is_in_forty_lines_with_the_worst_of_each_sort(many: Comparison) -> None:
    lines = visible_lines(comparison_markdown(many, COMMENT_CHARACTERS))
    assert len(lines) <= VISIBLE_LINES
    assert lines[0] == "# pull against main"
    assert lines[1].startswith("**REGRESSED: 99 trials failing, 196 latencies SLOWER.")
    text = "\n".join(lines)
    for expected in (
        "**Worse**",
        "ends as crashed (it was ok)",
        "is no longer measured",
        "bound latency **SLOWER**: 1.00 ms → 1.30 ms, ratio 1.30",
        "and 2 more vanished",
        "more SLOWER",
        "**Changed**",
        "lowered to another form",
        "**Better**",
        "FASTER",
        "| fakelib:ops |",
        "**Warning:** machines differ in python",
    ):
        assert expected in text
    assert text.index("REGRESSED") < text.index("**Worse**") < text.index("**Changed**") < text.index("**Better**")


def test_a_page_is_never_longer_than_asked_and_says_what_it_left_out(many: Comparison) -> None:
    whole = comparison_markdown(many)
    assert len(whole) > COMMENT_CHARACTERS
    assert "left out" not in whole
    for most in (COMMENT_CHARACTERS, 20_000):
        page = comparison_markdown(many, most)
        assert 0.9 * most < len(page) <= most
        (left_out,) = re.findall(r"([\d,]+) rows are left out here: a comment holds 65,536 characters", page)[-1:]
        rows = len(re.findall(r"^\| (?:SLOWER|FASTER|SAME|UNDECIDED) ", page, re.MULTILINE))
        assert rows + int(left_out.replace(",", "")) == len(many.latencies)
        assert page.count("<details>") == page.count("</details>") == whole.count("<details>")
        assert page.index("| SLOWER |") < page.index("</details>", page.index("| SLOWER |"))


@pytest.mark.parametrize(
    ("further", "told"), [(0, []), (1, ["| and 1 more target |"]), (2, ["| and 2 more targets |"])]
)
def test_targets_beyond_the_first_are_counted(further: int, told: list[str]) -> None:
    targets = [f"fake{number}" for number in range(VISIBLE_TARGETS + further)]
    records = [fake.record(name, chunk=chunk, bound=1e-3) for name in targets for chunk in (1, 2)]
    page = comparison_markdown(compare_runs(fake.run(records, "main"), fake.run(records, "pull")))
    assert re.findall(r"^\| and .*? \|", page, re.MULTILINE) == told


def test_of_two_trials_every_change_is_a_line() -> None:
    base = [fake.record(chunk=c, bound=1e-3, spread=1e-3) for c in (1, 16)]
    assert base[0].artifact is not None
    operations = {"compiled": {"dispatches": 6, "copies": 1}}
    new = [
        fake.record(chunk=1, bound=1e-3, spread=1e-3, seed=1).model_copy(
            update={
                "artifact": base[0].artifact.model_copy(update={"nbytes": 800_000, "operations": operations}),
                "timing": base[0].timing.model_copy(update={"build_s": 4.5}),
            }
        ),
        fake.record(chunk=16, bound=1.2e-3, spread=1e-3, seed=1),
    ]
    lines = visible_lines(
        comparison_markdown(compare_runs(fake.run(base, "main"), fake.run(new, "pull")), COMMENT_CHARACTERS)
    )
    assert len(lines) < 15
    assert lines[3:9] == [
        "**Worse**",
        "- `c16` bound latency **SLOWER**: 1.00 ms → 1.20 ms, ratio 1.199 (1.195–1.204)",
        "- `c16` public latency **SLOWER**: 1.04 ms → 1.24 ms, ratio 1.191 (1.187–1.195)",
        "- `c1` artifact size **MORE**: 391 KiB → 781 KiB, ratio 2.000",
        "- `c1` operations of the compiled program **MORE**: 4 → 7, ratio 1.750: dispatches 4 → 6, copies 0 → 1",
        "- `c1` build time above its threshold (one measurement): 1.50 s → 4.50 s, ratio 3.000",
    ]


def test_every_result_of_two_machines_is_marked() -> None:
    old = fake.run([fake.record(bound=1e-3, spread=1e-3)], "old")
    new = fake.run([fake.record(bound=2e-3, spread=1e-3, lowered="fused")], "new", machine={"cpu": "Fake CPU 1"})
    page = comparison_markdown(compare_runs(old, new, across_machines=True))
    assert "REGRESSED" not in page
    assert page.count("SLOWER\\*") == 2
    assert page.count("| SLOWER* |") == 2
    assert "| changed* |" in page
    assert "none is a regression of a compiler" in page
    assert "\\* Of two machines" in page


def test_a_distribution_in_the_place_of_another_one_is_one_difference() -> None:
    old, new = (
        fake.run([fake.record()], distribution, versions={"onnxruntime": {distribution: "1.31.1"}})
        for distribution in ("onnxruntime", "onnxruntime-gpu")
    )
    told = [warning for warning in compare_runs(old, new).warnings if "versions differ" in warning]
    assert told == [
        "versions differ in onnxruntime.onnxruntime: 1.31.1 in onnxruntime, 1.31.1 (onnxruntime-gpu) in onnxruntime-gpu"
    ]


def test_many_warnings_are_cut_and_folded() -> None:
    warnings = tuple(f"reason {number} to distrust it" for number in range(32))
    compared = replace(
        compare_runs(fake.run([fake.record()], "old"), fake.run([fake.record()], "new")), warnings=warnings
    )
    page = comparison_markdown(compared, COMMENT_CHARACTERS)
    assert len(visible_lines(page)) <= VISIBLE_LINES
    assert "> and 28 more warnings, below" in page
    assert page.count("reason 29") == 1


def test_a_long_warning_is_cut_and_folded() -> None:
    versions = {f"fake{number}": {"package": "2"} for number in range(30)}
    compared = compare_runs(fake.run([fake.record()], "old"), fake.run([fake.record()], "new", versions=versions))
    page = comparison_markdown(compared, COMMENT_CHARACTERS)
    assert page.count("versions differ in ") == 2, "the beginning, and the whole of it"
    assert page.count("fake29: none in old") == 1
