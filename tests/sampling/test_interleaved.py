"""Sampling with real workers and NumPy: every latency path that a case asks for, in groups where memory is short."""

from __future__ import annotations

import random
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from harness_trials import make_trial, run_trials

from rnnbench.cases import Measure
from rnnbench.measure import Block
from rnnbench.measure.metrics import METRICS
from rnnbench.measure.paths import PATHS
from rnnbench.plan import examine
from rnnbench.results.samples import SAMPLE_COLUMNS, read_samples
from rnnbench.sampling import TrialSampling, dispatch_floor, groups, interleaved
from rnnbench.sampling.dispatch_floor import DispatchFloor
from rnnbench.sampling.interleaved import InterleavedSampling, ProcessSet, common_trial_figure
from rnnbench.stages import Built, Checked, Examined, Failure, PathSamples, Sampled

pytestmark = pytest.mark.usefixtures("few_checks")

SEED = 1
"""Draws another order for the first round of the second process than for that of the first one. On a machine that is
very busy, a process has no further round."""


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """One trial of a batch, with every latency."""
    measure = Measure(budget=1.2, processes=2, precision=0.5, settings={"cold": 1.0, "period": 0.005})
    trial = replace(make_trial("numpy:eager", measure=measure), batch=2)
    run, records = run_trials([trial], tmp_path_factory.mktemp("results"), SEED)
    return run, records[trial.id]


def test_every_declared_path_is_there(everything):
    _, record = everything
    assert record.timing.latency.keys() == PATHS.keys()


def assert_in(interval, seconds):
    """Medians that agree leave a point, whose two sides are rounded."""
    low, high = interval
    assert low <= seconds * (1 + 1e-9)
    assert seconds <= high * (1 + 1e-9)


def test_every_latency_has_its_figures_and_its_interval(everything):
    _, record = everything
    assert record.outcome == "ok", record.reason
    for latency in record.timing.latency.values():
        assert 0 < latency.min <= latency.median <= latency.max
        assert_in(latency.interval, np.exp(np.log(latency.process_medians).mean()))
        assert latency.sampling.stopped_by in ("precision", "budget")
        assert 2 <= len(latency.process_medians) <= 4
        assert latency.sampling.blocks >= 2
        assert (
            latency.sampling.disturbed_blocks is None
            or 0 <= latency.sampling.disturbed_blocks <= latency.sampling.blocks
        )
        assert latency.figures["steps_per_s"] == pytest.approx(2 * 4 / latency.median)


def test_a_warm_up_is_recorded_where_there_is_one(everything):
    _, record = everything
    timing = record.timing
    for latency in (timing.latency["bound"], timing.latency["public"]):
        assert latency.sampling.warmup.calls > 0
        assert 0 <= latency.sampling.warmup.stationary <= len(latency.process_medians)
    assert timing.latency["cold"].sampling.warmup is None
    assert timing.latency["paced"].sampling.warmup is None


def test_a_paced_stream_has_its_period_and_its_real_time_factor(everything):
    _, record = everything
    paced = record.latency("paced")
    assert paced.figures["period"] == 0.005
    assert paced.figures["real_time_factor"] == pytest.approx(paced.median / 0.005)
    assert 0 <= paced.figures["deadline_misses"] <= paced.count


def test_every_path_has_its_file_of_samples(everything):
    run, record = everything
    for path in PATHS:
        rows = read_samples(run, record.trial, path)
        assert rows.shape == (record.latency(path).kept, len(SAMPLE_COLUMNS))
        assert np.all(np.diff(rows[:, SAMPLE_COLUMNS.index("end")]) >= 0)


def test_the_cores_are_those_that_were_asked_for(everything):
    _, record = everything
    assert record.environment.affinity == record.environment.affinity_requested
    assert len(record.environment.affinity_requested) == 1


def test_a_call_of_the_smallest_program_is_sampled_beside_the_trial(everything):
    _, record = everything
    floor = record.timing.dispatch_floor
    assert floor.unmeasured == ""
    assert floor.strategy == "looped-stitched"
    assert floor.count > 0
    assert 0 < floor.seconds < record.latency("bound").max
    assert_in(floor.interval, floor.seconds)


def test_a_state_s_round_trip_is_a_figure_of_its_own(everything):
    _, record = everything
    copy = record.timing.state_copy
    assert copy.seconds > 0
    assert_in(copy.interval, copy.seconds)


def test_the_smallest_program_is_built_before_anything_is_loaded(tmp_path):
    trial = make_trial()
    _, records = run_trials([trial], tmp_path)
    assert records[trial.id].timing.dispatch_floor.unmeasured == ""


@pytest.mark.proof
def test_where_a_backend_has_no_smallest_program_the_record_says_why(monkeypatch, tmp_path):
    monkeypatch.setattr(dispatch_floor, "TIMES", ("fused",))
    trial = make_trial("numpy:eager", measure=Measure(budget=0.1, processes=1))
    _, records = run_trials([trial], tmp_path)
    floor = records[trial.id].timing.dispatch_floor
    assert floor.seconds is None
    assert floor.unmeasured == "NumPy has no RNN operator."


@pytest.mark.parametrize("blocks", [(), ((1e-6,), ()), ((), (1e-6,))])
def test_a_smallest_program_without_a_block_in_some_process_is_no_floor(blocks):
    """Nor is the median of the others: the trial was in all of these processes."""
    examined = examine(make_trial("numpy:eager"))
    floor = DispatchFloor([examined])
    (smallest,) = floor.for_trials([TrialSampling(examined)])
    smallest.paths["bound"] = SimpleNamespace(samples=lambda: SimpleNamespace(processes=blocks))
    assert floor.samples_of(examined).unmeasured == "sampling ended before it had a block"


def test_trials_of_another_state_have_a_smallest_program_of_their_own():
    group = [examine(make_trial(state=state)) for state in ("stitched", "stateful")]
    floor = DispatchFloor(group)
    assert [str(one.trial.strategy) for one in floor.for_trials([TrialSampling(one) for one in group])] == [
        "unrolled-stitched",
        "unrolled-stateful",
    ]


def test_a_smallest_program_that_needs_another_environment_is_no_floor(monkeypatch):
    monkeypatch.setattr(dispatch_floor, "worker_key", lambda examined: examined.trial.model)
    examined = examine(make_trial())
    assert DispatchFloor([examined]).samples_of(examined).unmeasured == (
        "a counter needs another environment than this trial"
    )


@pytest.mark.parametrize(("outcome", "bound"), [("nonconforming", 1e-3), ("crashed", None)])
def test_a_common_trial_that_died_has_no_figure(outcome, bound):
    """Of half of its processes there is none that compares with those of other groups."""
    paths = {"bound": PathSamples(((Block(0.0, 0, np.full(3, 1e-3)),),))}
    checked = Checked(Built(examine(make_trial())))
    common = common_trial_figure(Sampled(checked, paths, failure=Failure("sample", outcome, "why")), 1, 2)
    assert (common.group, common.groups, common.bound) == (1, 2, bound)


def test_a_trial_that_fails_while_the_next_set_is_prepared_is_left_out_of_it():
    """It would have a process without a block."""
    failed, other = (TrialSampling(examine(make_trial(chunk=chunk))) for chunk in (2, 4))
    failed.failure = Failure("sample", "nonconforming", "its timed calls were wrong")

    class Worker:
        def __init__(self, *trials):
            self.trials = list(trials)

        def keep(self, trials):
            self.trials = [one for one in self.trials if one in trials]

    both, alone = Worker(failed, other), Worker(failed)
    prepared = ProcessSet(1, [failed, other], [both, alone], None, random.Random(0))
    prepared.leave_out_failed()
    assert (prepared.samplings, prepared.workers, both.trials) == ([other], [both], [other])


def test_each_round_has_an_order_of_its_own():
    """Or a drift of the machine would be one trial's more than another's."""
    samplings = [TrialSampling(examine(make_trial(chunk=chunk))) for chunk in (1, 2, 3)]
    prepared = ProcessSet(0, samplings, [SimpleNamespace(trials=samplings)], None, random.Random(0))
    rounds = [[turn.sampling for turn in prepared.turns()] for _ in range(30)]
    for place in range(3):
        assert {id(order[place]) for order in rounds} == {id(sampling) for sampling in samplings}


@pytest.mark.parametrize(("other", "is_same"), [(SEED, True), (SEED + 1, False)])
def test_the_seed_of_a_run_decides_its_orders(monkeypatch, other, is_same):
    monkeypatch.setattr(interleaved, "memory_of", lambda _: 0)
    monkeypatch.setattr(interleaved, "RoofWorker", lambda *_: SimpleNamespace(ready=lambda: None, close=lambda: None))
    trials = [Checked(Built(examine(make_trial(chunk=chunk)))) for chunk in range(1, 9)]
    started = SimpleNamespace(take=lambda *_: [])

    def orders(seed):
        sampling = InterleavedSampling(trials, None, seed)
        return [
            [one.trial.strategy.chunk for one in sampling._prepared(number, started, ExitStack()).samplings]
            for number in range(2)
        ]

    first, second = orders(SEED)
    assert first != second, "each process has another one"
    assert (orders(other) == [first, second]) is is_same


def test_no_more_processes_are_started_ahead_than_the_trial_with_the_fewest_needs(monkeypatch):
    class Begun(Exception):
        pass

    def begin(at_once, certain):
        raise Begun(certain)

    monkeypatch.setattr(interleaved, "memory_of", lambda _: 0)
    monkeypatch.setattr(interleaved, "StartedAhead", begin)
    trials = [
        Checked(Built(examine(make_trial(chunk=chunk, measure=Measure(processes=processes)))))
        for chunk, processes in ((1, 5), (2, 3), (4, 4))
    ]
    with pytest.raises(Begun, match="3"):
        InterleavedSampling(trials, None, SEED).sample()


def test_without_a_state_no_copy_of_one_is_timed(tmp_path):
    trial = make_trial("numpy:eager", state="none", measure=Measure(budget=0.1, processes=1))
    _, records = run_trials([trial], tmp_path)
    assert records[trial.id].outcome == "ok"
    assert records[trial.id].timing.state_copy is None


def test_on_a_software_device_there_is_no_floor(monkeypatch):
    examined = examine(make_trial())
    monkeypatch.setattr(Examined, "on_software_device", True)
    floor = DispatchFloor([examined])
    assert floor.for_trials([TrialSampling(examined)]) == []
    assert floor.samples_of(examined).unmeasured == "a software device has no dispatch floor"


def test_the_smallest_program_has_few_blocks_of_a_process():
    examined = examine(make_trial())
    floor = DispatchFloor([examined])
    (smallest,) = floor.for_trials([TrialSampling(examined)])

    class Worker:
        trials = (smallest,)

        def warm_up(self, sampling, blocks, warmup):
            warmup.windows.append(Block(0.0, 0, np.full(3, 1e-3)))

        def sample(self, sampling, blocks, plan):
            return Block(0.0, 0, np.full(3, 1e-3))

    for _ in range(2):
        floor.warm_up([Worker()])
        for _ in range(20):
            floor.sample([Worker()])
    (first, second) = floor.samples_of(examined).processes
    assert len(first) == len(second) == dispatch_floor.BLOCKS


def test_growth_rests_on_the_calls_that_were_sampled(everything):
    _, record = everything
    memory, timing = record.memory, record.timing
    assert memory.growth_calls > timing.latency["bound"].count
    assert memory.public_growth_calls > timing.latency["public"].count


def test_every_metric_is_in_the_record(everything):
    _, record = everything
    assert record.metrics.keys() == {name for name, metric in METRICS.items() if metric.when}
    assert record.metrics["open_files"] > 0
    assert record.metrics["child_processes"] == 0


@pytest.mark.proof
def test_groups_share_a_common_trial_that_is_sampled_in_each(monkeypatch, tmp_path):
    monkeypatch.setattr(groups, "MEMORY_SHARE", 0.0)
    measure = Measure(budget=0.1, processes=1)
    trials = [make_trial("numpy:eager", chunk=chunk, measure=measure) for chunk in (1, 2, 4)]
    _, records = run_trials(trials, tmp_path)
    commons = [records[trial.id].common_trial for trial in trials]
    assert [common.group for common in commons] == [0, 0, 1]
    assert {common.trial for common in commons} == {trials[0].id}
    assert all(common.bound > 0 for common in commons)
    assert commons[0].bound == records[trials[0].id].latency("bound").median
    for trial in trials:
        assert len(records[trial.id].latency("bound").process_medians) == 1, "as the case asks"


@pytest.mark.proof
def test_processes_that_import_side_by_side_are_sampled_one_after_the_other(monkeypatch, tmp_path):
    monkeypatch.setattr(InterleavedSampling, "_sets_at_once", lambda _: 2)
    measure = Measure(budget=0.1, processes=2)
    trials = [make_trial("numpy:eager", chunk=chunk, measure=measure) for chunk in (1, 2)]
    run, records = run_trials(trials, tmp_path)
    process, end = (SAMPLE_COLUMNS.index(name) for name in ("process", "end"))
    ends: dict[float, list[float]] = {}
    for trial in trials:
        assert len(records[trial.id].latency("bound").process_medians) >= 2
        for row in read_samples(run, trial.id, "bound"):
            ends.setdefault(row[process], []).append(row[end])
    assert max(ends[0]) < min(ends[1])
    assert all(records[trial.id].floor.looks for trial in trials), "the roof was measured beside each"


def test_no_path_always_comes_first(everything):
    run, record = everything
    process, block, end = (SAMPLE_COLUMNS.index(name) for name in ("process", "block", "end"))
    begun = {
        path: {(row[process], row[block]): row[end] for row in read_samples(run, record.trial, path)[::-1]}
        for path in ("bound", "public")
    }
    rounds = begun["bound"].keys() & begun["public"].keys()
    assert {begun["bound"][one] < begun["public"][one] for one in rounds} == {True, False}
