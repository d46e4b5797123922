"""One run as it was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnbench.optional import MissingExtraError
from rnnbench.results.identity import fingerprint
from rnnbench.results.reading import StoreError
from rnnbench.results.record import Record
from rnnbench.results.run_info import RunInfo
from rnnbench.results.samples import other_samples, read_samples, samples_file
from rnnbench.results.text import file_name

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rnnbench.results.rows import Row


@dataclass(frozen=True)
class Run:
    """One run as read back. Where a trial has several records (a resumed run), the last one counts."""

    path: Path
    info: RunInfo
    records: tuple[Record, ...]
    warnings: tuple[str, ...] = ()
    """What was left out in reading: damaged lines, a line torn by a kill, and fields of a newer rnnbench."""
    shards: tuple[Run, ...] = ()
    """The runs of a merged run's shards. `records` has each trial once, of the shard that it belongs to."""
    unread: str = ""
    """Why the file of records was not read to its end, where it was not: a further record would not be found."""

    @property
    def name(self) -> str:
        """Its name in `run.json`, as one part of a path: reports make a folder of it."""
        return file_name(self.info.run)

    @cached_property
    def machine(self) -> str:
        """Fingerprint of the machine that `info` describes."""
        return fingerprint(self.info.machine)

    @cached_property
    def by_trial(self) -> dict[str, Record]:
        return {record.trial: record for record in self.records}

    @property
    def parts(self) -> tuple[Run, ...]:
        """The runs that were made at one time on one machine: the shards of a merged run, or else the run itself."""
        return self.shards or (self,)

    def part_of(self, record: Record) -> Run:
        """The part that a record of `records` comes from: its `info` has the record's machine and versions."""
        return self._parts.get(record.trial, self)

    @cached_property
    def _parts(self) -> dict[str, Run]:
        by_trial = self.by_trial
        return {
            trial: part
            for part in self.shards
            for trial, record in part.by_trial.items()
            if record is by_trial.get(trial)
        }

    def measured(self, record: Record) -> Record | None:
        """The record with a trial's measurement: its own, or that of the trial it is `same_as`; None where absent."""
        return record if record.same_as is None else self.by_trial.get(record.same_as)

    def rows(self) -> list[Row]:
        """One flat row for each record, with the columns that `docs/results.md` describes.

        Each shard of a merged run has rows for its own anchors.
        """
        from rnnbench.results.rows import row

        return [row(record, part.info) for part in self.parts for record in part.records]

    def frame(self) -> Any:
        """The rows as a DataFrame of pandas or Polars. Raises MissingExtraError where neither is installed."""
        from rnnbench.results.rows import COLUMNS

        return data_frame([column.name for column in COLUMNS], [list(row.values()) for row in self.rows()])

    def samples(self, trial: str, path: str = "bound") -> npt.NDArray[np.float64]:
        """The samples of a trial, by its id, as rows of `samples.SAMPLE_COLUMNS`.

        Raises StoreError, also for those of another trial or sitting: they are not the ones that its record counted.
        """
        folder, record = self._parts.get(trial, self).path, self.by_trial.get(trial)
        rows, latency = read_samples(folder, trial, path), record and record.latency(path)
        if latency and (unlike := other_samples(rows, latency)):
            raise StoreError(
                f"{samples_file(folder, trial, path)}: does not have the samples of this record: {unlike}; "
                f"restore the file, or run the trial again"
            )
        return rows


def data_frame(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Any:
    """The rows, each with a value for every column. Raises MissingExtraError where neither package is installed."""
    if find_spec("pandas") is not None:
        return import_module("pandas").DataFrame(list(rows), columns=list(columns))
    if find_spec("polars") is not None:
        polars = import_module("polars")
        return polars.DataFrame(rows, schema=list(columns), orient="row", infer_schema_length=None)
    raise MissingExtraError("a DataFrame needs pandas or polars, and neither is installed; pip install pandas")
