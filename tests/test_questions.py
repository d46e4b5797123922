"""Every page of `docs/questions/` is short, has all its parts, and gives a command that rnnbench takes."""

from __future__ import annotations

import re
from itertools import product

import pytest
from harness_command import run_command
from question_pages import FOLDER, ROOT, Page, pages, read_page

from rnnbench.results import read_run

PARTS = ["Short answer", "Figure", "Table", "Command", "Limits"]
PAGES = [pytest.param(page, id=page.name) for page in pages()]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_short_and_has_its_parts_in_order(page: Page) -> None:
    assert len(page.text.splitlines()) <= 60
    assert page.text.splitlines()[0].endswith("?")
    assert re.findall(r"^## (.*)$", page.text, re.MULTILINE) == PARTS


@pytest.mark.parametrize("page", PAGES)
def test_the_files_that_a_page_names_are_there(page: Page) -> None:
    linked = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", page.text)
    assert linked
    assert not [name for name in linked if not (FOLDER / name).exists()]


@pytest.mark.parametrize("page", PAGES)
def test_the_cases_of_its_commands_load(page: Page) -> None:
    assert page.commands
    for command in page.commands:
        cases = [word for word in command if word.endswith(".yaml")]
        for case in cases:
            assert run_command(ROOT, "list", case, "--backend=numpy").stdout


@pytest.mark.parametrize("page", PAGES)
def test_a_benchmark_repeats_its_finding(page: Page) -> None:
    name = page.name.replace("-", "_")
    assert (ROOT / "tests" / "benchmarks" / "questions" / f"test_{name}.py").is_file()


@pytest.fixture(scope="module")
def looped() -> dict[tuple[str, int, str, int], tuple[float, float]]:
    """Of the committed reference run: µs per step, and of the state's round trip."""
    return {
        (row["backend"], row["model_hidden"], row["state"], row["chunk"]): (
            1e6 * row["bound_per_step_s"],
            1e6 * row["state_copy_s"],
        )
        for row in read_run(ROOT / "results" / "reference").rows()
        if row["time"] == "looped" and row["backend"] in ("iree", "numpy")
    }


def test_one_sample_or_several_has_the_figures_of_the_reference_run(looped) -> None:
    line = re.compile(r"^\| (\d+) \| (\d+) \| [^|]* \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", re.MULTILINE)
    lines = line.findall(read_page("one-sample-or-several").text)
    assert len(lines) == 6
    for units, chunk, *figures in lines:
        for state, shown, of_one in (("stitched", *figures[:2]), ("stateful", *figures[2:])):
            step, _ = looped["iree", int(units), state, int(chunk)]
            assert float(shown) == pytest.approx(step, abs=0.051)
            assert float(of_one) == pytest.approx(step / looped["iree", int(units), state, 1][0], abs=0.0051)


def test_the_delay_of_several_samples_is_thousands_of_times_what_they_save(looped) -> None:
    """As README says: a call of 16 samples waits for 15 more frames of 10 ms."""
    for units, state in product((128, 512), ("stitched", "stateful")):
        saved_us = 16 * (looped["iree", units, state, 1][0] - looped["iree", units, state, 16][0])
        assert 1_000 < 15 * 10_000 / saved_us < 20_000


def test_stateful_or_stitched_has_the_figures_of_the_reference_run(looped) -> None:
    line = re.compile(
        r"^\| `(\w+):\w+` \| (\d+) \| ([\d.]+) µs \| ([\d.]+) µs \| [\d.]+ \| (.*) µs \| (.*) \|$", re.MULTILINE
    )
    lines = line.findall(read_page("stateful-or-stitched").text)
    assert len(lines) == 4
    for backend, units, stitched, stateful, copies, ratios in lines:
        steps, found = zip(*(looped[backend, int(units), state, 1] for state in ("stitched", "stateful")), strict=True)
        assert [float(stitched), float(stateful)] == pytest.approx(steps, abs=0.051)
        ends = [min(found), max(found)]
        assert [float(copies.split()[0]), float(copies.split()[-1])] == pytest.approx(ends, abs=0.051)
        shares = [end / steps[0] for end in ends]
        assert [float(ratios.split()[0]), float(ratios.split()[-1])] == pytest.approx(shares, abs=0.0051)


def test_readme_answers_each_question_in_a_row() -> None:
    rows = re.findall(
        r"^\| \[.*\]\(docs/questions/(.*)\.md\) \| (.*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert sorted(name for name, _ in rows) == [page.name for page in pages()]
    assert all(answer.endswith(".") for _, answer in rows)
