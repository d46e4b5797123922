"""`alerts.yaml`: what people write stays, mistakes are named with their place, and nothing is overwritten."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from threading import Thread

import pytest
from waiting import join

pytest.importorskip("ruamel.yaml")

from decisions import accept, report
from ruamel.yaml import YAML

from rnnbench.history import Alert, Alerts, AlertsError, Detection, Measured, alerts_file
from rnnbench.locks import locked

FOUND = Detection(
    machine="fakemachine",
    backend="fakemlir",
    what="bound",
    evidence="published",
    night="2026-01-09T02:00:00",
    run="night008",
    versions=("fakemlir-package 1.2.3", "fakemlir-package 2.0"),
    ratio=1.05,
    interval=(1.04, 1.06),
    members=("fake_case/fakemlir:linalg/a", "fake_case/fakemlir:linalg/b"),
)
AB = Measured(ratio=1.048, interval=(1.041, 1.055), versions=("1.2.3", "2.0"), on="2026-01-10")


@pytest.fixture
def alerts(tmp_path: Path) -> Alerts:
    empty = Alerts.read(tmp_path / "alerts.yaml")
    assert empty.all == ()
    return empty.put(*(Alert(id=name, state="new", found=FOUND) for name in ("one", "two"))).write()


def test_what_is_written_is_what_is_read(alerts: Alerts) -> None:
    changed = report(alerts.confirm("one", AB), "two")
    changed.write()
    read = Alerts.read(alerts.file)
    assert read.all == changed.all
    assert [alert.state for alert in read.all] == ["confirmed", "reported"]
    assert read.find("one").ab == AB


def test_comments_quotes_and_order_of_keys_stay(alerts: Alerts) -> None:
    text = alerts.file.read_text().replace(
        "- id: two\n  state: new\n",
        "# Ada looks at this one.\n- id: two\n  note: 'seen  twice'  # by Ada\n  state: new\n",
    )
    alerts.file.write_text(text)
    accept(Alerts.read(alerts.file), "two", "a bug was mended", "2026-06-30").confirm("one", AB).write()
    after = alerts.file.read_text()
    assert "# Ada looks at this one.\n- id: two\n  note: 'seen  twice'  # by Ada\n  state: accepted\n" in after
    assert "  accepted:\n    why: a bug was mended\n    by: Ada\n    until: '2026-06-30'\n  found:\n" in after
    gone = [line for line in text.splitlines() if line not in after.splitlines()]
    assert gone == ["  state: new"] * 2


def test_a_list_that_is_indented_stays_so(alerts: Alerts) -> None:
    yaml, stream = YAML(), StringIO()
    yaml.width, yaml.explicit_end = 4_096, True
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(yaml.load(alerts.file.read_text()), stream)
    alerts.file.write_text(indented := stream.getvalue())
    accept(Alerts.read(alerts.file), "two").confirm("one", AB).write()
    after = alerts.file.read_text().splitlines()
    assert [line for line in indented.splitlines() if line not in after] == ["    state: new"] * 2
    assert "      by: Ada" in after


def test_what_cannot_be_edited_without_loss_is_left_as_it_is(alerts: Alerts, monkeypatch: pytest.MonkeyPatch) -> None:
    text = alerts.file.read_text()
    monkeypatch.setattr(alerts_file, "_merge", lambda node, before, after: None)
    with pytest.raises(AlertsError, match="cannot be edited without loss"):
        alerts.confirm("one", AB).write()
    assert alerts.file.read_text() == text


@pytest.mark.parametrize("note", ["2026-13-45", "2026-02-30T25:00:00"])
def test_a_note_that_another_reader_takes_for_a_wrong_date_is_left_as_it_is(alerts: Alerts, note: str) -> None:
    """It is a text for people, and for the reader that knows places."""
    text = alerts.file.read_text().replace("state: new\n", f"state: new\n  note: {note}\n", 1)
    alerts.file.write_text(text)
    with pytest.raises(AlertsError, match="cannot be edited without loss"):
        Alerts.read(alerts.file).confirm("one", AB).write()
    assert alerts.file.read_text() == text


def test_alerts_in_flow_style_are_edited_too(alerts: Alerts) -> None:
    found = FOUND.model_dump_json(exclude_defaults=True)
    alerts.file.write_text(f"schema: 3\nalerts: [{{id: one, state: new, found: {found}}}]\n...\n")
    accept(Alerts.read(alerts.file), "one").put(Alert(id="two", state="new", found=FOUND)).write()
    assert [alert.state for alert in Alerts.read(alerts.file).all] == ["accepted", "new"]


def test_it_is_known_beside_which_alerts_people_wrote_comments(alerts: Alerts) -> None:
    assert Alerts.read(alerts.file).commented == frozenset()
    text = alerts.file.read_text()
    alerts.file.write_text(text.replace("- id: two", "# mine\n- id: two"))
    assert Alerts.read(alerts.file).commented == {"one", "two"}
    alerts.file.write_text(text.removesuffix("...\n") + "  # mine\n...\n")
    assert Alerts.read(alerts.file).commented == {"two"}


def test_a_file_without_alerts_is_read_again(tmp_path: Path) -> None:
    Alerts.read(tmp_path / "alerts.yaml").write()
    assert Alerts.read(tmp_path / "alerts.yaml").all == ()


def test_nothing_is_written_where_nothing_changed(alerts: Alerts) -> None:
    text = alerts.file.read_text().replace("schema: 3", "schema:   3   # odd spaces")
    alerts.file.write_text(text)
    Alerts.read(alerts.file).write()
    assert alerts.file.read_text() == text


def test_a_decision_stays_whatever_is_measured(alerts: Alerts) -> None:
    accepted = accept(alerts, "one")
    assert accepted.refute("one", AB).find("one").state == "accepted"
    assert alerts.refute("one", AB).find("one").state == "refuted"
    assert not alerts.refute("one", AB).find("one").is_finding


def test_a_new_alert_takes_the_id_of_no_other_one(alerts: Alerts) -> None:
    found = alerts.all[0].found
    ids = [alert.id for alert in alerts.add(found).add(found).add(found).all[-3:]]
    assert ids[1:] == [f"{ids[0]}-2", f"{ids[0]}-3"]


def test_a_mended_alert_has_no_transition_but_back(alerts: Alerts) -> None:
    mended = alerts.mend("one", "2026-01-20")
    with pytest.raises(AlertsError, match="'one' is mended"):
        mended.confirm("one", AB)
    assert mended.reopen("one").find("one").state == "new"


def test_an_unknown_alert_is_named_with_the_nearest(alerts: Alerts) -> None:
    with pytest.raises(AlertsError, match="has no alert 'ones'; did you mean 'one'"):
        alerts.confirm("ones", AB)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("state: new", "state: open", r":6:10: alerts\[0\]\.state: expected one of new, confirmed, .*'open'"),
        ("state: new", "state: reported", r":6:10: .*needs the key 'reported'; add reported: \{issue"),
        ("state: new", "stat: new", r":6:3: unknown key 'stat' in alerts\[0\]; did you mean 'state'"),
        ("state: new", "state: new\n  accepted: {why: a, by: b, until: soon}", r":7:36: .*a day such as .*'soon'"),
        ("state: new", "state: new\n  reported: 3", r":7:13: .*expected a mapping with issue, on, got 3"),
        ("ratio: 1.05", "ratio: -1", r"ratio: expected new over old, such as 1\.05, got -1"),
        ("what: bound", "what: bond", r"what: expected one of bound, .*did you mean 'bound'"),
        ("night: '2026", "night: 'x", "expected a time such as"),
        ("- id: two", "- id: one", r"the id 'one' is here twice; first at .*:5:7"),
        ("- id: two", "- id: &x two", "the anchor &x is not allowed"),
        ("schema: 3", "schema: 4", ":3:9: has schema 4, and this rnnbench reads schemas up to 3; upgrade rnnbench$"),
        ("schema: 3", "schema: two", ":3:9: schema: expected 1 to 3, got the text 'two'"),
        ("alerts:", "alerts: [", "not YAML"),
        ("- fake_case/fakemlir:linalg/a", "- [1]", r"members\[0\]: expected a text, got a list"),
    ],
)
def test_a_mistake_is_named_and_the_file_stays(alerts: Alerts, old: str, new: str, message: str) -> None:
    text = alerts.file.read_text()
    assert old in text
    alerts.file.write_text(wrong := text.replace(old, new, 1))
    with pytest.raises(AlertsError, match=message):
        Alerts.read(alerts.file)
    with pytest.raises(AlertsError, match="was changed while rnnbench worked on it"):
        alerts.confirm("one", AB).write()
    assert alerts.file.read_text() == wrong


def test_what_a_newer_rnnbench_wrote_is_told_by_its_schema_alone(alerts: Alerts) -> None:
    newer = alerts.file.read_text().replace("schema: 3", "schema: 4").replace("state: new", "state: later\n  more: 1")
    alerts.file.write_text(newer)
    with pytest.raises(AlertsError) as refused:
        Alerts.read(alerts.file)
    assert str(refused.value) == (
        f"{alerts.file}:3:9: has schema 4, and this rnnbench reads schemas up to 3; upgrade rnnbench"
    )


def test_a_link_to_the_file_stays_a_link(alerts: Alerts, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "alerts.yaml"
    link.parent.mkdir()
    link.symlink_to(alerts.file)
    Alerts.read(link).confirm("one", AB).write()
    assert link.is_symlink()
    assert Alerts.read(alerts.file).find("one").state == "confirmed"
    assert [path.name for path in link.parent.iterdir()] == ["alerts.yaml"]


def test_what_another_process_writes_between_the_look_and_the_writing_is_not_lost(alerts: Alerts) -> None:
    """The look comes once nobody else writes."""
    refused = []

    def confirm() -> None:
        with pytest.raises(AlertsError, match="was changed while rnnbench worked on it"):
            alerts.confirm("one", AB).write()
        refused.append(True)

    writer = Thread(target=confirm)
    with locked(alerts.file.with_name("alerts.yaml.lock")):
        writer.start()
        writer.join(0.2)
        assert not refused, "it waits"
        alerts.file.write_text(other := alerts.file.read_text().replace("state: new", "note: Ada's\n  state: new", 1))
    join(writer)
    assert refused == [True]
    assert alerts.file.read_text() == other


def test_a_file_that_was_cut_anywhere_is_told_and_stays(alerts: Alerts) -> None:
    """Otherwise the decisions behind the cut would be lost without a word."""
    whole = accept(alerts, "two").write().text
    for end in range(1, len(whole) - 1, 5):
        alerts.file.write_text(whole[:end])
        with pytest.raises(AlertsError):
            Alerts.read(alerts.file)
    between = whole.index("- id: two")
    alerts.file.write_text(whole[:between])
    with pytest.raises(AlertsError, match=r"alerts\.yaml:\d+:1: the last line is not `\.\.\.`: the file was cut"):
        Alerts.read(alerts.file)


def test_what_is_written_below_the_end_is_not_lost(alerts: Alerts) -> None:
    alerts.file.write_text(text := alerts.file.read_text() + "# Ada: look at both\n")
    with pytest.raises(AlertsError, match="something was written below"):
        Alerts.read(alerts.file)
    assert alerts.file.read_text() == text


def test_a_file_of_an_earlier_rnnbench_gets_its_end_once_it_is_edited(alerts: Alerts) -> None:
    alerts.file.write_text(alerts.file.read_text().replace("schema: 3", "schema: 1").removesuffix("...\n"))
    Alerts.read(alerts.file).confirm("one", AB).write()
    text = alerts.file.read_text()
    assert ("schema: 3\n" in text, text.endswith("\n...\n")) == (True, True)


@pytest.mark.parametrize("decide", [accept, report])
def test_a_decision_stays_and_keeps_what_was_measured_since(alerts: Alerts, decide) -> None:
    decided = decide(alerts, "one")
    state = decided.find("one").state
    for transition in (decided.confirm, decided.refute):
        assert (transition("one", AB).find("one").state, transition("one", AB).find("one").ab) == (state, AB)


def test_an_alert_that_is_open_again_was_mended_on_no_day(alerts: Alerts) -> None:
    again = alerts.mend("one", "2026-01-20", "gone").reopen("one").find("one")
    assert (again.mended, again.returned) == (None, None)
