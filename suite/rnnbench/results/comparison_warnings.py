"""Reasons to distrust a comparison of two runs: what differs between them beside the programs, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rnnbench.results.identity import VECTORS, differences, earlier_fingerprint, machine_differences
from rnnbench.results.record import Record
from rnnbench.results.run import Run
from rnnbench.results.thresholds import threshold_differences
from rnnbench.results.timing import MANY_DISTURBED, Latency, disturbed_share
from rnnbench.results.versions import by_package
from rnnbench.spelling import count

Pair = tuple[Record, Record]
"""A trial's record in the base run and in the new one."""


def machines_of(run: Run) -> set[str]:
    """Fingerprints of the machines that made a run: of merged shards there may be several."""
    return {part.machine for part in run.parts}


def is_one_machine(base: Run, new: Run) -> bool:
    """Whether both runs have one machine. One described before `identity.SINCE` is known by what it has."""
    if base.machine == new.machine:
        return True
    if VECTORS in base.info.machine and VECTORS in new.info.machine:
        return False
    return earlier_fingerprint(base.info.machine) == earlier_fingerprint(new.info.machine)


def is_one_setting(a: Latency, b: Latency) -> bool:
    """Whether calls began equally often: paced latencies of two periods do not compare."""
    return a.figures.get("period") == b.figures.get("period")


def machine_warnings(*, two_machines: bool, moved: int) -> Iterator[str]:
    """The first sentence of a comparison of two machines. `moved`: trials that another machine ran in the new run."""
    if moved:
        yield (
            f"{count(moved, 'trial')} ran on two machines in the two runs: latencies, builds and memory are not "
            "compared there; --across-machines compares them, and marks every result"
        )
    if two_machines:
        yield (
            "the runs come from two machines: every result compares the machines as well as the programs, and none is "
            "a regression of a compiler"
        )


def on_two_devices(old: Record, young: Record) -> bool:
    """Whether one machine ran a trial on two devices of a kind, as on two GPUs of which CUDA_VISIBLE_DEVICES names one.

    No, where one of them is not known.
    """
    return bool(old.device_model and young.device_model) and old.device_model != young.device_model


def device_warnings(pairs: Sequence[Pair], *, are_compared: bool) -> Iterator[str]:
    """A sentence where trials ran on another device in each run."""
    if pairs:
        old, young = pairs[0]
        told = (
            "every result compares the devices too" if are_compared else "latencies, builds and memory are not compared"
        )
        yield (
            f"{count(len(pairs), 'trial')} ran on two devices in the two runs, the first on {old.device_model} and on "
            f"{young.device_model}: {told} there"
        )


def difference_warnings(base: Run, new: Run, pairs: Sequence[Pair]) -> Iterator[str]:
    """In what the runs differ, and then the trials that both have."""
    if not pairs:
        yield "the runs have no trial in common: nothing was compared"
    yield from _differences_of_runs(base, new)
    yield from threshold_differences(base.info, new.info, sorted({record.case for _, record in pairs}))
    if periods := sum(_differ_in_period(a, b) for a, b in pairs):
        yield f"the period differs in {count(periods, 'trial')}, whose paced latencies are not compared"
    yield from _differences_of_nodes(base, new, pairs)
    yield from _differences_of_trials(base, new, pairs)


def disturbance_warnings(run: Run, latencies: Sequence[Latency]) -> Iterator[str]:
    """A sentence where many blocks of these latencies of the run were disturbed while they were sampled."""
    share = disturbed_share(latencies)
    if share is not None and share >= MANY_DISTURBED:
        yield (
            f"other processes, or the machine's host, disturbed {100 * share:.0f} % of the compared blocks of "
            f"{run.name}: small differences may be theirs"
        )


def _differences_of_runs(base: Run, new: Run) -> Iterator[str]:
    for what, found in (
        ("machines", machine_differences(_machine(base), _machine(new))),
        ("versions", differences(_versions(base), _versions(new))),
    ):
        unlike = [f"{key}: {a} in {base.name}, {b} in {new.name}" for key, a, b in found]
        if unlike:
            yield f"{what} differ in {'; '.join(unlike)}"
    if base.info.rnnbench != new.info.rnnbench:
        yield f"rnnbench differs: {base.info.rnnbench} in {base.name}, {new.info.rnnbench} in {new.name}"


def _versions(run: Run) -> dict[str, dict[str, str]]:
    return {backend: by_package(versions) for backend, versions in run.info.versions.items()}


def _machine(run: Run) -> Mapping[str, Any]:
    """The machine of a run; of shards of several machines, their fingerprints."""
    machines = sorted(machines_of(run))
    return run.info.machine if len(machines) == 1 else {"fingerprints": ", ".join(machines)}


def _differences_of_nodes(base: Run, new: Run, pairs: Sequence[Pair]) -> Iterator[str]:
    elsewhere = [(a.node, b.node) for a, b in pairs if a.node != b.node]
    if elsewhere:
        a, b = (node or "the run's own machine" for node in elsewhere[0])
        yield (
            f"other nodes measured {count(len(elsewhere), 'trial')}, the first of them {a} in {base.name}, {b} in "
            f"{new.name}: nodes of one kind differ too"
        )


def _differences_of_trials(base: Run, new: Run, pairs: Sequence[Pair]) -> Iterator[str]:
    environments = [(a.environment, b.environment) for a, b in pairs]
    for what, settings in (
        ("threads seen", [(a.threads_seen, b.threads_seen) for a, b in environments]),
        ("usable cores", [(len(a.affinity) or None, len(b.affinity) or None) for a, b in environments]),
        ("environment variables", [(a.variables, b.variables) for a, b in environments]),
        ("drivers of the device", [(_driver_of(a), _driver_of(b)) for a, b in pairs]),
        ("origins of programs", [(_origin_of(a), _origin_of(b)) for a, b in pairs]),
        ("kinds of arithmetic", [(_math_of(a), _math_of(b)) for a, b in pairs]),
    ):
        unlike = [(a, b) for a, b in settings if a != b and a is not None and b is not None]
        if unlike:
            a, b = unlike[0]
            where = f"{count(len(unlike), 'trial')}, in the first of them {a} in {base.name}, {b} in {new.name}"
            yield f"{what} differ in {where}"


def _driver_of(record: Record) -> str | None:
    return (record.device.driver or None) if record.device else None


def _origin_of(record: Record) -> str | None:
    return record.artifact.origin if record.artifact else None


def _math_of(record: Record) -> str | None:
    return record.artifact.math if record.artifact else None


def _differ_in_period(a: Record, b: Record) -> bool:
    old, young = a.latency("paced"), b.latency("paced")
    return old is not None and young is not None and not is_one_setting(old, young)
