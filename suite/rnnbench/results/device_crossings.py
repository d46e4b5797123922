"""The same model on several devices: which one is faster, and where one overtakes the other, by chunk and by batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby

from rnnbench.results.ranking import judge_bound
from rnnbench.results.views import Entry, Family

LEVEL = "level"
UNDECIDED = "undecided"
FASTEST = "fastest of each"
"""The name of what is compared where each device has its fastest program, hand-written kernels left out."""


@dataclass(frozen=True, order=True)
class OnDevices:
    """What trials must have in common to be compared across devices: all but device, threads, program and chunk."""

    case: str
    model: tuple[tuple[str, str], ...]
    hidden: int
    dtype: str
    steps: int
    node: str
    streams: bool
    """Whether a state is carried. Calls that are whole sequences are compared with each other."""
    lengths: str
    batch: int
    seed: int

    def __str__(self) -> str:
        model = {**dict(self.model), **({"hidden": str(self.hidden)} if self.hidden else {})}
        family = Family(self.case, self.model, self.batch, self.dtype, "", 0, self.steps, self.lengths, self.seed)
        described = family.described(model, on_device=False)
        return described if self.streams else f"{described}, whole sequences"


@dataclass(frozen=True)
class Spell:
    """Values of an axis, one after the other, with the same verdict."""

    faster: str
    """The device, LEVEL or UNDECIDED."""
    first: int
    last: int


@dataclass(frozen=True)
class Crossing:
    """Which of two devices is faster along an axis."""

    program: str
    """Target and strategy, the same on both, or FASTEST."""
    devices: tuple[str, str]
    spells: tuple[Spell, ...]


def device_label(entry: Entry) -> str:
    """`cuda`, or `cpu with 2 threads`."""
    params = entry.record.params
    return params.device if params.threads == 1 else f"{params.device} with {params.threads} threads"


def on_several_devices(entries: Iterable[Entry]) -> dict[OnDevices, list[Entry]]:
    """The ranked entries of each model, batch and dtype that ran on two kinds of devices or more."""
    groups: defaultdict[OnDevices, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.ranked and not entry.shares:
            groups[subject_of(entry)].append(entry)
    several = {key: group for key, group in groups.items() if len({e.record.params.device for e in group}) > 1}
    return dict(sorted(several.items()))


def chunk_crossings(entries: Sequence[Entry]) -> list[Crossing]:
    """Crossings along the chunk, by the bound latency of a step, for the entries of one model and batch."""
    return _crossings(entries, lambda entry: entry.chunk)


def batch_crossings(groups: Mapping[OnDevices, Sequence[Entry]]) -> dict[OnDevices, dict[int, list[Crossing]]]:
    """Along the batch, for each model (with its smallest batch) and chunk; of those with two batches or more."""
    found: dict[OnDevices, dict[int, list[Crossing]]] = {}
    for _, of_model in groupby(groups.items(), key=lambda item: replace(item[0], batch=0)):
        together = list(of_model)
        entries = [entry for _, group in together for entry in group]
        by_chunk = {
            chunk: _crossings([e for e in entries if e.chunk == chunk], lambda entry: entry.record.params.batch)
            for chunk in sorted({entry.chunk for entry in entries})
        }
        if len(together) > 1:
            found[together[0][0]] = {chunk: crossings for chunk, crossings in by_chunk.items() if crossings}
    return found


def _crossings(entries: Sequence[Entry], axis: Callable[[Entry], int]) -> list[Crossing]:
    fastest: defaultdict[str, dict[str, dict[int, Entry]]] = defaultdict(lambda: defaultdict(dict))
    for entry in entries:
        names = [f"{entry.target} {entry.strategy}", *([] if entry.origin == "kernel" else [FASTEST])]
        for name in names:
            _keep_fastest(fastest[name][device_label(entry)], axis(entry), entry)
    return [
        Crossing(name, (a, b), spells)
        for name, by_device in sorted(fastest.items(), key=lambda item: (item[0] != FASTEST, item[0]))
        for a, b in combinations(sorted(by_device), 2)
        if a.split()[0] != b.split()[0] and (spells := _spells(a, by_device[a], b, by_device[b]))
    ]


def _keep_fastest(entries: dict[int, Entry], at: int, entry: Entry) -> None:
    if at not in entries or entry.ranked_bound.per_step < entries[at].ranked_bound.per_step:
        entries[at] = entry


def _spells(a: str, of_a: Mapping[int, Entry], b: str, of_b: Mapping[int, Entry]) -> tuple[Spell, ...]:
    both = sorted(of_a.keys() & of_b.keys())
    faster = [(at, _faster(a, of_a[at], b, of_b[at])) for at in both]
    grouped = ((device, [at for at, _ in group]) for device, group in groupby(faster, key=lambda pair: pair[1]))
    return tuple(Spell(device, values[0], values[-1]) for device, values in grouped)


def _faster(a: str, of_a: Entry, b: str, of_b: Entry) -> str:
    return {"FASTER": a, "SLOWER": b, "SAME": LEVEL, "UNDECIDED": UNDECIDED}[judge_bound(of_a, of_b).verdict]


def subject_of(entry: Entry) -> OnDevices:
    """What is compared over devices: the workload of an entry, without the device."""
    workload, params = entry.workload, entry.record.params
    family = workload.family
    return OnDevices(
        case=family.case,
        model=family.model,
        hidden=workload.hidden,
        dtype=family.dtype,
        steps=family.steps,
        node=workload.node,
        streams=entry.streams,
        lengths=family.lengths,
        batch=params.batch,
        seed=family.seed,
    )
