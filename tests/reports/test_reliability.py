"""A run says how far it can be trusted from its own records, and of what was not noticed nothing."""

from __future__ import annotations

import fake_records as fake
import pytest

from rnnbench.reports.reliability import (
    disturbance_warning,
    measurement_warnings,
    reliability_sentences,
    slow_bound_warning,
    unfinished_warnings,
)
from rnnbench.reports.sampling import groups_table, sampling_table
from rnnbench.results.record import CommonTrial, Record
from rnnbench.results.run_info import Conditions
from rnnbench.results.store import Run
from rnnbench.results.timing import Latency, Sampling, Warmup
from rnnbench.results.views import view_runs


def noticed(latency: Latency, half_width: float, disturbed: int = 0, drift: float = 0.0) -> Latency:
    sampling = Sampling(
        stopped_by="precision" if half_width <= 0.02 else "budget",
        blocks=20,
        disturbed_blocks=disturbed,
        drift=drift,
        warmup=Warmup(calls=100, seconds=0.02, stationary=2),
    )
    return fake.with_interval(latency, half_width).model_copy(update={"sampling": sampling})


def sampled(half_width: float = 0.01, **noted: float) -> Record:
    entry = fake.record(chunk=1)
    latencies = {path: noticed(latency, half_width, **noted) for path, latency in entry.timing.latency.items()}
    return fake.with_latencies(entry, **latencies)


def shown(tmp_path, *records, steal=0.03):
    conditions = Conditions(steal=steal, load=(0.1, 0.9))
    return view_runs([Run(tmp_path, fake.info(conditions=conditions), records)])


def test_a_run_tells_its_precision_disturbance_drift_and_steal(tmp_path):
    first, second = reliability_sentences(shown(tmp_path, sampled(0.01, disturbed=1, drift=-0.04)))
    assert "have an interval of ±1.0 % or less" in first
    assert "2 reached the requested precision, 0 spent their budget first" in first
    assert "during 5 % of the blocks" in second
    assert "drifted by up to 4.0 %" in second
    assert "host gave 3.0 %" in second


@pytest.mark.parametrize(
    ("half_width", "told"),
    [
        (0.05, "have an interval of ±5.0 % or less, nine in ten ±5.0 % or less"),
        (50.0, "have an interval above ±1000 %, one in ten above ±1000 %"),
    ],
)
def test_widths_that_are_beyond_what_is_shown_are_told_as_such(tmp_path, half_width, told):
    assert told in reliability_sentences(shown(tmp_path, sampled(half_width)))[0]


def test_only_latencies_with_an_interval_are_counted_as_half_of_them(tmp_path):
    others = fake.record("fakemlir", "linalg", chunk=1)
    assert reliability_sentences(shown(tmp_path, sampled(), others))[0].startswith("Half of the 2 latencies")


def test_a_latency_that_spent_its_budget_is_not_precise(tmp_path):
    assert "0 reached the requested precision, 2 spent" in reliability_sentences(shown(tmp_path, sampled(0.05)))[0]


def test_a_record_of_an_earlier_version_says_nothing_of_what_it_took_no_notice_of(tmp_path):
    assert reliability_sentences(shown(tmp_path, fake.record())) == ()
    assert disturbance_warning(shown(tmp_path, fake.record())) is None


def test_what_earlier_runs_built_and_checked_is_counted_with_its_days(tmp_path):
    first, second = fake.record(chunk=1), fake.record(chunk=2)
    first = first.model_copy(update={"checked": "2026-01-03T10:00:00+00:00"})
    timing = second.timing.model_copy(update={"built": "2026-01-01T09:00:00+00:00"})
    second = second.model_copy(update={"checked": "2026-01-02T23:00:00+00:00", "timing": timing})
    built, checked = reliability_sentences(shown(tmp_path, first, second, fake.record(chunk=4)))
    assert built.startswith("Built by earlier runs (2026-01-01), which the build times are of: 1 program.")
    assert checked.startswith("Checked by earlier runs (2026-01-02 to 2026-01-03), as the same programs: 2 trials.")
    assert "`" not in checked, "a report escapes the text of sentences, and would show the sign"


def test_a_run_that_was_cut_off_says_that_trials_may_be_missing(tmp_path):
    cut_off = Run(tmp_path, fake.info(finished=None), [fake.record()])
    (warning,) = unfinished_warnings(view_runs([cut_off]))
    assert cut_off.name in warning
    assert "have no record yet" in warning
    ended = Run(tmp_path, fake.info(finished="2026-01-01T00:00:00+00:00"), [fake.record()])
    assert list(unfinished_warnings(view_runs([ended]))) == []


def test_a_bound_path_that_is_slower_than_the_public_one_in_every_process_is_named(tmp_path):
    slow = fake.with_latencies(fake.record(chunk=1), bound=fake.latency(1.9e-3), public=fake.latency(1.2e-3))
    warning = slow_bound_warning(shown(tmp_path, slow))
    assert f"{slow.target} {slow.strategy} at chunk 1 (at least +5" in warning
    assert warning in measurement_warnings(shown(tmp_path, slow))


def test_the_difference_of_the_paths_is_printed_whole_and_not_beyond_what_is_allowed(tmp_path):
    bound, public = (
        fake.latency(1e-3).model_copy(update={"median": s, "process_medians": (s, s)}) for s in (1.021e-3, 1e-3)
    )
    record = fake.with_latencies(fake.record(), bound=bound, public=public)
    assert "(at least +2 %)" in slow_bound_warning(shown(tmp_path, record))


def test_paths_that_overlap_or_that_one_process_sampled_are_not_compared(tmp_path):
    record = fake.record(chunk=1)
    near = fake.with_latencies(record, bound=fake.latency(1.02e-3), public=fake.latency(1e-3, seed=1))
    alone = fake.with_latencies(record, bound=fake.latency(2e-3, processes=1), public=fake.latency(1e-3, processes=1))
    assert slow_bound_warning(shown(tmp_path, near)) is None
    assert slow_bound_warning(shown(tmp_path, alone)) is None


def test_paths_whose_intervals_overlap_are_not_compared(tmp_path):
    """By chance, two processes that scatter are both the slower ones in one case of six."""
    bound, public = (
        fake.latency(s).model_copy(update={"median": s, "process_medians": (s, s)}) for s in (1.2e-3, 1e-3)
    )
    wide = {"interval": (0.9e-3, 1.5e-3)}
    apart = fake.with_latencies(
        fake.record(), bound=bound, public=public.model_copy(update={"interval": (0.9e-3, 1.1e-3)})
    )
    scattered = fake.with_latencies(
        fake.record(), bound=bound.model_copy(update=wide), public=public.model_copy(update=wide)
    )
    bound_apart = apart.timing.latency["bound"].model_copy(update={"interval": (1.15e-3, 1.25e-3)})
    apart = fake.with_latencies(apart, bound=bound_apart, public=apart.timing.latency["public"])
    assert "(at least +20 %)" in slow_bound_warning(shown(tmp_path, apart))
    assert slow_bound_warning(shown(tmp_path, scattered)) is None


def test_the_device_of_a_slow_bound_path_is_named_where_there_are_several(tmp_path):
    slow = fake.with_latencies(fake.record(chunk=1), bound=fake.latency(1.9e-3), public=fake.latency(1.2e-3))
    on_cuda = slow.params.model_copy(update={"device": "cuda"})
    other = fake.record(chunk=4).model_copy(update={"params": on_cuda})
    assert "at chunk 1 on cpu (at least" in slow_bound_warning(shown(tmp_path, slow, other))


def test_many_disturbed_blocks_are_a_warning_and_a_few_are_none(tmp_path):
    assert "during 50 % of the sampled blocks" in disturbance_warning(shown(tmp_path, sampled(disturbed=10)))
    assert disturbance_warning(shown(tmp_path, sampled(disturbed=1))) is None


def test_the_table_says_how_each_latency_was_sampled(tmp_path):
    table = sampling_table(shown(tmp_path, sampled(0.01, disturbed=3, drift=0.002)).entries)
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["latency"], row["95 %"], row["stopped by"]) == ("bound", "±1.0 %", "precision")
    assert (row["stationary"], row["disturbed"], row["drift"]) == ("2 of 3", "3 of 20", "+0.2 %")
    assert len(table.rows) == 2


def test_parts_compare_as_ratios_to_their_anchor(tmp_path):
    one, other = sampled(), sampled().model_copy(update={"trial": "another"})
    bound = one.latency("bound")
    assert bound is not None
    parted = [
        record.model_copy(
            update={"common_trial": CommonTrial(trial="the-anchor", group=group, groups=2, bound=bound.median / factor)}
        )
        for record, group, factor in ((one, 0, 2), (other, 1, 4))
    ]
    table = groups_table(shown(tmp_path, *parted).entries)
    assert [row[-1] for row in table.rows] == ["2.00×", "4.00×"]
    assert "the-anchor" in table.note
    assert groups_table(shown(tmp_path, one).entries).rows == ()
