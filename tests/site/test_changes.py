"""Changes in words: what became worse comes first, the machine is no alert, a backend speaks for its trials."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from made_site import CHANGE

from rnnbench.history import CheckEntry, Event, FailedTrial
from rnnbench.site.changes import change_rows, last_week
from rnnbench.site.conformance import write_conformance
from rnnbench.site.overview import write_overview
from rnnbench.site.page import Folder

EVENT = Event("fake", "fakelib", "t2", "outcome", "night", "2026-01-29T02:00:00", "nonconforming", "ok", ("1", "2"))


def test_a_change_is_a_sentence_with_its_interval_and_versions(content):
    (row,) = change_rows(replace(content, changes=(CHANGE,)))
    assert row.sentence == "bound latency +10.0 % (95 % interval +5.0 % to +15.0 %)"
    assert row.detail == "1 → 2"
    assert row.sign == "▲"


def test_what_became_worse_comes_first(content):
    better = replace(CHANGE, subject="t3", ratio=0.9, night="2026-01-31T02:00:00")
    found = replace(content, changes=(better, CHANGE), events=(EVENT,))
    assert [row.subject for row in last_week(found, change_rows(found))] == ["t1", "t3", "t2"]


@pytest.mark.parametrize(("nights", "recent"), [(7, True), (14, True), (15, False)])
def test_a_level_moved_in_the_week_in_which_it_could_be_told(content, nights, recent):
    """Its seventh night is the first on which it is published."""
    first = datetime.fromisoformat(CHANGE.night)
    (night,) = content.nights
    of_machine = tuple(
        replace(night, entry=night.entry.model_copy(update={"machine": "fake", "started": started}))
        for started in ((first + timedelta(days=number)).isoformat() for number in range(nights))
    )
    found = replace(content, nights=of_machine, changes=(CHANGE,))
    assert len(last_week(found, change_rows(found))) == recent


def test_a_change_names_its_machine_where_the_site_has_several(content):
    (night,) = content.nights
    entries = [
        night.entry.model_copy(update={"machine": machine, "machine_cpu": cpu})
        for machine, cpu in (("fake", "CPU"), ("other", None), ("twin", "Twin CPU"), ("sister", "Twin CPU"))
    ]
    found = replace(
        content,
        machines=(),
        nights=tuple(replace(night, entry=entry) for entry in entries),
        changes=(CHANGE, replace(CHANGE, level="machine", subject="fake", cause="environment")),
        events=tuple(replace(EVENT, machine=machine) for machine in ("other", "gone", "twin")),
    )
    named = {row.machine_name or row.subject for row in change_rows(found)}
    assert named == {"CPU", "the machine CPU", "other", "gone", "Twin CPU [twin]"}
    alone = replace(found, nights=found.nights[:1], events=())
    assert [row.machine_name for row in change_rows(alone)] == ["", ""]


def test_the_overview_leads_to_the_changes_that_it_does_not_show(content, tmp_path):
    for events, leads in (((EVENT,), False), ((EVENT, replace(EVENT, night="2026-01-02T02:00:00")), True)):
        found = replace(content, has_history=True, events=events)
        write_overview(found, Folder(tmp_path), change_rows(found))
        page = (tmp_path / "index.html").read_text(encoding="utf-8")
        assert ('<a href="alerts.html">All 2 changes of the history</a>' in page) == leads


def test_only_the_last_week_moved(content):
    found = replace(content, changes=(CHANGE, replace(CHANGE, night="2026-01-23T02:00:00")))
    assert len(change_rows(found)) == 2
    assert [row.night for row in last_week(found, change_rows(found))] == [CHANGE.night]


def test_the_machine_is_listed_and_is_no_alert(content):
    machine = replace(CHANGE, level="machine", subject="fake", backend="", cause="environment", reason="anchors moved")
    trial = replace(CHANGE, cause="environment", reason="the machine moved")
    found = replace(content, changes=(machine, trial))
    (row,) = change_rows(found)
    assert (row.subject, row.sign) == ("the machine fake", "○")
    assert "environment: anchors moved" in row.detail
    assert last_week(found, [row]) == []


def test_a_backend_speaks_for_its_trials(content):
    backend = replace(CHANGE, level="backend", subject="fakelib", together=("t1", "t4"))
    found = replace(content, changes=(backend, CHANGE, replace(CHANGE, measure="bytes")))
    assert [(row.subject, row.sentence[:5]) for row in change_rows(found)] == [("t1", "artif"), ("fakelib", "bound")]


def test_many_trials_are_counted(content):
    backend = replace(CHANGE, level="backend", subject="fakelib", together=tuple(map(str, range(9))))
    (row,) = change_rows(replace(content, changes=(backend,)))
    assert (len(row.together), row.more) == (5, 4)


def test_what_is_right_again_is_mended(content):
    worse = replace(EVENT, before="ok", after="nonconforming")
    found = replace(content, changes=(replace(CHANGE, ratio=0.9),), events=(EVENT, worse))
    assert [row.sentence for row in change_rows(found) if row.is_mended] == ["conforms again"]


def checked(night: str, versions: str, *failing: str) -> CheckEntry:
    failed = tuple(
        FailedTrial(trial=name, outcome="nonconforming", failed_checks=("values",), reason=f"{name} is wrong")
        for name in failing
    )
    return CheckEntry(
        run_id=night,
        run=night,
        started=f"{night}T02:00:00",
        machine="fake",
        machine_cpu=None,
        backend="fakelib",
        versions=versions,
        cases=(),
        trials=("t1", "t2", "t3"),
        expected_failures=0,
        unexpected_passes=0,
        unsupported=0,
        failed=failed,
    )


def test_a_check_of_a_new_version_says_what_fails_and_what_conforms_again(content):
    checks = (checked("2026-01-28", "p 1", "t1", "t2"), checked("2026-01-29", "p 2", "t2", "t3"))
    rows = change_rows(replace(content, checks=checks))
    assert [(row.direction, row.is_mended, row.sentence) for row in rows] == [
        ("worse", False, "the conformance check finds 1 of 3 trials checked failing: t3 is wrong"),
        ("better", True, "1 of 3 trials checked conform again"),
        ("worse", False, "the conformance check finds 2 of 3 trials checked failing: t1 is wrong"),
    ]
    assert [(row.detail, row.together) for row in rows] == [
        ("p 1 → p 2", (("t3", ""),)),
        ("p 1 → p 2", (("t1", ""),)),
        ("p 1", (("t1", ""), ("t2", ""))),
    ]


def test_a_check_that_was_not_complete_does_not_simply_conform(content, tmp_path):
    late = checked("2026-01-29", "p 2").model_copy(update={"too_short": {"t1": ("drift",)}})
    write_conformance(replace(content, checks=(late,)), Folder(tmp_path), ())
    assert "✓ conforms, 1 trial not fully checked" in (tmp_path / "conformance.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("fact", "before", "after", "direction", "is_mended"),
    [
        ("outcome", "ok", "crashed", "worse", False),
        ("outcome", "crashed", "unsupported", "other", False),
        ("failed_checks", "", "values", "worse", False),
        ("failed_checks", "values", "state, values", "worse", False),
        ("failed_checks", "state, values", "values", "better", False),
        ("failed_checks", "values", "", "better", True),
        ("believed", "false", "true", "better", True),
        ("support", "native", "emulated", "other", False),
    ],
)
def test_a_fact_is_worse_better_or_another_one(content, fact, before, after, direction, is_mended):
    event = replace(EVENT, fact=fact, before=before, after=after)
    (row,) = change_rows(replace(content, events=(event,)))
    assert (row.direction, row.is_mended) == (direction, is_mended)
