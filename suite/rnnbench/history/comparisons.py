"""Comparisons of the history: the verdicts of `rnnbench ab`, of versions, and of one environment with itself (A/A).

A file each, `comparisons/<run_id>.json`, named by the run of side b. They are in the table `verdicts`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from rnnbench.content_digest import EditedError, intact
from rnnbench.disk import read_cached, read_plain
from rnnbench.history.entry import ENTRY_TYPES, Entry, fields_of
from rnnbench.history.release_file import FILE as RELEASE_FILE
from rnnbench.history.release_file import Ratio
from rnnbench.results import COMPARED_PATHS, FrozenModel, Run, StoreError, Verdict, read_info, visible
from rnnbench.spelling import count

VERDICTS_FILE = "verdicts.json"
"""The file in the run of side b with the verdicts, and the ratio that every pair of processes showed."""
Finite = Annotated[float, Field(allow_inf_nan=False)]


class LatencyVerdict(FrozenModel):
    """The verdict on one latency of one trial."""

    trial: str
    path: str
    ratio: Ratio
    low: Finite | None
    high: Finite | None
    verdict: Verdict
    pairs: int
    mean_ratio: Ratio | None = None
    """Of the means of the calls, judged as the medians are; None in comparisons of before."""
    mean_low: Finite | None = None
    mean_high: Finite | None = None
    mean_verdict: Verdict | None = None


class ComparisonEntry(Entry):
    """One comparison: the file, and rows of the table `verdicts`. Its run is that of side b."""

    a: str
    """The environment of side a, as it was named."""
    b: str
    same: bool
    """Whether both sides are one environment (A/A): every SLOWER and FASTER is then wrong."""
    verdicts: tuple[LatencyVerdict, ...]


VERDICT_TYPES: Mapping[str, str] = {
    **ENTRY_TYPES,
    "a": "VARCHAR",
    "b": "VARCHAR",
    "same": "BOOLEAN",
    "trial": "VARCHAR",
    "path": "VARCHAR",
    "ratio": "DOUBLE",
    "low": "DOUBLE",
    "high": "DOUBLE",
    "verdict": "VARCHAR",
    "pairs": "BIGINT",
    "mean_ratio": "DOUBLE",
    "mean_low": "DOUBLE",
    "mean_high": "DOUBLE",
    "mean_verdict": "VARCHAR",
}
"""Columns of the table `verdicts` with DuckDB's types. Times are UTC."""


def side_of(folder: Path) -> Literal["a", "b"] | None:
    """The side of a comparison that a run is; None for a night, and for the run of a release (a backfill).

    A comparison that was interrupted has sides and no verdicts. A run of an earlier rnnbench does not say its side.
    Raises StoreError.
    """
    if (folder / RELEASE_FILE).exists():
        return None
    if (folder / VERDICTS_FILE).exists():
        return "b"
    if side := read_info(folder)[0].side:
        return "b" if side == "b" else "a"
    return "a" if folder.name.endswith("-a") and side_b_of(folder) else None


def side_b_of(folder: Path) -> Path | None:
    """The run beside that of side a which has the verdicts of their comparison. None where the comparison was
    interrupted, or side b lies elsewhere. Raises OSError where the disk is broken.
    """
    for file in folder.absolute().parent.glob(f"*-b/{VERDICTS_FILE}"):
        if read_cached(file, lambda path: json.loads(intact(read_plain(path)))["a"]["run"]) == folder.name:
            return folder.parent / file.parent.name
    return None


def verdict_rows(entry: ComparisonEntry) -> Iterator[dict[str, object]]:
    """The rows of a comparison in the table `verdicts`."""
    of_comparison = entry.model_dump(exclude={"schema_version", "verdicts"})
    for verdict in entry.verdicts:
        yield {**of_comparison, **verdict.model_dump()}


def comparison_of(run: Run) -> ComparisonEntry:
    """The comparison whose side b is this run. Raises StoreError where it has none, or a damaged one."""
    file = run.path / VERDICTS_FILE
    try:
        content = json.loads(intact(read_plain(file)))
        a, b = (str(content[side]["environment"]) for side in ("a", "b"))
        verdicts = tuple(
            latency_verdict(entry["trial"], entry["path"], entry, entry.get("mean") or {})
            for entry in content["verdicts"]
            if entry["path"] in COMPARED_PATHS
        )
        is_same = a == b and not content["differences"]
    except FileNotFoundError as error:
        ended_early = "its comparison did not come to its verdicts; compare again"
        what_to_do = ended_early if run.info.side == "b" else "give the run of side b, whose name ends in -b"
        raise StoreError(
            f"{run.path}: is no side b of a comparison: it has no {VERDICTS_FILE}; {what_to_do}"
        ) from error
    except EditedError as error:
        raise StoreError(f"{file}: {error}") from error
    except (OSError, ValidationError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"{file}: is damaged; compare again") from error
    if (of_run := content["b"].get("run", run.info.run)) != run.info.run:
        raise StoreError(visible(f"{file}: is of the run {of_run}, and not of {run.info.run}; compare again"))
    return ComparisonEntry(
        **fields_of(run, run.info.machine),
        a=a,
        b=b,
        same=is_same,
        verdicts=verdicts,
    )


def latency_verdict(trial: str, path: str, judgement: Mapping[str, Any], mean: Mapping[str, Any]) -> LatencyVerdict:
    """From the judgements of the medians and of the means, as VERDICTS_FILE has them. That of before has no means."""
    low, high = judgement["interval"] or (None, None)
    mean_low, mean_high = mean.get("interval") or (None, None)
    return LatencyVerdict(
        trial=trial,
        path=path,
        ratio=judgement["ratio"],
        low=low,
        high=high,
        verdict=judgement["verdict"],
        pairs=judgement["observations"],
        mean_ratio=mean.get("ratio"),
        mean_low=mean_low,
        mean_high=mean_high,
        mean_verdict=mean.get("verdict"),
    )


def slow_calls(verdicts: Sequence[LatencyVerdict], sides: tuple[str, str] = ("A", "B")) -> Iterator[str]:
    """A sentence for each side of which some calls are slow: the mean changed, and the median certainly did not."""
    a, b = sides
    for side, changed in ((b, "SLOWER"), (a, "FASTER")):
        found = [
            (abs(math.log(one.mean_ratio)), one.mean_ratio, one)
            for one in verdicts
            if one.mean_ratio and one.mean_verdict == changed and one.verdict not in (changed, "UNDECIDED")
        ]
        if found:
            _, ratio, most = max(found, key=lambda one: one[0])
            low, high = most.mean_low or ratio, most.mean_high or ratio
            yield (
                f"some calls of {side} are slow in {count(len(found), 'latency', 'latencies')}, which verdicts on "
                f"medians do not count: in {most.trial}, {most.path}, the mean of {b} is {ratio:.3f} times that of {a} "
                f"({low:.3f} to {high:.3f}); see mean, p90 and p99 in the records"
            )
