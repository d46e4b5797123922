"""Shards of one plan, merged into one run's folder: each shard's run stays as it is, in a folder of its own.

    run.json         what the shards have in common, and which they are
    shards.json      the whole plan
    shards/2-of-8/   the run of a shard: run.json, records, samples, plan

The folder is made whole beside its place and then renamed, so that a reader never sees half of one.
"""

from __future__ import annotations

import filecmp
import os
import re
import secrets
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from rnnbench.disk import copy_of, exchange, followed, is_json, read_plain, remove_folder, unfinished, write_bytes
from rnnbench.file_copies import copy
from rnnbench.locks import is_free, locked_folder
from rnnbench.results.compressed import COMPRESSED, RECORDS
from rnnbench.results.journal import INFO, TRIALS, unwritable, write_info
from rnnbench.results.merged_run import merged_info, missing_sentences, warnings_of
from rnnbench.results.reading import StoreError
from rnnbench.results.records_file import unreadable
from rnnbench.results.run import Run
from rnnbench.results.samples import FOLDER as SAMPLES
from rnnbench.results.samples import other_samples, read_samples, samples_file
from rnnbench.results.shards import PLAN, WholePlan, read_whole_plan, write_whole_plan
from rnnbench.results.store import BEFORE, read_info, read_run, run_name
from rnnbench.spelling import count, first_few

WITH_COPY = (INFO, TRIALS, "expected_failures.json")
"""Files of a shard's run that have a copy. Where one is torn, its copy is merged."""
ENDING = "-merged"
ABANDONED_S = 600.0
"""Seconds after which an unfinished folder is removed, if no process holds its lock. It is locked once it is made."""
_PART = re.compile(r"\..+\.[0-9a-f]{16}\.part")
"""The name of a folder that `write_merged` has not finished."""
MergeOutcome = Literal["merged", "merged again", "already merged"]


@dataclass(frozen=True)
class Merging:
    """Shards that belong together, checked and not written yet."""

    shards: tuple[Run, ...]
    """In the order of their numbers. A shard to which the plan gives no trial is left out."""
    plan: WholePlan
    missing: tuple[str, ...]
    """What the plan has and the shards do not, a sentence each."""
    warnings: tuple[str, ...]
    """What is missing, what was left out in reading, and in what the shards differ."""
    foreign: frozenset[Path] = frozenset()
    """Files of samples that are not those of their record. They are left out, and `warnings` name them."""


@dataclass(frozen=True)
class MergedRun:
    """What was written."""

    run: Run
    what: MergeOutcome


def shard_folders(run: Path) -> tuple[Path, ...]:
    """The folders of the runs that were made at one time on one machine: those of merged shards, or `run` itself.

    Raises StoreError.
    """
    merged = read_info(run)[0].merged
    return (run,) if merged is None else tuple(merged.folder(run, number) for number in merged.numbers)


def merge_shards(runs: Iterable[Path]) -> Merging:
    """Read the shards in these folders and check that they belong together.

    Merged runs count as their shards. Raises StoreError where one is no shard, is of another plan, is there twice, or
    has records of trials that are not its own.
    """
    folders = dict.fromkeys(folder for run in runs for folder in shard_folders(run))
    shards = [_shard(folder) for folder in folders]
    if not shards:
        raise StoreError("no shard was given; name the runs of at least one")
    read = [read_whole_plan(shard.path, shard.info.shard) for shard in shards if shard.info.shard]
    plans = [plan for plan, _ in read]
    first = shards[0]
    for shard, plan in zip(shards, plans, strict=True):
        if plan != plans[0]:
            raise StoreError(_other_plan(first, plans[0], shard, plan))
        _refuse_foreign(shard, plan)
    by_number = _by_number(shards)
    filled = tuple(shard for number, shard in sorted(by_number.items()) if plans[0].own(number))
    if not filled:
        raise StoreError("the shards are all empty; name the runs of those that have trials")
    missing = tuple(missing_sentences(filled, plans[0]))
    foreign = {file: why for shard in filled for file, why in _foreign_samples(shard)}
    of_copies = (sentence for _, sentences in read for sentence in sentences)
    warnings = (*of_copies, *warnings_of(filled, plans[0]), *left_out_warnings(foreign))
    return Merging(filled, plans[0], missing, warnings, frozenset(foreign))


def write_merged(merging: Merging, results: Path, output: Path | None = None) -> MergedRun:
    """Write the run into `output`, or under a name of its own into the folder `results`.

    The same shards always give the same folder with the same content. Raises StoreError where another run is there, or
    another process has put one there meanwhile.
    """
    name = _name(merging)
    place = output or results / name
    folder = followed(place)  # A link to a folder stays one.
    _refuse_another_run(folder, merging)
    part = unfinished(folder, f"{secrets.token_hex(8)}.part")
    try:
        part.mkdir(parents=True)
        _remove_abandoned(folder.parent)
        with locked_folder(part):
            _fill(part, name, merging)
            with locked_folder(folder.parent):
                is_there = _refuse_another_run(folder, merging)
                if is_there and _is_same(part, folder):
                    return MergedRun(read_run(place), "already merged")
                _put(part, folder)
    except OSError as error:
        if any(Path(error.filename or "").is_relative_to(shard.path) for shard in merging.shards):
            raise unreadable(Path(error.filename), error) from error
        raise unwritable(folder, error, "-o") from error
    finally:
        remove_folder(part)
    return MergedRun(read_run(place), "merged again" if is_there else "merged")


def _shard(folder: Path) -> Run:
    run = read_run(folder)
    if run.info.shard is None:
        raise StoreError(f"{folder} is the run of a whole plan, not of a shard; `rnnbench run --shard K/N` makes one")
    return run


def _other_plan(first: Run, plan: WholePlan, other: Run, other_plan: WholePlan) -> str:
    begin = f"{first.path} and {other.path} are shards of different plans: "
    how = " Give each shard the same cases, --backend, --set, --filter and version of rnnbench"
    if len(plan.shards) != len(other_plan.shards):
        return f"{begin}one of {count(len(plan.shards), 'shard')}, and one of {len(other_plan.shards)}.{how}"
    trials, others = ({trial for shard in shared_plan.shards for trial in shard} for shared_plan in (plan, other_plan))
    if only := sorted(trials ^ others):
        where = first.path if only[0] in trials else other.path
        difference = f"only one of them has {count(len(only), 'trial')}, for example {only[0]} in {where}"
        return f"{begin}{difference}.{how}"
    return f"{begin}they have the same trials, with other limits, anchors or ways of sampling.{how}"


def _refuse_foreign(shard: Run, plan: WholePlan) -> None:
    """Raises StoreError where a shard has a record of a trial that it does not run: the record has another origin."""
    assert shard.info.shard is not None, "it was checked"
    expected = plan.expected(shard.info.shard.number)
    if foreign := [trial for trial in shard.by_trial if trial not in expected]:
        raise StoreError(
            f"{shard.path}: has {count(len(foreign), 'record')} of trials that shard {shard.info.shard} does not run, "
            f"for example {foreign[0]}; restore its records"
        )


def _by_number(shards: Sequence[Run]) -> Mapping[int, Run]:
    """Each shard once. If a run is given in two states, the one with more records counts."""
    by_number: dict[int, Run] = {}
    for shard in shards:
        assert shard.info.shard is not None, "it was checked"
        number = shard.info.shard.number
        other = by_number.setdefault(number, shard)
        if _identity(other) != _identity(shard):
            raise StoreError(
                f"shard {shard.info.shard} is there twice, measured at two times: {other.path} and {shard.path}; "
                f"give one of them"
            )
        if _state(shard) > _state(other):
            by_number[number] = shard
    return by_number


def _identity(run: Run) -> tuple[object, ...]:
    return run.info.run, run.info.started, run.info.seed


def _state(run: Run) -> tuple[int, str]:
    """Orders two states of one run: the later one has more trials, or ended later."""
    return len(run.records), run.info.finished or ""


def _name(merging: Merging) -> str:
    """After the cases, at the time of the shard that began last: it comes after its shards in a folder of runs."""
    started = max(shard.info.started for shard in merging.shards)
    cases = sorted({case for shard in merging.shards for case in shard.info.cases})
    try:
        return run_name(cases or ["no_case"], datetime.fromisoformat(started).astimezone(UTC), ENDING)
    except (ValueError, OverflowError) as error:
        raise StoreError(f"{merging.shards[0].path}: '{started}' is no time in ISO 8601; restore run.json") from error


def _refuse_another_run(folder: Path, merging: Merging) -> bool:
    """Whether what was merged of the same plan is in the folder's place. Raises StoreError if something else is."""
    if not os.path.lexists(folder):
        return False
    with suppress(StoreError):
        merged = read_info(folder)[0].merged
        if merged is not None and merged.plan == merging.plan.digest:
            return True
    raise StoreError(f"{folder} is there already, and is not what was merged of these shards; choose another with -o")


def _remove_abandoned(folder: Path) -> None:
    """Remove the unfinished folders of merges that were killed."""
    for part in [folder / name for name in os.listdir(folder) if _PART.fullmatch(name)]:
        with suppress(OSError):
            if time.time() - part.stat().st_mtime > ABANDONED_S and is_free(part):
                remove_folder(part)


def _fill(part: Path, name: str, merging: Merging) -> None:
    """Fill the folder. `run.json` is written last."""
    info = merged_info(name, merging.shards, merging.plan)
    assert info.merged is not None, "it was just made"
    write_whole_plan(part, merging.plan)
    for shard, number in zip(merging.shards, info.merged.numbers, strict=True):
        folder = info.merged.folder(part, number)
        folder.mkdir(parents=True)
        copy(part / PLAN, folder / PLAN)
        for file, content in _kept_files(shard.path, merging.foreign):
            if isinstance(content, bytes):
                write_bytes(folder / file, content)
            else:
                copy(content, folder / file)
    write_info(part, info)


def _kept_files(shard: Path, foreign: Container[Path]) -> Iterator[tuple[Path, Path | bytes]]:
    """The files of a shard's run that are kept, from its folder: where each lies, or its content."""
    for name in WITH_COPY:
        contents = [read_plain(file) for file in (shard / name, copy_of(shard / name)) if _is_plain(file)]
        if contents:
            yield Path(name), next(filter(is_json, contents), contents[0])
    for file in [*(shard / name for name in (RECORDS, COMPRESSED)), *sorted((shard / SAMPLES).glob("*.npy"))]:
        if _is_plain(file) and file not in foreign:
            yield file.relative_to(shard), file


def _foreign_samples(shard: Run) -> Iterator[tuple[Path, str]]:
    """The files of samples that are not those of their record, as of two trials in each other's place, and why."""
    for record in shard.records:
        for path, latency in record.timing.latency.items():
            file = samples_file(shard.path, record.trial, path)
            if not _is_plain(file):
                continue
            try:
                unlike = other_samples(read_samples(shard.path, record.trial, path), latency)
            except StoreError as error:
                yield file, f"{error}; it was left out"
            else:
                if unlike:
                    yield file, f"{file}: does not have the samples of its record: {unlike}; it was left out"


def left_out_warnings(foreign: Mapping[Path, str]) -> tuple[str, ...]:
    """What was left out, and how much more there is."""
    return first_few(
        tuple(foreign.values()), lambda more: f"{count(more, 'more file')} of samples left out in the same way"
    )


def _is_plain(file: Path) -> bool:
    """A link is none: it may lead anywhere."""
    return file.is_file() and not file.is_symlink()


def _is_same(one: Path, other: Path) -> bool:
    """Whether two folders have the same files, byte for byte."""
    names = [sorted(path.relative_to(top) for path in top.rglob("*") if path.is_file()) for top in (one, other)]
    return names[0] == names[1] and all(filecmp.cmp(one / name, other / name, shallow=False) for name in names[0])


def _put(part: Path, folder: Path) -> None:
    """Rename the finished folder to its place. What was there is removed then.

    Where the two cannot be exchanged at once, `Store` finds what was there if this command is killed in between.
    """
    if folder.exists() and exchange(part, folder):
        return
    before = unfinished(folder, f"{secrets.token_hex(8)}{BEFORE}")
    if folder.exists():
        folder.rename(before)
    try:
        part.rename(folder)
    except OSError:
        if before.exists():
            before.rename(folder)
        raise
    remove_folder(before)
