"""Publishing a night on GitHub through `gh`: an issue for each certain alert, and comments on pull requests.

Texts are passed to `gh` on its standard input, and titles as separate arguments, so no shell reads them. An issue is
found again by a mark in its text, among the issues with the label LABEL, which only people with rights to the
repository can set.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from rnnbench.disk import read_plain
from rnnbench.night.folders import DATA
from rnnbench.outside_text import safe_text
from rnnbench.reports import ReportError
from rnnbench.worker import run_helper

T = TypeVar("T")

LABEL = "rnnbench-alert"
VERSION_FILES = frozenset({"constraints.txt", "pyproject.toml"})
"""A pull request that changes one of these files changes versions, and gets the newest night as a comment."""
MOST_ISSUES, MOST_PULL_REQUESTS = 1_000, 100
LONGEST_TITLE = 250
LIMIT_S = 120.0
_AGAIN = "rnnbench night CASE…"
_MARK = re.compile(r"<!-- rnnbench-alert: ([\w.+-]+) (open|waits|closed) -->")
IssueState = Literal["open", "waits", "closed"]


class _Message(BaseModel):
    """What is read from `night.json` and from `gh`. Keys that are not named are left out."""

    model_config = ConfigDict(frozen=True)


class _Issue(_Message):
    """The issue that an alert should have."""

    id: Annotated[str, Field(pattern=r"^[\w.+-]+$", max_length=250)]
    state: IssueState
    title: str
    text: Annotated[str, Field(pattern=r"^issues/[^/]+\.md$")]
    """The file with its text, in the folder of the night."""


class _Night(_Message):
    """The parts of `night.json` that are needed."""

    page: Annotated[str, Field(pattern=r"^[^/]+\.md$")]
    """The file with its text. It must be in the folder of the night, so that no other file is published."""
    issues: tuple[_Issue, ...]


class _ExistingIssue(_Message):
    """An existing issue."""

    number: int
    state: Literal["OPEN", "CLOSED"]
    title: str
    body: str


class _File(_Message):
    path: str


class _PullRequest(_Message):
    number: int
    files: tuple[_File, ...]


@dataclass(frozen=True)
class GitHub:
    """The repository of the working directory, through `gh`."""

    command: str = "gh"

    def ask(self, *arguments: str, text: str | None = None) -> str:
        """Run `gh`, and return what it prints. Raises ReportError."""
        what = " ".join((self.command, *arguments[:2]))
        try:
            process = run_helper([self.command, *arguments], LIMIT_S, text)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ReportError(f"{what}: {error}; install gh, and give it a token (GH_TOKEN)") from error
        if process.returncode:
            raise ReportError(f"{what}: {safe_text(process.stderr.strip()) or 'failed'}")
        return process.stdout


def tell_github(folder: Path, github: GitHub, tell: Callable[[str], None]) -> None:
    """Bring the issues and comments up to date with the night in a folder. Raises ReportError."""
    night = _read(folder)
    github.ask("label", "create", LABEL, "--force", "--description", "Found by rnnbench's night")
    issues = dict(_known_issues(github))
    for issue in night.issues:
        for sentence in _tell_issue(issue, folder, issues.get(issue.id), github):
            tell(sentence)
    page = _text(folder, night.page)
    for number in _pull_requests(github):
        github.ask("pr", "comment", str(number), "--edit-last", "--create-if-none", "--body-file", "-", text=page)
        tell(f"commented on pull request {number}")


def _read(folder: Path) -> _Night:
    file = folder / DATA
    try:
        return _Night.model_validate_json(read_plain(file))
    except (OSError, ValidationError) as error:
        raise ReportError(f"{file}: is no summary of a night; make it with: {_AGAIN}") from error


def _text(folder: Path, name: str) -> str:
    """A page of the night. Raises ReportError, also for a link, which may lead to any file of this machine."""
    file = folder / name
    try:
        if file.resolve() != folder.resolve() / name:
            raise ReportError(f"{file}: leads to another file, which is not published; make it again with: {_AGAIN}")
        return read_plain(file).decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ReportError(f"{file}: cannot be read: {reason}; make it again with: {_AGAIN}") from error


def _tell_issue(issue: _Issue, folder: Path, known: tuple[_ExistingIssue, str] | None, github: GitHub) -> Iterator[str]:
    """Open, update, close or reopen an issue. One that a person closed stays closed. A waiting one is not opened."""
    text = f"{_text(folder, issue.text)}\n<!-- rnnbench-alert: {issue.id} {issue.state} -->\n"
    title = issue.title[:LONGEST_TITLE]
    if known is None:
        if issue.state == "open":
            github.ask("issue", "create", "--title", title, "--label", LABEL, "--body-file", "-", text=text)
            yield f"{issue.id}: issue opened"
        return
    there, was = known
    number = str(there.number)
    if there.state == "CLOSED" and (was != "closed" or issue.state == "waits"):  # The mark of our own closing stays.
        return
    if (there.title, there.body.strip()) != (title, text.strip()):
        github.ask("issue", "edit", number, "--title", title, "--body-file", "-", text=text)
        yield f"{issue.id}: issue {number} updated"
    if there.state == "OPEN" and issue.state == "closed":
        github.ask("issue", "close", number)
        yield f"{issue.id}: issue {number} closed"
    if there.state == "CLOSED" and issue.state == "open":
        github.ask("issue", "reopen", number)
        yield f"{issue.id}: issue {number} opened again"


def _known_issues(github: GitHub) -> Iterator[tuple[str, tuple[_ExistingIssue, str]]]:
    """For each alert's id, its issue, and the alert's state when the issue's text was written."""
    fields = ("--json", "number,state,title,body")
    answer = github.ask("issue", "list", "--label", LABEL, "--state", "all", "--limit", str(MOST_ISSUES), *fields)
    for issue in _parsed(answer, TypeAdapter(list[_ExistingIssue])):
        if marks := _MARK.findall(issue.body):  # Our mark is the last one. The text before it comes from outside.
            identity, state = marks[-1]
            yield identity, (issue, state)


def _pull_requests(github: GitHub) -> list[int]:
    """The numbers of the open pull requests that change versions."""
    answer = github.ask("pr", "list", "--state", "open", "--limit", str(MOST_PULL_REQUESTS), "--json", "number,files")
    pull_requests = _parsed(answer, TypeAdapter(list[_PullRequest]))
    return [request.number for request in pull_requests if VERSION_FILES & {file.path for file in request.files}]


def _parsed(answer: str, adapter: TypeAdapter[T]) -> T:
    try:
        return adapter.validate_python(json.loads(answer))
    except (ValueError, ValidationError) as error:
        raise ReportError(f"gh: its answer is not as expected: {safe_text(answer[:200])}") from error
