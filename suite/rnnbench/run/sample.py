"""Sampling trials that are compared: all alive side by side, one at work at a time, in turn and in shuffled order.

The machine's drift then hits all alike. The whole is done over in fresh processes, since layout in memory, which is
drawn anew with each process, moves a latency by itself. One process holds all trials of one backend: their imports
would cost more than their sampling. How long each goes on is for its course to say (`measure.course`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from rnnbench.measure.course import Course
from rnnbench.measure.paths import requested
from rnnbench.run.account import Account
from rnnbench.run.dispatch import DispatchFloor
from rnnbench.run.prepare import Findings, Stage, shared_by
from rnnbench.run.process import Workplace
from rnnbench.run.roof import RoofSeat
from rnnbench.run.seat import Seat, verify

STATE_S = 0.004
"""Seconds of the block, one a process, in which a state's round trip through NumPy is timed."""


def sample(group: list[Findings], workplace: Workplace, account: Account, stage: Stage, seed: int) -> None:
    """Sample every trial of a group, its order drawn from `seed`. All that comes of it is left in the findings."""
    for findings in group:
        findings.courses = {
            path.name: Course(findings.trial.measure, path.name) for path in requested(findings.trial.measure.settings)
        }
        findings.blocks = {path: course.processes for path, course in findings.courses.items()}
        findings.warmups = {path: course.warmups for path, course in findings.courses.items()}
    floor = DispatchFloor(group)
    process = 0
    while trials := [findings for findings in group if findings.failure is None and _unfinished(findings)]:
        shuffled = random.Random(f"{seed}/{process}")
        shuffled.shuffle(trials)
        _sample_process(trials, process, floor, workplace, account, stage, shuffled)
        process += 1


def by_worker(trials: Iterable[Findings]) -> list[list[Findings]]:
    """Trials that may share a worker."""
    shared: dict[object, list[Findings]] = {}
    for findings in trials:
        shared.setdefault(shared_by(findings), []).append(findings)
    return list(shared.values())


def _sample_process(
    trials: Sequence[Findings],
    process: int,
    floor: DispatchFloor,
    workplace: Workplace,
    account: Account,
    stage: Stage,
    shuffled: random.Random,
) -> None:
    """One fresh process of every trial, from its warm-up to the check that follows."""
    doing = f"sample, process {process + 1}"
    with ExitStack() as open_seats:
        together = by_worker([*trials, *floor.beside(trials)])
        seats = [Seat(held, workplace, account, f"sample-{process}.log") for held in together]
        for seat in seats:
            open_seats.callback(seat.close)
            seat.start()
        roof = RoofSeat(trials, workplace, account, f"roof-{process}.log")
        open_seats.callback(roof.close)
        for seat in seats:
            stage(seat.trials[0].trial, doing)
            seat.prepare()
        roof.ready()
        warmups = {
            findings.trial.id: [(course.path, course.begin_process()) for course in _unfinished(findings)]
            for findings in trials
        }
        for seat, findings in _places(seats, shuffled):
            stage(findings.trial, doing)
            for path, warmup in warmups[findings.trial.id]:
                if warmup is not None:
                    seat.warm_up(findings, path, warmup)
            _copy_state(seat, findings)
        floor.warm_up(seats)
        while turns := [place for place in _places(seats, shuffled) if _under_way(place[1])]:
            roof.look()
            floor.look(seats)
            for seat, findings in turns:
                stage(findings.trial, doing)
                for course in _under_way(findings):
                    _take_turn(seat, findings, course)
        for seat in seats:
            for findings in list(seat.trials):
                for course in _unfinished(findings):
                    course.end_process()
                verify(seat, findings)


def _places(seats: Sequence[Seat], shuffled: random.Random) -> list[tuple[Seat, Findings]]:
    """Each trial that is alive, with its seat, in an order drawn anew."""
    places = [(seat, findings) for seat in seats for findings in seat.trials if findings.courses]
    shuffled.shuffle(places)
    return places


def _unfinished(findings: Findings) -> list[Course]:
    """The latencies of a trial that are not sampled to their end."""
    return [course for course in findings.courses.values() if course.stopped_by is None]


def _under_way(findings: Findings) -> list[Course]:
    return [course for course in _unfinished(findings) if not course.process_is_done]


def _copy_state(seat: Seat, findings: Findings) -> None:
    """One block of the state's round trip through NumPy, where a state is carried."""
    if findings.trial.strategy.state != "none":
        block = seat.sample(findings, "state", STATE_S)
        if block is not None:
            findings.copied.append(block)


def _take_turn(seat: Seat, findings: Findings, course: Course) -> None:
    how: dict[str, float] = {}
    if course.period is not None:
        how["period"] = course.period
    elif course.path != "cold":
        how["calls_per_sample"] = course.calls_per_sample
    block = seat.sample(findings, course.path, course.block_s, **how)
    if block is not None:
        course.add(block)
