"""One night after another: what is found, confirmed, held back, mended, and becomes the last good version."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
from decisions import accept
from fake_releases import NOT_INSTALLABLE, YANKED

from rnnbench import site
from rnnbench.history import Alerts
from rnnbench.night import MeasuredNight, State, VersionSearch, collect, collect_night, hold_state, measure, read_state
from rnnbench.night.folders import DATA, PAGE
from rnnbench.night.state import Good, Held, write_state
from rnnbench.plan import unavailable
from rnnbench.reports import BackendLine, Commands, NightSummary, ReportError, night_page
from rnnbench.results import StoreError

SLOW = {"1.0": 1.0, "1.1": 1.2, "1.2": 1.0}


def test_the_first_night_has_nothing_to_compare_and_its_versions_are_the_last_good_ones(nights):
    nights.index({"1.0": ""})
    found = nights.night()
    assert found.is_quiet
    assert nights.compared == []
    assert nights.state.good["fake"].version == "1.0"
    assert nights.state.night is None
    assert [run.trials for run in nights.history.nights] == [2]


def test_the_anchors_are_in_the_run_of_the_night_and_judge_no_version(nights, monkeypatch):
    nights.index({"1.0": ""})
    anchor = replace(nights.trials[0], case="anchors", pinned="rnnbench-fake==0.9")
    reason = "no environment with its pinned versions"
    monkeypatch.setattr(measure, "examine_with_anchors", lambda trials, _: [unavailable(one, reason) for one in trials])
    found = nights.night(anchors=(anchor,))
    assert nights.said[0] == "Making the environments of the anchors, where they are not there yet."
    assert [run.trials for run in nights.history.nights] == [3]
    assert [(record.trial, record.outcome) for record in found.failed] == [(anchor.id, "unavailable")], "it is told"
    assert nights.state.good["fake"].version == "1.0", "the anchor is no trial of the version"


def test_a_slower_release_is_found_confirmed_listed_and_closed_when_it_is_taken_out(nights):
    nights.index({"1.0": ""})
    nights.night()

    nights.index({"1.0": "", "1.1": ""}, SLOW)
    found = nights.night()
    assert nights.compared == ["1.1", "1.1"], "the comparison, and the one that confirms it"
    (alert,) = found.confirmed
    assert found.still_open == (), "what is confirmed tonight is told once"
    assert (alert.state, alert.found.what, alert.ab.ratio) == ("confirmed", "bound", 1.2)
    assert alert.found.versions == ("rnnbench-fake 1.0", "rnnbench-fake 1.1")
    assert nights.alerts == {alert.id: alert}
    page = (nights.folders.reports / PAGE).read_text()
    assert "## Confirmed tonight" in page
    assert f"(`{alert.id}`); rnnbench-fake 1.0 → rnnbench-fake 1.1\n" in page
    assert "1.0 → 1.1: 2 SLOWER; it is not good" in page
    assert "rnnbench bisect cases/harness.yaml" in page.partition("## What to do")[2]
    assert nights.state.good["fake"].version == "1.0"

    found = nights.night()
    assert nights.compared == [], "what is held back by an open alert is compared once"
    assert (found.confirmed, found.still_open) == ((), (alert,))

    nights.index({"1.0": "", "1.1": "", "1.2": ""}, SLOW)
    found = nights.night()
    (closed,) = found.closed
    assert (closed.id, closed.state) == (alert.id, "mended")
    assert closed.returned.startswith("rnnbench-fake 1.2 beside rnnbench-fake 1.0: ratio 1.000 (")
    assert nights.state.good["fake"].version == "1.2"
    assert nights.state.held == {}
    assert len(nights.history.comparisons) == 2, "those of good and newest; a confirmation is in its alert"


def test_a_release_that_is_withdrawn_closes_its_alert_without_a_comparison(nights):
    nights.index({"1.0": ""})
    nights.night()
    nights.index({"1.0": "", "1.1": ""}, SLOW)
    nights.night()
    nights.index({"1.0": ""}, SLOW)
    (closed,) = nights.night().closed
    assert nights.compared == []
    assert closed.returned == "rnnbench-fake 1.0 is the newest again"

    alerts = nights.folders.alerts
    alerts.write_text(alerts.read_text().replace(f"mended: '{closed.mended}'", "mended: '2026-01-01'"))
    assert "2026-01-01" in alerts.read_text()
    assert nights.night().closed == (), "it was closed on another day"


def test_what_a_person_accepts_becomes_the_last_good_version(nights):
    nights.index({"1.0": ""})
    nights.night()
    nights.index({"1.0": "", "1.1": ""}, SLOW)
    (alert,) = nights.night().confirmed
    accept(Alerts.read(nights.folders.alerts), alert.id).write()
    assert nights.night().is_quiet
    assert nights.state.good["fake"].version == "1.1"


def test_a_slowdown_that_is_not_found_again_makes_no_alert(nights, monkeypatch):
    nights.index({"1.0": ""})
    nights.night()
    nights.index({"1.0": "", "1.1": ""}, latencies := dict(SLOW))
    confirm = measure.confirm_slowdowns

    def is_as_fast(*arguments):
        latencies["1.1"] = 1.0
        return confirm(*arguments)

    monkeypatch.setattr(measure, "confirm_slowdowns", is_as_fast)
    found = nights.night()
    assert found.not_confirmed == ("fake, bound latency, 2 trials: refuted, the second comparison found no change",)
    assert nights.alerts == {}
    assert nights.state.good["fake"].version == "1.1"


def test_a_release_that_cannot_be_installed_is_told_and_the_last_good_one_is_measured(nights):
    nights.index({"1.0": ""})
    nights.night()
    for content, why in ((NOT_INSTALLABLE, "No matching distribution"), (YANKED, "was withdrawn by its makers")):
        nights.index({"1.0": "", "1.1": content})
        found = nights.night()
        assert why in found.problems[0]
        assert nights.compared == []
        assert nights.state.good["fake"].version == "1.0"
    assert [run.versions for run in nights.history.nights] == [{"fake": {"rnnbench-fake": "1.0"}}] * 3


def test_a_backend_that_never_had_a_good_version_is_left_out_and_told(nights):
    nights.index({"1.1": NOT_INSTALLABLE})
    found = nights.night()
    assert found.problems
    assert found.backends[0].said == "not measured"
    assert nights.history.nights == ()


@pytest.mark.proof
def test_a_release_in_which_trials_fail_is_not_good(nights):
    nights.index({"1.0": ""})
    nights.night()
    nights.index({"1.0": "", "1.1": ""}, {"1.0": 1.0, "1.1": "nonconforming"})
    nights.night()
    assert nights.state.good["fake"].version == "1.0"


def test_pre_releases_count_where_they_are_asked_for(nights):
    nights.index({"1.0": "", "1.1rc1": ""})
    nights.night()
    assert nights.state.good["fake"].version == "1.0"
    nights.night(search=VersionSearch(pre=frozenset({"fake"})))
    assert nights.state.good["fake"].version == "1.1rc1"


def test_without_an_upgrade_what_is_installed_is_the_newest(nights):
    nights.index({"2.0": ""}, {"1.0": 1.0, "1.5": 1.2, "2.0": 1.0})
    nights.night(search=VersionSearch(upgrade=False))
    assert nights.state.good["fake"].version == "1.0"
    assert nights.state.good["fake"].requirements == "rnnbench-fake==1.0", "later nights can make it again"


def test_trials_are_compared_with_themselves_and_kept_as_that(nights):
    nights.index({"1.0": ""})
    found = nights.night(same_trials=1)
    assert nights.compared == ["1.0"]
    assert found.same == {"SAME": 1}
    (entry,) = nights.history.comparisons
    assert entry.same
    assert len(nights.history.nights) == 1, "neither side of a comparison is a night"


def test_a_comparison_whose_verdicts_are_gone_is_a_problem_and_ends_nothing_else(nights):
    nights.index({"1.0": ""})
    measured = MeasuredNight(nights.measure(same_trials=1), nights.store)
    for file in nights.store.root.rglob("verdicts.json"):
        file.unlink()
    found = collect_night([measured], nights.folders)
    assert found.same == {}
    assert any("is no side b of a comparison" in text for text in found.problems)
    assert "is no side b of a comparison" in (nights.folders.reports / PAGE).read_text()
    assert nights.state.good["fake"].version == "1.0"


def test_slow_calls_of_a_new_version_are_in_the_summary_and_hold_it_back_from_nothing(nights):
    nights.index({"1.0": ""})
    nights.night()
    nights.index({"1.0": "", "1.1": ""})
    measured = MeasuredNight(nights.measure(), nights.store)
    (file,) = nights.store.root.rglob("verdicts.json")
    content = json.loads(file.read_text())
    for one in content["verdicts"]:
        one["mean"] = {"ratio": 1.3, "interval": [1.2, 1.4], "verdict": "SLOWER", "observations": 6}
    file.write_text(json.dumps(content))
    (sentence,) = collect_night([measured], nights.folders).slow_calls
    assert sentence.startswith("fake: some calls of the newest version are slow in 2 latencies,")
    assert "the mean of the newest version is 1.300 times that of the last good version (1.200 to 1.400)" in sentence
    assert sentence in (nights.folders.reports / PAGE).read_text().replace("\\", "")
    assert nights.state.good["fake"].version == "1.1"


class Interrupted(KeyboardInterrupt):
    pass


def interrupt(*arguments, **named):
    raise Interrupted


def test_an_interrupted_night_goes_on_and_does_nothing_twice(nights, monkeypatch):
    nights.index({"1.0": ""})
    nights.night()
    nights.index({"1.0": "", "1.1": ""}, SLOW)
    compare = measure.compare_sides
    monkeypatch.setattr(measure, "compare_sides", interrupt)
    with pytest.raises(KeyboardInterrupt):
        nights.measure()
    begun = nights.state.night
    assert begun.run_ended
    monkeypatch.setattr(measure, "compare_sides", compare)
    monkeypatch.setattr(measure, "run_trials", interrupt)
    nights.index({"1.0": "", "1.1": "", "1.2": ""}, SLOW)
    monkeypatch.setattr(measure, "run_trials", interrupt)
    went_on = nights.measure()
    assert (went_on.run, went_on.backends["fake"].newest.version) == (begun.run, "1.1")
    assert any("Going on with the night" in said for said in nights.said)


def test_a_night_whose_runs_were_removed_makes_them_again(nights):
    nights.conforming({})
    nights.index({"1.0": ""})
    first = nights.measure()
    names = (first.run, first.backends["fake"].checked)
    for name in names:
        shutil.rmtree(nights.store.resolve(name))
    assert nights.night().is_quiet
    assert [f"{name}: made again: no run" in " ".join(nights.said) for name in names] == [True, True]
    assert nights.checked == ["1.0", "1.0"]
    assert [run.trials for run in nights.history.nights] == [2]
    assert nights.state.good["fake"].version == "1.0"


def test_what_a_person_writes_into_the_state_during_a_night_stays(nights, monkeypatch):
    nights.index({"1.0": ""})
    run_trials, held = measure.run_trials, {"other": Held(version="9", alerts=())}

    def edited(*arguments, **named):
        write_state(nights.folders.state, nights.state.model_copy(update={"held": held}))
        run_trials(*arguments, **named)

    monkeypatch.setattr(measure, "run_trials", edited)
    night = nights.measure()
    assert (nights.state.held, nights.state.night.run_ended) == (held, True)

    def edited_again(*content):
        write_state(nights.folders.state, nights.state.model_copy(update={"held": {}}))

    monkeypatch.setattr(collect, "write_site", edited_again)
    with pytest.raises(StoreError, match="was changed while rnnbench worked on it; run the command again"):
        collect_night([MeasuredNight(night, nights.store)], nights.folders)
    assert nights.state.held == {}
    assert nights.night().is_quiet
    assert nights.state.good["fake"].version == "1.0"


def test_a_comparison_whose_page_cannot_be_written_counts(nights, monkeypatch):
    def full(*_):
        raise ReportError("the disk is full")

    nights.index({"1.0": ""})
    nights.night()
    nights.index({"1.0": "", "1.1": ""}, SLOW)
    monkeypatch.setattr(measure, "write_comparison", full)
    found = nights.night()
    assert [alert.state for alert in found.confirmed] == ["confirmed"]
    (problem,) = found.problems
    assert "fake: its comparison has no page: the disk is full; see: rnnbench compare " in problem


def test_a_night_goes_on_without_an_environment_that_can_no_longer_be_made(nights, monkeypatch):
    nights.index({"1.0": ""})
    nights.night()
    nights.index({"1.0": "", "1.1": ""}, SLOW)
    compare = measure.compare_sides
    monkeypatch.setattr(measure, "compare_sides", interrupt)
    with pytest.raises(KeyboardInterrupt):
        nights.measure(same_trials=1)
    monkeypatch.setattr(measure, "compare_sides", compare)
    for there in ("1.0", "none of them"):
        nights.index({"1.0": "", "1.1": ""}, {there: 1.0})
        went_on = nights.measure(same_trials=1)
        assert went_on.backends["fake"].measured.version == "1.1", "its run has been made"
        assert "could not be made" in went_on.backends["fake"].not_compared
        assert went_on.same is None


def test_a_night_without_one_of_its_backends_begins_anew(nights):
    """Somebody edited the state."""
    nights.index({"1.0": ""})
    nights.measure()
    state = nights.state
    without = state.night.model_copy(update={"backends": {}})
    write_state(nights.folders.state, state.model_copy(update={"night": without}))
    assert list(nights.measure().backends) == ["fake"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("good: &a {}\nheld: *a\n", "an alias; write the value out"),
        ("good: " + "[" * 3000, "cannot be read: "),
        ("night: {started: never, trials: a, backends: {}}", "night.started: "),
        ("good: {}\nheld: {}\ngood: {}\n", "the key 'good' is here twice"),
        ("held: {fake: {version: '1', alerts: []}, fake: {version: '2', alerts: []}}", "the key 'fake' is here twice"),
        ("#" * ((8 << 20) + 1), "expected at most 8 MiB, and it is larger"),
        ("good: !!timestamp soon", "cannot be read: damaged (AttributeError"),
        ("good: !!bool maybe", "cannot be read: damaged (KeyError"),
        ("good: !!int ''", "cannot be read: damaged (IndexError"),
        (f"good: 1:{'00:' * 300}1.5", "cannot be read: damaged (OverflowError"),
        ('good: "\\U00110000"', "cannot be read: "),
        ("", "its content: "),
        ("# Nothing but a comment.", "its content: "),
    ],
    ids=(
        *("an alias", "deep", "no time", "twice", "twice within", "large", "tag", "bool", "int", "float", "escape"),
        *("empty", "a comment"),
    ),
)
def test_a_damaged_state_is_told_and_stays(tmp_path, text, why):
    file = tmp_path / "night.yaml"
    file.write_text(text)
    with pytest.raises(StoreError, match=r"correct it, or delete it") as refused:
        read_state(file)
    assert why in str(refused.value)
    assert file.read_text() == text


def test_a_state_that_was_cut_anywhere_is_told(tmp_path):
    """Otherwise the versions that are behind the cut would be neither good nor held."""
    good = Good(version="1.0", requirements="fake==1.0", since="2026-01-09")
    state = State(good={"one": good, "two": good}, held={"one": Held(version="1.1", alerts=())})
    write_state(file := tmp_path / "night.yaml", state)
    assert read_state(file) == state
    whole = file.read_text()
    for end in range(0, len(whole) - 1, 5):
        file.write_text(whole[:end])
        with pytest.raises(StoreError, match=r"correct it, or delete it"):
            read_state(file)
    file.write_text(whole.replace("schema_version: 2", "schema_version: 1").removesuffix("...\n"))
    assert read_state(file).good == state.good, "an earlier rnnbench wrote it"


def test_a_state_of_a_newer_rnnbench_is_not_to_be_deleted(tmp_path):
    (tmp_path / "night.yaml").write_text("schema_version: 9\n")
    with pytest.raises(
        StoreError, match=r"it has schema 9, and this rnnbench reads schemas up to 2; upgrade rnnbench$"
    ):
        read_state(tmp_path / "night.yaml")


def test_a_night_tells_of_damaged_files_of_the_history(nights):
    nights.index({"1.0": ""})
    nights.night()
    (entry,) = (nights.folders.history / "runs").iterdir()
    entry.write_bytes(b"")
    assert nights.night().problems == (f"{entry}: damaged, and skipped; add its run again",)


def test_a_link_to_a_state_stays_a_link_and_its_lock_is_that_of_the_file(tmp_path):
    (tmp_path / "night.yaml").symlink_to("mine.yaml")
    write_state(tmp_path / "night.yaml", State())
    assert (tmp_path / "night.yaml").is_symlink()
    refused = pytest.raises(StoreError, match="is in use: another night")
    with hold_state(tmp_path / "mine.yaml"), refused, hold_state(tmp_path / "night.yaml"):
        pass


def test_a_state_that_cannot_be_written_is_told_with_its_option(tmp_path):
    (tmp_path / "file").touch()
    refused = pytest.raises(StoreError, match=r"cannot write to .*night\.yaml: .*file is not a folder; .* with --state")
    with refused, hold_state(tmp_path / "file" / "night.yaml"):
        pass


def test_two_nights_at_once_are_refused(nights):
    again = hold_state(nights.folders.state)
    refused = pytest.raises(StoreError, match=r"night\.yaml is in use: another night")
    with hold_state(nights.folders.state), refused, again:
        pass
    with hold_state(nights.folders.state):
        assert nights.state.night is None, "the first one has let it go"


def test_a_night_of_other_trials_begins_anew(nights):
    nights.index({"1.0": ""})
    first = nights.measure()
    nights.trials = nights.trials[:1]
    assert nights.measure().run != first.run


def test_a_night_that_is_collected_twice_changes_nothing_more(nights):
    nights.index({"1.0": ""})
    nights.night()
    nights.index({"1.0": "", "1.1": ""}, SLOW)
    measured = MeasuredNight(nights.measure(), nights.store)
    state = nights.folders.state.read_bytes()
    first = collect_night([measured], nights.folders)
    alerts = nights.folders.alerts.read_bytes()
    nights.folders.state.write_bytes(state)
    again = collect_night([measured], nights.folders)
    assert again == first
    assert nights.folders.alerts.read_bytes() == alerts


@pytest.mark.proof
def test_the_site_lists_what_was_confirmed(nights, monkeypatch):
    nights.index({"1.0": ""})
    nights.night()
    nights.index({"1.0": "", "1.1": ""}, SLOW)
    monkeypatch.setattr(collect, "write_site", site.write_site)
    (alert,) = nights.night().confirmed
    assert alert.id in (nights.folders.reports / "site" / "alerts.html").read_text()
    machines = (nights.folders.reports / "site" / "machines.html").read_text()
    assert "Not measured: the history has no A/A comparison of this machine." in machines


def test_the_site_shows_what_a_machine_did_to_verdicts(nights, monkeypatch):
    nights.index({"1.0": ""})
    monkeypatch.setattr(collect, "write_site", site.write_site)
    nights.night(same_trials=2)
    machines = (nights.folders.reports / "site" / "machines.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "0 of 2, 0.0 % (0.0 % to 84.2 %); 2 SAME, 0 UNDECIDED" in machines
    assert "Not measured" not in machines


def test_a_site_that_cannot_be_made_is_a_problem_and_ends_nothing_else(nights, monkeypatch):
    monkeypatch.setattr(collect, "write_site", site.write_site)
    nights.index({"1.0": ""})
    (nights.folders.reports / "site").mkdir(parents=True)
    (nights.folders.reports / "site" / "other.txt").write_text("not ours")
    found = nights.night()
    assert any("the site was not made" in text for text in found.problems)
    assert "the site was not made" in (nights.folders.reports / PAGE).read_text()
    assert nights.state.good["fake"].version == "1.0"


def test_a_site_in_whose_place_a_file_lies_is_a_problem_too(nights, monkeypatch):
    monkeypatch.setattr(collect, "write_site", site.write_site)
    nights.index({"1.0": ""})
    nights.folders.reports.mkdir(parents=True)
    (nights.folders.reports / "site").touch()
    assert f"the site was not made: {nights.folders.reports / 'site'}: File exists" in nights.night().problems
    assert nights.state.good["fake"].version == "1.0"


def test_the_summary_for_programs_names_the_issue_of_each_alert(nights):
    nights.index({"1.0": ""})
    nights.night()
    nights.index({"1.0": "", "1.1": ""}, SLOW)
    (alert,) = nights.night().confirmed
    content = json.loads((nights.folders.reports / DATA).read_text())
    assert content["confirmed"] == [alert.id]
    (issue,) = content["issues"]
    assert (issue["id"], issue["state"]) == (alert.id, "open")
    text = (nights.folders.reports / issue["text"]).read_text()
    assert "Versions: rnnbench-fake 1.0 → rnnbench-fake 1.1." in text
    assert "--a rnnbench-fake==1.0 --b rnnbench-fake==1.1" in text


def test_a_quiet_night_without_any_verdict_says_that_nothing_was_decided():
    line = BackendLine("fake", "1.0", "1.1", {"UNDECIDED": 2}, "it is the last good version now")
    night = NightSummary("2026-01-01", "m", (), (line,), (), (), (), (), (), (), {}, ())
    assert night.is_quiet
    assert "Of `fake` no latency was decided" in night_page(night, Commands(()))
    decided = replace(night, backends=(replace(line, verdicts={"UNDECIDED": 2, "SAME": 1}),))
    assert "no latency was decided" not in night_page(decided, Commands(()))
