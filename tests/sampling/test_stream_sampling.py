"""The search for streams, process after process, in a worker that is a fake: it holds what the test says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness_trials import make_trial

from rnnbench.cases import Measure
from rnnbench.measure.serving import Served
from rnnbench.measure.stream_search import FRAMES, most_missed
from rnnbench.pipeline.scenarios import server_figures, streams_figures
from rnnbench.plan import examine
from rnnbench.sampling.scenarios import sample_scenarios
from rnnbench.sampling.trial_sampling import TrialSampling
from rnnbench.stages import ServerSamples, StreamSamples

PERIOD = 0.010


class FakeWorker:
    """A process that holds `limit` streams and can open `most`. A frame takes 0.1 ms for each stream."""

    def __init__(self, limit: int, most: int = 10_000) -> None:
        self.limit, self.most, self.closed = limit, most, 0

    def open_streams(self, sampling, streams, scenario):
        return min(streams, self.most)

    def serve_frames(self, sampling, streams, frames, period):
        missed = 0 if streams <= self.limit else most_missed(frames) + 1
        done = missed or frames
        return Served(0.0, np.full(done, streams * 1e-4), frames, missed, 0.1, 1.0)

    def serve_requests(self, sampling, rate, requests, seed, longest):
        return Served(0.0, np.array([1e-3, 3e-3]), requests, 0, 0.25, 1.0)

    def close_streams(self, sampling, scenario):
        self.closed += 1
        return True


def sampled(limits: list[int], most: int = 10_000, precision: float = 0.01) -> TrialSampling:
    measure = Measure(processes=len(limits), precision=precision, settings={"streams": PERIOD, "server": 200.0})
    sampling = TrialSampling(examine(make_trial(measure=measure, chunk=1)))
    for limit in (*limits, 1):  # The case asks for no process after these.
        sample_scenarios(FakeWorker(limit, most), sampling, lambda doing: None)
    return sampling


def test_each_process_has_its_own_search_and_the_median_counts():
    sampling = sampled([40, 43, 38])
    assert [process.held for process in sampling.streams] == [40, 43, 38]
    figures = streams_figures(StreamSamples(PERIOD, tuple(sampling.streams)))
    assert (figures.held, figures.held_by_all, figures.failed) == (40, 38, 44)
    assert (figures.frames, figures.missed) == (3 * FRAMES, 0)
    assert figures.median == pytest.approx(40e-4)
    assert figures.p99 == pytest.approx(43e-4)
    assert {test.process for test in figures.tests} == {0, 1, 2}


def test_where_one_stream_is_too_many_there_is_no_p99():
    figures = streams_figures(StreamSamples(PERIOD, tuple(sampled([0, 0]).streams)))
    assert (figures.held, figures.failed, figures.p99) == (0, 1, None)


def test_where_no_more_can_be_opened_there_is_no_upper_bound():
    figures = streams_figures(StreamSamples(PERIOD, tuple(sampled([500, 500], most=100).streams)))
    assert (figures.held, figures.held_by_all, figures.failed) == (100, 100, None)


def test_requests_that_were_not_served_are_counted():
    figures = server_figures(ServerSamples(200.0, tuple(sampled([1, 1]).served)))
    assert (figures.requests, figures.unserved, figures.utilisation) == (4, 2 * 400 - 4, 0.25)
    assert figures.median == pytest.approx(2e-3)


def test_a_call_of_several_steps_is_due_less_often():
    trial = make_trial(measure=Measure(settings={"streams": PERIOD}), chunk=4)
    assert TrialSampling(examine(trial)).frame_period == pytest.approx(4 * PERIOD)
    whole = replace(trial, strategy=replace(trial.strategy, state="none"))
    assert not TrialSampling(examine(whole)).has_stream_scenario


def test_each_process_has_arrivals_of_its_own_and_all_programs_the_same():
    """As many processes as the case says."""
    asked = []

    class Served(FakeWorker):
        def serve_requests(self, sampling, rate, requests, seed, longest):
            asked.append((seed, rate, requests, longest))
            return super().serve_requests(sampling, rate, requests, seed, longest)

    measure = Measure(processes=2, settings={"server": 200.0})
    for target in ("fake:honest", "numpy:eager"):
        sampling = TrialSampling(examine(make_trial(target, measure=measure)))
        for _ in range(3):
            sample_scenarios(Served(1), sampling, lambda doing: None)
    assert [seed for seed, *_ in asked] == [0, 1, 0, 1]
    assert {tuple(others) for _, *others in asked} == {(200.0, 400, 6.0)}


@pytest.mark.parametrize("settings", [{"streams": PERIOD}, {"server": 200.0}])
def test_streams_are_closed_once_and_a_process_that_fails_keeps_nothing(settings):
    """Closing them is the check of what their calls led to."""

    class OpensNone(FakeWorker):
        def open_streams(self, sampling, streams, scenario):
            return 0

    class ServesNothing(FakeWorker):
        def serve_frames(self, *_):
            return None

        def serve_requests(self, *_):
            return None

    measure = Measure(processes=1, settings=settings)
    sampling = TrialSampling(examine(make_trial(measure=measure, chunk=1)))
    for failing in (OpensNone(4), ServesNothing(4)):
        sample_scenarios(failing, sampling, lambda doing: None)
        assert (sampling.streams, sampling.served, failing.closed) == ([], [], 0)
    sound = FakeWorker(4)
    sample_scenarios(sound, sampling, lambda doing: None)
    assert sound.closed == len(sampling.streams) + len(sampling.served) == 1


def test_a_test_counts_as_held_with_as_many_misses_as_are_allowed():
    """And its frames come a period apart."""
    periods = set()

    class AlmostLate(FakeWorker):
        def serve_frames(self, sampling, streams, frames, period):
            periods.add(period)
            missed = most_missed(frames) if streams <= self.limit else most_missed(frames) + 1
            return Served(0.0, np.full(frames, streams * 1e-4), frames, missed, 0.1, 1.0)

    sampling = TrialSampling(examine(make_trial(measure=Measure(processes=1, settings={"streams": PERIOD}), chunk=2)))
    sample_scenarios(AlmostLate(6), sampling, lambda doing: None)
    assert [(process.held, process.failed) for process in sampling.streams] == [(6, 7)]
    assert periods == {2 * PERIOD}
