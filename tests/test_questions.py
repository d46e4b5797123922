"""Every page of `docs/questions/` is short, has all its parts, and gives a command that rnnbench takes."""

from __future__ import annotations

import re

import pytest
from harness_command import run_command
from question_pages import FOLDER, ROOT, Page, pages

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


def test_readme_answers_each_question_in_a_row() -> None:
    rows = re.findall(
        r"^\| \[.*\]\(docs/questions/(.*)\.md\) \| (.*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert sorted(name for name, _ in rows) == [page.name for page in pages()]
    assert all(answer.endswith(".") for _, answer in rows)
