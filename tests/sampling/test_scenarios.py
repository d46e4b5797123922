"""The scenarios with a real worker and NumPy: what a record says of streams that are held and of requests at random."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from harness_trials import make_trial, run_trials

from rnnbench.cases import Measure
from rnnbench.measure.serving import REQUESTS
from rnnbench.measure.stream_search import FRAMES, QUICK_FRAMES, Attempt, most_missed
from rnnbench.results.rows import row
from rnnbench.results.store import read_run
from rnnbench.sampling.scenarios import stream_search
from rnnbench.stages import StreamProcess

pytestmark = pytest.mark.usefixtures("few_checks")


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory):
    """A trial whose state is carried, and one whose calls are whole sequences."""
    measure = Measure(budget=0.1, processes=1, precision=0.5, settings={"streams": 5e-4, "server": 4_000.0})
    stateful = make_trial("numpy:eager", measure=measure)
    whole = replace(stateful, strategy=replace(stateful.strategy, state="none"))
    run, records = run_trials([stateful, whole], tmp_path_factory.mktemp("results"))
    assert {record.outcome for record in records.values()} == {"ok"}
    return run, records[stateful.id], records[whole.id]


def test_the_streams_that_are_held_rest_on_full_tests(scenarios):
    _, record, _ = scenarios
    streams = record.timing.streams
    assert streams.period == pytest.approx(5e-4 * record.params.chunk)
    assert streams.held == streams.held_by_all < streams.failed
    full = {test.streams: test for test in streams.tests if test.p99 is not None or test.missed > most_missed(FRAMES)}
    assert full[streams.failed].missed > most_missed(FRAMES)
    if streams.held:
        assert full[streams.held].missed <= most_missed(FRAMES)
        assert (streams.frames, streams.missed) == (FRAMES, full[streams.held].missed)
        assert streams.p99 == full[streams.held].p99 >= streams.median


@pytest.mark.parametrize(("failed", "second"), [(16, 16), (None, 13)])
def test_a_later_process_is_first_asked_for_what_the_one_before_it_held(failed, second):
    """Then for what that one did not hold."""
    before = [StreamProcess(3, 4, ()), StreamProcess(12, failed, ())]
    search = stream_search(SimpleNamespace(trial=make_trial(measure=Measure(precision=0.25)), streams=before))
    assert search.next() == Attempt(12, FRAMES)
    search.note(Attempt(12, FRAMES), held=True)
    assert search.next() == Attempt(second, FRAMES)


def test_the_first_process_is_first_asked_for_one_stream():
    trial = make_trial(measure=Measure(precision=0.25))
    for before in ([], [StreamProcess(0, 1, ())]):
        assert stream_search(SimpleNamespace(trial=trial, streams=before)).next() == Attempt(1, QUICK_FRAMES)


def test_all_requests_have_a_latency_or_are_counted_as_unserved(scenarios):
    for record in scenarios[1:]:
        server = record.timing.server
        assert server.rate == 4_000
        assert server.requests + server.unserved == REQUESTS
        assert 0 < server.median <= server.p99
        assert 0 < server.utilisation <= 1


def test_a_whole_sequence_is_no_stream(scenarios):
    _, _, whole = scenarios
    assert whole.timing.streams is None


def test_a_row_has_both(scenarios):
    run, record, _ = scenarios
    read = read_run(run)
    columns = row(read.by_trial[record.trial], read.info)
    assert columns["streams_held"] == record.timing.streams.held
    assert columns["streams_period_s"] == record.timing.streams.period
    assert columns["server_utilisation"] == record.timing.server.utilisation
