"""Merged shards as one run: each trial once, of the shard that it belongs to, with that shard's machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

from rnnbench.results.identity import INTERPRETER, fingerprint
from rnnbench.results.reading import StoreError
from rnnbench.results.record import Record
from rnnbench.results.run import Run
from rnnbench.results.run_info import RunInfo
from rnnbench.results.shards import MergedInfo, WholePlan, read_whole_plan
from rnnbench.results.versions import by_package
from rnnbench.spelling import count, listed

AND = " and "
"""Between two versions of one package, where shards have different ones."""
NAMED_TRIALS = 3
"""Trials that a sentence about missing ones names."""
MachineKey = tuple[str, str]


def read_merged(
    path: Path, info: RunInfo, warnings: tuple[str, ...], merged: MergedInfo, read: Callable[[Path], Run]
) -> Run:
    """Merged shards as one run. `read` reads the run of a shard. Raises StoreError where a file cannot be read."""
    plan, of_copy = read_whole_plan(path, merged)
    shards = [read(merged.folder(path, number)) for number in merged.numbers]
    for number, shard in zip(merged.numbers, shards, strict=True):
        if shard.info.shard != plan.shard(number):
            raise StoreError(f"{shard.path}: is not shard {number}/{merged.of} of the plan; merge the shards again")
    return joined(path, info, shards, plan, (*warnings, *of_copy))


def joined(path: Path, info: RunInfo, shards: Sequence[Run], plan: WholePlan, warnings: Sequence[str] = ()) -> Run:
    """The run that shards make together. Its warnings say what is missing, and how the shards differ."""
    records = [record for shard in shards for record in _own_records(shard, plan)]
    return Run(path, info, tuple(records), (*warnings, *warnings_of(shards, plan)), tuple(shards))


def warnings_of(shards: Sequence[Run], plan: WholePlan) -> Iterator[str]:
    """What was left out in reading the shards, what is missing, and in what they differ. A sentence each."""
    yield from (warning for shard in shards for warning in shard.warnings)
    yield from missing_sentences(shards, plan)
    yield from difference_sentences(shards)


def merged_info(name: str, shards: Sequence[Run], plan: WholePlan) -> RunInfo:
    """The `run.json` of a run that has these shards, in their order."""
    infos = [shard.info for shard in shards]
    seconds: Counter[str] = Counter()
    for info in infos:
        seconds.update(info.seconds)
    return RunInfo(
        run=name,
        started=min(info.started for info in infos),
        finished=max((info.finished for info in infos if info.finished), default=None),
        rnnbench=AND.join(sorted({info.rnnbench for info in infos})),
        command=("rnnbench", "merge", *(info.run for info in infos)),
        cases=tuple(sorted({case for info in infos for case in info.cases})),
        case_files=tuple(dict.fromkeys(file for info in infos for file in info.case_files)),
        seed=infos[0].seed,
        machine=_machine(infos),
        versions=_versions(infos),
        seconds=dict(seconds),
        thresholds={case: limits for info in infos for case, limits in info.thresholds.items()},
        merged=MergedInfo(
            plan=plan.digest, of=len(plan.shards), numbers=tuple(info.shard.number for info in infos if info.shard)
        ),
    )


def machine_key(info: RunInfo) -> MachineKey:
    """Fingerprint and interpreter: latencies of runs with the same ones stand in one ranking."""
    return fingerprint(info.machine), str(info.machine.get(INTERPRETER, ""))


def split_by_machine(run: Run) -> tuple[Run, ...]:
    """A run for each machine of a merged run, with the shards of that machine. Any other run is its own."""
    by_machine: dict[MachineKey, list[Run]] = {}
    for part in run.parts:
        by_machine.setdefault(machine_key(part.info), []).append(part)
    if len(by_machine) == 1:
        return (run,)
    return tuple(_of_shards(run, shards) for shards in by_machine.values())


def missing_sentences(shards: Sequence[Run], plan: WholePlan) -> Iterator[str]:
    """What the plan has and the shards do not, a sentence for each shard."""
    by_number = {shard.info.shard.number: shard for shard in shards if shard.info.shard}
    total = len(plan.shards)
    for number, own in enumerate(plan.shards, start=1):
        if not own:
            continue
        if (shard := by_number.get(number)) is None:
            yield f"shard {number}/{total} is missing: {_named(own)}; run it with --shard {number}/{total}"
        elif lacking := sorted(plan.expected(number) - shard.by_trial.keys()):
            resume = f"continue it with: rnnbench run --resume {quote(shard.info.run)}"
            how = f"check it again with --shard {number}/{total}" if shard.info.case_files else resume
            yield f"shard {number}/{total} lacks {_named(lacking)}; {how}"


def difference_sentences(shards: Sequence[Run]) -> Iterator[str]:
    """In what the shards differ: machines, interpreters, versions. A sentence each."""
    if len({fingerprint(shard.info.machine) for shard in shards}) > 1:
        yield "the shards come from different machines: latencies of two machines are not ranked or compared"
    for what, texts in _varying(shards):
        by_text: dict[str, list[str]] = {}
        for shard, text in zip(shards, texts, strict=True):
            by_text.setdefault(text, []).append(str(shard.info.shard))
        by_shards = "; ".join(f"{text or 'none'} in {', '.join(names)}" for text, names in by_text.items())
        yield f"the shards have different versions of {what}: {by_shards}"


def _varying(shards: Sequence[Run]) -> Iterator[tuple[str, list[str]]]:
    """What is installed in other versions, with the version of each shard. A backend that a shard lacks is apart."""
    for what, texts in (
        ("Python", [str(shard.info.machine.get(INTERPRETER, "")) for shard in shards]),
        ("rnnbench", [shard.info.rnnbench for shard in shards]),
    ):
        if len(set(texts)) > 1:
            yield what, texts
    for backend in sorted({name for shard in shards for name in shard.info.versions}):
        of_backend = [shard for shard in shards if backend in shard.info.versions]
        versions = [by_package(shard.info.versions[backend]) for shard in of_backend]
        for package in sorted({name for of_shard in versions for name in of_shard}):
            if len({of_shard.get(package, "") for of_shard in versions}) > 1:
                of_shards = [by_package(shard.info.versions.get(backend, {})) for shard in shards]
                yield f"{package} ({backend})", [of_shard.get(package, "") for of_shard in of_shards]


def _own_records(shard: Run, plan: WholePlan) -> Iterator[Record]:
    shard_trials = set(plan.own(shard.info.shard.number)) if shard.info.shard else set()
    return (record for record in shard.records if record.trial in shard_trials)


def _of_shards(run: Run, shards: Sequence[Run]) -> Run:
    """The part of a merged run that these of its shards have."""
    infos = [shard.info for shard in shards]
    info = run.info.model_copy(update={"machine": _machine(infos), "versions": _versions(infos)})
    records = tuple(record for record in run.records if any(run.part_of(record) is shard for shard in shards))
    return replace(run, info=info, records=records, shards=tuple(shards))


def _machine(infos: Sequence[RunInfo]) -> dict[str, Any]:
    """The machine of all; where there are several, a description that is no machine's."""
    if len({machine_key(info) for info in infos}) == 1:
        return infos[0].machine
    return {"machines": sorted({fingerprint(info.machine) for info in infos})}


def _versions(infos: Sequence[RunInfo]) -> dict[str, dict[str, str]]:
    versions: dict[str, dict[str, set[str]]] = {}
    for info in infos:
        for backend, packages in info.versions.items():
            for package, version in packages.items():
                versions.setdefault(backend, {}).setdefault(package, set()).add(version)
    return {
        backend: {package: AND.join(sorted(found)) for package, found in packages.items()}
        for backend, packages in versions.items()
    }


def _named(trials: Sequence[str]) -> str:
    return f"{count(len(trials), 'trial')}: {listed(trials, NAMED_TRIALS)}"
