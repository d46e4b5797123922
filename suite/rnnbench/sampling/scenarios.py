"""The scenarios of a trial. They are measured in each of its processes, after its latencies."""

from __future__ import annotations

from collections.abc import Callable

from rnnbench.measure import REQUESTS, SERVER, STREAMS, StreamSearch, longest_serving, most_missed
from rnnbench.sampling.sampling_worker import SamplingWorker
from rnnbench.sampling.trial_sampling import TrialSampling
from rnnbench.stages import StreamProcess, TestedStreams


def sample_scenarios(worker: SamplingWorker, sampling: TrialSampling, say: Callable[[str], None]) -> None:
    """Measure the scenarios of a trial's case in the worker's process, in the first `measure.processes` processes.

    `say` is called with a description of each step. A scenario that cannot be measured is not tried again.
    """
    most = sampling.trial.measure.processes
    if sampling.has_stream_scenario and STREAMS.name not in sampling.unmeasured and len(sampling.streams) < most:
        _search_streams(worker, sampling, say)
    if sampling.request_rate and SERVER.name not in sampling.unmeasured and len(sampling.served) < most:
        _serve_requests(worker, sampling, say)


def _search_streams(worker: SamplingWorker, sampling: TrialSampling, say: Callable[[str], None]) -> None:
    """Search for the number of real-time streams that this process holds. Keeps nothing if the trial fails."""
    search, tested, opened = stream_search(sampling), list[TestedStreams](), 0
    while (attempt := search.next()) is not None:
        say(f"{attempt.streams} streams")
        if attempt.streams > opened:
            opened = worker.open_streams(sampling, attempt.streams, STREAMS.name)
            if not opened:
                return
            if opened < attempt.streams:
                search.cannot_open(opened)
                continue
        served = worker.serve_frames(sampling, attempt.streams, attempt.frames, sampling.frame_period)
        if served is None:
            return
        tested.append(TestedStreams(attempt.streams, served))
        search.note(attempt, served.missed <= most_missed(attempt.frames))
    if worker.close_streams(sampling, STREAMS.name):
        sampling.streams.append(StreamProcess(search.held, search.failed, tuple(tested)))


def stream_search(sampling: TrialSampling) -> StreamSearch:
    """The search of the next process. It begins at the number that the previous process held."""
    precision = sampling.trial.measure.precision
    last = sampling.streams[-1] if sampling.streams else None
    if last is None or not last.held:
        return StreamSearch(precision)
    return StreamSearch(precision, last.held, (last.failed or last.held + 1) - last.held)


def _serve_requests(worker: SamplingWorker, sampling: TrialSampling, say: Callable[[str], None]) -> None:
    """Serve random requests with one stream. All programs get the same arrivals; each process gets different ones."""
    say(f"{REQUESTS} requests")
    if not worker.open_streams(sampling, 1, SERVER.name):
        return
    rate, seed = sampling.request_rate, sampling.trial.seed + len(sampling.served)
    served = worker.serve_requests(sampling, rate, REQUESTS, seed, longest_serving(rate))
    if served is not None and worker.close_streams(sampling, SERVER.name):
        sampling.served.append(served)
