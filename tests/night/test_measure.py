"""What a night measures, and what it measures only once: budgets, comparisons of a version with itself, going on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_releases import NOT_INSTALLABLE, fake_index
from harness_trials import make_trial

from rnnbench.night import measure
from rnnbench.night.measure import CONFIRMATION
from rnnbench.night.state import Build, Good, write_state
from rnnbench.pipeline import SideError
from rnnbench.plan import unavailable
from rnnbench.results import FactChange

BOTH = {"1.0": "", "1.1": ""}
SLOW = {"1.0": 1.0, "1.1": 1.2}


class Interrupted(KeyboardInterrupt):
    pass


def interrupt(*arguments, **named):
    raise Interrupted


def begin_newer(nights, latencies=SLOW):
    """A night of 1.0, and then the release of 1.1."""
    nights.index({"1.0": ""})
    nights.night()
    nights.index(BOTH, latencies)


def test_a_second_comparison_has_twice_the_budget_of_the_first(nights, monkeypatch):
    begin_newer(nights)
    seconds, confirm = [], measure.confirm_slowdowns

    def noted(slower, sides, budget_s, *others):
        seconds.append(budget_s)
        return confirm(slower, sides, budget_s, *others)

    monkeypatch.setattr(measure, "confirm_slowdowns", noted)
    compared = nights.measure().backends["fake"].compared
    assert seconds == [2 * nights.plan().budget.seconds]
    assert CONFIRMATION == 2
    assert compared.slower
    assert not compared.worse, "that comparison decides, and not the first"


def test_a_trial_whose_name_is_no_utf_8_counts_among_those_of_a_night(nights):
    plan = nights.plan()
    named = replace(plan, trials=(replace(plan.trials[0], case="caf\udce9"), *plan.trials[1:]))
    assert named.digest != plan.digest


def test_a_night_that_was_measured_to_its_end_measures_nothing_more(nights, monkeypatch):
    nights.conforming({})
    begin_newer(nights)
    first = nights.measure(same_trials=1)
    assert nights.compared == ["1.1"] * 3, "the comparison, the one that confirms it, and that with itself"
    monkeypatch.setattr(measure, "run_trials", lambda *_, **__: pytest.fail("it goes through its trials again"))
    assert nights.measure(same_trials=1) == first
    assert (nights.compared, nights.checked) == ([], ["1.0", "1.1"])


def test_the_newest_version_has_an_environment_of_its_own_also_where_it_is_the_installed_one(nights):
    nights.index({"1.0": ""})
    made = fake_index(nights.patch, {"1.0": ""})
    nights.measure()
    assert made == ["1.0"]


def test_the_order_of_trials_begins_no_other_night_and_other_anchors_do(nights, monkeypatch):
    monkeypatch.setattr(measure, "examine_with_anchors", lambda trials, _: [unavailable(one, "none") for one in trials])
    nights.index({"1.0": ""})
    first = nights.measure()
    nights.trials = nights.trials[::-1]
    assert nights.measure().run == first.run
    anchor = replace(nights.trials[0], case="anchors", pinned="rnnbench-fake==0.9")
    assert nights.measure(anchors=(anchor,)).run != first.run


def test_a_version_in_another_form_is_told_and_is_no_reason_against_it(nights, monkeypatch):
    begin_newer(nights, dict.fromkeys(BOTH, 1.0))
    compare = measure.compare_sides

    def lowered(*arguments, **named):
        change = FactChange(nights.trials[0].id, "lowered", "looped 1", "unrolled 4", "neutral")
        return replace(compare(*arguments, **named), facts=(change,))

    monkeypatch.setattr(measure, "compare_sides", lowered)
    assert not nights.measure().backends["fake"].compared.worse


def test_the_last_good_version_alone_is_equal_to_a_build_and_is_not_taken_for_another_one():
    good = Good(version="1.0", requirements="rnnbench-fake==1.0", since="2026-01-01")
    build = Build(version="1.0", requirements="rnnbench-fake==1.0")
    assert good != build, "they are of two types"
    assert good.alone() == build


def of_itself(nights, day, **settings):
    """The trials, by backend, that a night of that day compares with themselves."""
    begun = nights.state.night.model_copy(update={"started": f"{day}T02:00:00+00:00", "same": None})
    write_state(nights.folders.state, nights.state.model_copy(update={"night": begun}))
    run = nights.measure(**settings).same[0]
    return [(record.backend, record.trial) for record in nights.store.read(run).records]


def test_another_backend_is_compared_with_itself_each_night(nights):
    nights.trials = (make_trial(), make_trial("numpy:eager"))
    nights.index({"1.0": ""})
    nights.measure()
    days = [of_itself(nights, f"2026-01-0{day}", same_trials=5) for day in (1, 2, 3)]
    assert {backend for ((backend, _),) in days} == {"fake", "numpy"}, "all trials of the one, fewer than asked for"
    assert days[0] == days[2] != days[1]


def test_a_night_that_goes_on_compares_the_same_trials_with_themselves_and_another_night_others(nights):
    nights.trials = tuple(make_trial(chunk=chunk) for chunk in range(1, 13))
    nights.index({"1.0": ""})
    nights.measure()
    first, again, other = (of_itself(nights, f"2026-01-0{day}", same_trials=5) for day in (1, 1, 2))
    assert len(first) == 5
    assert first == again != other


def test_what_failed_in_the_run_of_the_night_is_not_compared_with_itself(nights):
    nights.trials = (make_trial(), make_trial(time="fused"))
    nights.index({"1.0": ""})
    nights.measure()
    assert [trial for _, trial in of_itself(nights, "2026-01-01", same_trials=2)] == [nights.trials[0].id]


def test_a_last_good_version_in_the_place_of_the_newest_is_neither_checked_nor_compared_again(nights):
    nights.conforming({})
    nights.index({"1.0": ""})
    nights.night()
    nights.index({"1.0": "", "1.1": NOT_INSTALLABLE})
    assert nights.measure().backends["fake"].compared is None, "there is nothing beside it"
    assert nights.checked == ["1.0"]


def test_a_run_that_was_begun_goes_on_with_the_version_that_it_was_begun_with(nights, monkeypatch):
    nights.index({"1.0": ""})
    nights.night()
    nights.index({"1.0": "", "1.1": NOT_INSTALLABLE})
    run_trials = measure.run_trials
    monkeypatch.setattr(measure, "run_trials", interrupt)
    with pytest.raises(Interrupted):
        nights.measure()
    monkeypatch.setattr(measure, "run_trials", run_trials)
    nights.index(BOTH)
    night = nights.measure()
    assert night.backends["fake"].measured.version == "1.0"
    assert nights.store.read(night.run).info.versions == {"fake": {"rnnbench-fake": "1.0"}}


def test_before_a_run_was_begun_the_last_good_version_takes_the_place_of_one_that_can_no_longer_be_made(
    nights, monkeypatch
):
    begin_newer(nights)
    begin_run = measure.begin_run
    monkeypatch.setattr(measure, "begin_run", interrupt)
    with pytest.raises(Interrupted):
        nights.measure()
    monkeypatch.setattr(measure, "begin_run", begin_run)
    nights.index({"1.0": "", "1.1": NOT_INSTALLABLE})
    assert nights.measure().backends["fake"].measured.version == "1.0"


def test_a_version_that_can_be_installed_when_its_night_goes_on_has_no_problem(nights):
    nights.index({"1.0": NOT_INSTALLABLE})
    problem = nights.measure().backends["fake"].problem
    assert nights.said == [f"fake: {problem}"]
    nights.index({"1.0": ""})
    fake = nights.measure().backends["fake"]
    assert (fake.measured.version, fake.problem) == ("1.0", "")
    assert nights.said.count(f"fake: {problem}") == 1


def test_what_could_not_be_compared_is_told_beside_what_could_not_be_confirmed(nights, monkeypatch):
    begin_newer(nights)
    compare, compared = measure.compare_sides, []

    def first_alone(*arguments, **named):
        compared.append(arguments)
        if len(compared) > 1:
            raise SideError("its environment is gone")
        return compare(*arguments, **named)

    def not_confirmed(*arguments):
        raise SideError("it cannot be made")

    monkeypatch.setattr(measure, "compare_sides", first_alone)
    monkeypatch.setattr(measure, "confirm_slowdowns", not_confirmed)
    night = nights.measure(same_trials=1)
    assert night.problems == ("fake: not confirmed: it cannot be made", "A/A: its environment is gone")


def test_a_run_that_was_begun_does_not_go_on_with_another_version(nights, monkeypatch):
    begin_newer(nights)
    run_trials = measure.run_trials
    monkeypatch.setattr(measure, "run_trials", interrupt)
    with pytest.raises(Interrupted):
        nights.measure()
    monkeypatch.setattr(measure, "run_trials", run_trials)
    nights.index({"1.0": "", "1.1": NOT_INSTALLABLE})
    fake = nights.measure().backends["fake"]
    assert (fake.measured.version, bool(fake.problem)) == ("1.1", True)


def test_a_night_that_could_measure_nothing_compares_nothing_with_itself(nights):
    nights.index({"1.0": NOT_INSTALLABLE})
    night = nights.measure(same_trials=1)
    assert (night.run_ended, night.same) == (False, None)
