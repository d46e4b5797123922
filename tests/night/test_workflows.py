"""The workflows say what the command understands, pin what they use, and ask for no more than they need."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from rnnbench.cli import cli
from rnnbench.night.folders import PAGE

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v[\d.]+$")
WRITES = {
    ("nightly", "collect"): {"contents"},
    ("nightly", "pages"): {"pages", "id-token"},
    ("nightly", "tell"): {"issues", "pull-requests"},
}
"""What each job may write."""


def jobs(file):
    return yaml.safe_load(file.read_text())["jobs"].items()


def scripts(file):
    for name, job in jobs(file):
        for step in job["steps"]:
            if "run" in step:
                yield name, step["run"]


def commands(script):
    """The words of each call of rnnbench in a script."""
    joined = script.replace("\\\n", " ")
    for line in joined.splitlines():
        if found := re.search(r"(?:^\s*|/|\bif )(rnnbench [^;]*)", line):
            yield shlex.split(found[1].partition("||")[0].partition(" > ")[0], comments=True)


def every_command():
    units = list((ROOT / "docs" / "systemd").glob("*.service"))
    texts = [(file.name, script) for file in WORKFLOWS for _, script in scripts(file)]
    texts += [(file.name, file.read_text()) for file in units]
    texts.append(("Makefile", (ROOT / "Makefile").read_text()))
    for name, text in texts:
        for words in commands(text):
            yield pytest.param(words, id=f"{name}: {' '.join(words[:3])}")


def test_the_page_of_the_night_is_shown_with_its_job():
    (script,) = (script for file in WORKFLOWS for _, script in scripts(file) if "--reports reports" in script)
    assert f'cat reports/night/{PAGE} >> "$GITHUB_STEP_SUMMARY"' in script


@pytest.mark.parametrize("words", list(every_command()))
def test_every_command_and_option_is_there(words):
    command = cli
    for word in words[1:]:
        if isinstance(command, click.Group):
            command = command.commands[word]
    known = {option for parameter in command.params for option in parameter.opts}
    used = {match for word in words for match in re.findall(r"(?<![\w-])--[a-z-]+", word)}
    assert used <= known
    assert len(words) > 2


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
class TestWorkflow:
    def test_actions_are_pinned_to_a_commit(self, file):
        uses = [line.strip(" -") for line in file.read_text().splitlines() if re.match(r"\s*(- )?uses:", line)]
        assert uses
        assert all(PINNED.match(line) for line in uses)

    def test_each_job_asks_for_what_it_needs_and_nothing_is_granted_to_all(self, file):
        assert yaml.safe_load(file.read_text())["permissions"] == {}
        for name, job in jobs(file):
            written = {scope for scope, level in job["permissions"].items() if level == "write"}
            assert written == WRITES.get((file.stem, name), set())
            assert job["timeout-minutes"] <= 180

    def test_no_credentials_stay_in_a_clone(self, file):
        for _, job in jobs(file):
            clones = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
            assert all(step["with"]["persist-credentials"] is False for step in clones)

    def test_no_script_has_an_expression_in_it(self, file):
        assert not [script for _, script in scripts(file) if "${{" in script]
        assert "secrets." not in file.read_text()
