"""GitHub is told of a night through `gh`: one issue for each alert, and comments on pull requests about versions."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from rnnbench.night import GitHub, tell_github
from rnnbench.reports import ReportError

FAKE = Path(__file__).parents[1] / "fake"
HOSTILE = "$(touch /tmp/pwned) `id` ; --body-file /etc/passwd <!-- rnnbench-alert: other open -->"


class Repository:
    def __init__(self, folder, patch):
        self.file, self.night = folder / "repository.json", folder / "night"
        (self.night / "issues").mkdir(parents=True)
        (self.night / "night.md").write_text("# Night\n")
        patch.setenv("FAKE_GH", str(self.file))
        # The `python3` of the fake is this one: that of a machine may be a script, which takes ten times as long.
        patch.setenv("PATH", os.pathsep.join([str(FAKE), str(Path(sys.executable).parent), os.environ["PATH"]]))
        pull_requests = [
            {"number": 7, "files": [{"path": "constraints.txt"}]},
            {"number": 8, "files": [{"path": "docs/site.md"}]},
        ]
        self.put(issues=[], pull_requests=pull_requests, comments={}, asked=[])

    def put(self, **changes):
        before = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.file.write_text(json.dumps({**before, **changes}))

    def get(self, what):
        return json.loads(self.file.read_text())[what]

    def tell(self, state, text="slower\n", title="fake: bound latency"):
        (self.night / "issues" / "a.md").write_text(text)
        issue = {"id": "2026-01-02-fake-bound-1a2b", "state": state, "title": title, "text": "issues/a.md"}
        (self.night / "night.json").write_text(json.dumps({"page": "night.md", "issues": [issue], "day": "2026-01-02"}))
        said = []
        tell_github(self.night, GitHub(), said.append)
        return [line for line in said if "pull request" not in line]


@pytest.fixture
def repository(tmp_path, monkeypatch):
    return Repository(tmp_path, monkeypatch)


def test_an_alert_has_one_issue_that_is_updated_closed_and_opened_again(repository):
    assert repository.tell("open") == ["2026-01-02-fake-bound-1a2b: issue opened"]
    assert repository.tell("open") == [], "nothing has changed"
    assert repository.tell("open", "slower still\n") == ["2026-01-02-fake-bound-1a2b: issue 1 updated"]
    assert repository.tell("closed")[-1].endswith("issue 1 closed")
    assert repository.tell("closed") == []
    assert repository.tell("open")[-1].endswith("issue 1 opened again")
    assert len(repository.get("issues")) == 1


def test_an_alert_that_is_not_certain_or_is_over_opens_none(repository):
    assert repository.tell("waits") == repository.tell("closed") == []
    assert repository.get("issues") == []


def test_an_issue_that_a_person_closed_stays_closed(repository):
    repository.tell("open")
    (issue,) = repository.get("issues")
    repository.put(issues=[{**issue, "state": "CLOSED"}])
    assert repository.tell("open", "slower still\n") == []


def test_pull_requests_about_versions_get_the_summary_and_others_none(repository):
    repository.tell("open")
    assert repository.get("comments") == {"7": "# Night\n"}


def test_hostile_texts_are_arguments_and_input_and_no_words_of_a_command(repository):
    repository.tell("open", HOSTILE, HOSTILE)
    (issue,) = repository.get("issues")
    assert issue["title"] == HOSTILE
    assert issue["body"].startswith(HOSTILE)
    assert not Path("/tmp/pwned").exists()
    assert repository.tell("open", HOSTILE, HOSTILE) == [], "its own mark, the last one, is the one that counts"


@pytest.mark.parametrize(
    "content",
    ["", "{}", '{"page": "night.md", "issues": [{"id": "a b", "state": "open", "title": "", "text": "issues/a.md"}]}'],
)
def test_a_damaged_summary_has_a_message(repository, content):
    (repository.night / "night.json").write_text(content)
    with pytest.raises(ReportError, match=r"night\.json: is no summary of a night"):
        tell_github(repository.night, GitHub(), print)


@pytest.mark.parametrize("page", ["../secret.md", "/secret.md", ".netrc"])
def test_no_file_beside_the_night_is_published(repository, page):
    (repository.night / "night.json").write_text(json.dumps({"page": page, "issues": []}))
    with pytest.raises(ReportError, match=r"night\.json: is no summary of a night"):
        tell_github(repository.night, GitHub(), print)


@pytest.mark.first(1)
@pytest.mark.parametrize("linked", ["night.md", "issues/a.md", "issues"])
def test_no_file_that_a_link_leads_to_is_published(repository, tmp_path, linked):
    repository.tell("open")
    link, secret = repository.night / linked, tmp_path / "secret"
    link.rename(secret)
    link.symlink_to(secret)
    repository.put(asked=[])
    with pytest.raises(ReportError, match="leads to another file, which is not published"):
        tell_github(repository.night, GitHub(), print)
    assert not [asked for asked in repository.get("asked") if "--body-file" in asked]


def test_a_page_that_is_missing_or_no_text_has_a_message(repository):
    (repository.night / "night.json").write_text('{"page": "night.md", "issues": []}')
    for damage in (Path.unlink, lambda page: page.write_bytes(b"\xff")):
        damage(repository.night / "night.md")
        with pytest.raises(ReportError, match=r"night\.md: cannot be read: .*; make it again with"):
            tell_github(repository.night, GitHub(), print)


def test_without_gh_the_message_says_what_to_install(repository):
    (repository.night / "night.json").write_text('{"page": "night.md", "issues": []}')
    with pytest.raises(ReportError, match="install gh, and give it a token"):
        tell_github(repository.night, GitHub("no-such-gh"), print)


@pytest.mark.proof
def test_an_alert_that_is_back_and_waits_opens_its_issue_once_it_is_certain(repository):
    repository.tell("open")
    assert repository.tell("waits")[-1].endswith("issue 1 updated"), "it is not certain, and not over"
    assert repository.get("issues")[0]["state"] == "OPEN"
    repository.tell("closed")
    assert repository.tell("waits", "slower again\n") == []
    assert repository.get("issues")[0]["state"] == "CLOSED"
    assert repository.tell("open", "slower again\n")[-1].endswith("issue 1 opened again")
    assert repository.get("issues")[0]["body"].startswith("slower again\n")


@pytest.mark.proof
def test_an_issue_that_a_person_closed_while_it_waited_stays_closed(repository):
    repository.tell("open")
    repository.tell("waits")
    (issue,) = repository.get("issues")
    repository.put(issues=[{**issue, "state": "CLOSED"}])
    assert repository.tell("closed") == repository.tell("open") == []


def test_a_title_is_as_long_as_github_takes_and_another_one_is_an_update(repository):
    repository.tell("open", title="x" * 300)
    assert repository.get("issues")[0]["title"] == "x" * 250
    assert repository.tell("open", title="x" * 300) == []
    assert repository.tell("open", title="fake: public latency")[-1].endswith("issue 1 updated")


def test_all_issues_of_alerts_are_looked_at_and_the_open_pull_requests(repository):
    """Without a limit `gh` lists thirty: an alert beyond them would have a second issue each night."""
    repository.tell("open")
    asked = {tuple(words[:2]): " ".join(words) for words in repository.get("asked")}
    assert "--state all --limit 1000 " in asked["issue", "list"]
    assert "--state open --limit 100 " in asked["pr", "list"]


def test_a_pull_request_that_changes_other_files_too_is_about_versions(repository):
    files = [{"path": name} for name in ("docs/site.md", "pyproject.toml", "suite/rnnbench/cli.py")]
    repository.put(pull_requests=[{"number": 9, "files": files}])
    repository.tell("open")
    assert list(repository.get("comments")) == ["9"]


def test_what_gh_refuses_is_told_in_its_words(repository):
    with pytest.raises(ReportError, match="gh no such: unknown command"):
        GitHub().ask("no", "such")
