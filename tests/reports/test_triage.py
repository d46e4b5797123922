"""The triage page: groups with their commands, a large group folded, what was decided, and no text that escapes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("ruamel.yaml")

from rnnbench.history import SILENCE, Acceptance, Alert, Alerts, Detection, History, Measured, News, UpstreamReport
from rnnbench.reports import triage_page
from rnnbench.reports.triage import SHOWN, alert_sentence

NOW = datetime(2026, 1, 20, 12)
TRIALS = tuple(f"fake_case/fakemlir:linalg/c{k:02d}" for k in range(60))
SLOW = Detection(
    machine="fakemachine",
    backend="fakemlir",
    what="bound",
    evidence="published",
    whole_backend=True,
    night="2026-01-09T02:00:00",
    run="night008",
    versions=("fakemlir-package 1.2.3", "fakemlir-package 2.0"),
    ratio=1.05,
    interval=(1.04, 1.06),
    members=TRIALS,
)
HOSTILE = "</details> **x** @you https://evil.example \x1b[2J ``` | '; rm -rf $HOME"
CRASHED = SLOW.model_copy(
    update={
        "what": "outcome",
        "evidence": "event",
        "backend": HOSTILE,
        "versions": ("", ""),
        "ratio": None,
        "interval": None,
        "before": "ok",
        "after": "crashed",
        "detail": HOSTILE,
        "members": (HOSTILE,),
        "whole_backend": False,
    }
)


@pytest.fixture(scope="module")
def news(tmp_path_factory: pytest.TempPathFactory) -> News:
    pytest.importorskip("duckdb")
    return News.of(History(tmp_path_factory.mktemp("history")), NOW)


@pytest.fixture
def saved(tmp_path: Path) -> Alerts:
    return Alerts.read(tmp_path / "alerts.yaml")


def page(saved: Alerts, news: News, *alerts: Alert) -> str:
    put = saved.put(*alerts)
    return triage_page(replace(put, as_read=put.all), news)


def test_a_backend_that_moved_is_one_paragraph_with_a_folded_list_and_commands(saved: Alerts, news: News) -> None:
    public = SLOW.model_copy(update={"what": "public", "ratio": 1.04})
    text = page(saved, news, Alert(id="a", state="new", found=SLOW), Alert(id="b", state="new", found=public))
    assert "**2 new in 1 group**" in text
    assert text.count("<details><summary>The 60 trials</summary>") == 1
    assert "- fakemlir, all 60 trials: **bound latency +5.0 % (+4.0 % to +6.0 %)** since 2026-01-09, medium" in text
    trial = TRIALS[0]
    versions = "--a fakemlir-package==1.2.3 --b fakemlir-package==2.0"
    selected = f"cases/fake_case.yaml --backend {trial.split('/')[1]} --only {trial}"
    assert f"rnnbench ab {selected} {versions}\n" in text
    assert f"rnnbench bisect {selected} --good 1.2.3 --bad 2.0\n" in text
    assert f"WHERE trial = '{trial}' AND machine = 'fakemachine' ORDER BY started\"" in text


@pytest.mark.parametrize(
    ("versions", "told"),
    [
        (("fakemlir 1", "fakemlir 2"), "Versions: fakemlir 1 → fakemlir 2. Machine `fakemachine`."),
        (("", "fakemlir 2"), "Versions: none → fakemlir 2. Machine `fakemachine`."),
        (("fakemlir 2",) * 2, "The versions did not change (fakemlir 2). Machine `fakemachine`."),
    ],
)
def test_a_group_says_whether_versions_changed(saved: Alerts, news: News, versions: tuple[str, str], told: str) -> None:
    found = SLOW.model_copy(update={"versions": versions})
    assert told in page(saved, news, Alert(id="a", state="new", found=found))


@pytest.mark.parametrize(("ratio", "word"), [(1.02, "small"), (1.05, "medium"), (1.3, "large"), (2.5, "very large")])
def test_a_change_has_a_class_of_magnitude(saved: Alerts, news: News, ratio: float, word: str) -> None:
    found = SLOW.model_copy(update={"ratio": ratio, "interval": (ratio, ratio)})
    assert f"since 2026-01-09, {word} (`a`)" in page(saved, news, Alert(id="a", state="new", found=found))


def test_what_was_decided_stands_in_its_section(saved: Alerts, news: News) -> None:
    ab = Measured(ratio=1.048, interval=(1.041, 1.055), versions=("1.2.3", "2.0"), on="2026-01-10")
    issue = UpstreamReport(issue="https://fake.example/1", on="2026-01-11")
    soon = Acceptance(why="known", by="Ada", until="2026-01-25")
    sections = page(
        saved,
        news,
        Alert(id="told", state="reported", found=SLOW, ab=ab, reported=issue),
        Alert(id="soon", state="accepted", found=SLOW, accepted=soon),
        Alert(id="late", state="accepted", found=SLOW, accepted=soon.model_copy(update={"until": "2027-01-01"})),
        Alert(id="good", state="mended", found=SLOW, mended="2026-01-19"),
        Alert(id="old", state="mended", found=SLOW, mended="2025-01-19"),
        Alert(id="refuted", state="refuted", found=SLOW, ab=ab),
        Alert(id="perhaps", state="new", found=SLOW.model_copy(update={"evidence": "candidate"})),
    ).split("\n## ")
    assert ", 1 candidate, 1 mended, 1 still open, 2 accepted (1 of them until 14 days from now)." in sections[0]
    titles = [section.partition("\n")[0] for section in sections[1:]]
    assert titles == ["Mended", "Still open", "Accepted, and running out", "Candidates", "How to read this"]
    mended, still_open, ending, candidates = sections[1:5]
    assert "returned by 2026-01-19" in mended
    assert (
        "measured on 2026-01-10 by ab: +4.8 % (+4.1 % to +5.5 %); reported on 2026-01-11: `https://fake.example/1`"
        in still_open
    )
    assert "accepted until 2026-01-25 by Ada: known (`soon`)" in ending
    assert "(`perhaps`)" in candidates
    assert not any(f"(`{name}`)" in "".join(sections) for name in ("late", "old", "refuted"))


@pytest.mark.parametrize(("number", "folded"), [(SHOWN, ""), (SHOWN + 2, "<details><summary>2 more</summary>")])
def test_a_long_section_is_folded_after_its_first_lines(saved: Alerts, news: News, number: int, folded: str) -> None:
    alerts = [Alert(id=f"a{k:02}", state="confirmed", found=SLOW) for k in range(number)]
    section = page(saved, news, *alerts).partition("## Still open")[2].partition("\n## ")[0]
    first, _, rest = section.partition("<details>")
    assert first.count("\n- ") == SHOWN
    assert rest.count("\n- ") == number - SHOWN
    assert folded in section
    assert ("<details>" in section) == bool(folded)


def test_text_of_records_and_of_people_is_shown_and_nothing_else(saved: Alerts, news: News) -> None:
    text = page(saved, news, Alert(id="a", state="new", note=HOSTILE, found=CRASHED))
    outside, block = text.split("````sh\n")
    assert "</details>" not in outside
    assert "**x**" not in text.replace(r"\*\*x\*\*", "").split("````sh")[0]
    assert "\x1b" not in text
    assert "`@you`" in outside
    assert "rm -rf $HOME'" in block.partition("\n````")[0]


@pytest.mark.parametrize(
    ("cases", "whole", "told"),
    [
        (("a", "b"), True, "has run no case"),
        (("a", "b"), False, "has not run `a`, `b`"),
        (("a", "b", "c", "d"), False, "has not run 4 of its cases"),
    ],
)
def test_a_silence_says_which_cases_are_missing_and_since_when(cases: tuple[str, ...], whole: bool, told: str) -> None:
    silence = SLOW.model_copy(update={"what": SILENCE, "members": cases, "whole_backend": whole})
    assert alert_sentence(silence) == f"Machine `fakemachine` {told} since 2026-01-09"


def test_nights_without_data_are_one_line_for_each_gap(saved: Alerts, news: News) -> None:
    """A gap that began before the last two weeks is told as a whole."""
    runs = [SimpleNamespace(started=f"2026-01-{day:02d}T02:00:00") for day in (1, 2, 3, 4, 5, 13, 14, 16)]
    told = page(saved, replace(news, silences=replace(news.silences, nights={("m", "case"): runs})))
    section = told.partition("## Nights without data")[2].partition("##")[0].strip()
    assert section.splitlines() == [
        "- 2026-01-06 to 2026-01-12, 7 nights: case did not run on machine `m`.",
        "- 2026-01-15: case did not run on machine `m`.",
    ]


def test_without_an_alert_the_page_says_so(saved: Alerts, news: News) -> None:
    assert "**There is no alert.**" in page(saved, news)


def test_what_the_file_does_not_have_yet_is_said(saved: Alerts, news: News) -> None:
    text = triage_page(saved.put(Alert(id="a", state="new", found=SLOW)), news)
    assert "1 alert differ here from the file; rnnbench history alerts writes them into it" in text


def test_a_drift_is_told_with_the_night_until_which_it_went_on() -> None:
    sentence = alert_sentence(SLOW.model_copy(update={"until": "2026-01-18T02:00:00"}))
    assert "since 2026-01-09, a drift that went on until 2026-01-18, medium" in sentence


def test_an_alert_that_was_closed_for_a_reason_is_told_with_it(saved: Alerts, news: News) -> None:
    explained = Alert(id="one", state="mended", mended="2026-01-19", returned="the machine moved", found=SLOW)
    assert "; closed on 2026-01-19: the machine moved" in page(saved, news, explained)
