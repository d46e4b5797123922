"""What changed that is no number: outcomes, checks, support, lowered forms, versions, and what is believed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from rnnbench.history.columns import NIGHT_ROWS, SERIES_DEVICE
from rnnbench.history.store import History
from rnnbench.results import Fact, fact_sentence


@dataclass(frozen=True)
class Event:
    """A fact of a trial, or of a backend, that differs from the run before on the same machine and device."""

    machine: str
    """Fingerprint."""
    backend: str
    subject: str
    """The trial's id; the backend for its versions."""
    fact: Fact
    run: str
    """Name of the first run in which it differs; where a trial is measured no longer, of the last one that has it."""
    night: str
    """Start of that run, UTC."""
    before: str
    after: str
    versions: tuple[str, str]
    """Versions of the backend's packages, before and after; equal where they did not change."""
    detail: str = ""
    """The reason that the record gives."""

    @property
    def sentence(self) -> str:
        """What happened, without its subject: "became unrolled 16 (it was looped 1)"."""
        return fact_sentence(self.fact, self.before, self.after, self.detail)


def find_events(history: History, last: int | None = None) -> tuple[Event, ...]:
    """Every event of every machine, or those of the last runs of each, oldest first."""
    of_row = {"series_device": SERIES_DEVICE, "not_answered": _NOT_ANSWERED}
    facts = [_FACTS.format(**of_row, **asdict(watched)) for watched in _WATCHED]
    # One statement, which reads the files of all runs once: that takes longer than all of its parts.
    events = _events(history, _NIGHTS + "\nUNION ALL\n".join((*facts, _VERSIONS, _NO_LONGER)))
    if last is not None:
        since = _first_of_last(history, last)
        events = (event for event in events if event.night >= since.get(event.machine, ""))
    return tuple(sorted(events, key=lambda event: (event.night, event.backend, event.subject, event.fact)))


def _first_of_last(history: History, last: int) -> dict[str, str]:
    """The start of the first one of the last runs, by machine."""
    starts: dict[str, list[str]] = {}
    for run in history.nights:
        starts.setdefault(run.machine, []).append(run.started)
    return {machine: of_machine[-last:][0] for machine, of_machine in starts.items()}


_ALIKE = "regexp_replace(substr(trial, length(\"case\") + length(backend) + length(route) + 4), '-[0-9a-f]{8}$', '')"
"""What a trial's id says of its strategy, sizes and device: all but case, target and digest."""
_NIGHTS = f"""
    WITH nights AS MATERIALIZED (
        SELECT machine, backend, trial, "case", run, run_id, coalesce(shard, '') AS shard, started, versions, pinned,
            outcome, reason, failed_checks, too_short_checks, support, lowered, believed, findings, route, device_name,
            device_driver, device_software
        FROM {NIGHT_ROWS}
    )
"""
_NOT_ANSWERED = """coalesce(outcome = 'ok' AND list_has_any(
        string_split(too_short_checks, ', '),
        string_split(last_value(CASE WHEN outcome = 'nonconforming' THEN failed_checks END IGNORE NULLS) OVER (
            PARTITION BY machine, trial ORDER BY started, run_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), ', ')
    ), false)"""
"""In SQL, whether a row is ok, and a check was too short that failed when the trial last failed a check."""
_FACTS = """
    SELECT machine, backend, trial, run, started, '{fact}' AS fact, before, after, versions_before, versions, detail
    FROM (
        SELECT machine, backend, trial, run, started, coalesce(versions, '') AS versions,
            coalesce({detail}, '') AS detail, coalesce({fact}::VARCHAR, '') AS after,
            lag(coalesce({fact}::VARCHAR, '')) OVER w AS before, lag(coalesce(versions, '')) OVER w AS versions_before,
            lag(outcome) OVER w IS DISTINCT FROM outcome AS other_outcome
        FROM (  -- of the trials that have two values of the fact; to sort all rows takes the most memory
            SELECT *, {series_device} AS series_device, {not_answered} AS not_answered FROM nights SEMI JOIN (
                SELECT machine, trial FROM nights GROUP BY ALL
                HAVING min(coalesce({fact}::VARCHAR, '')) <> max(coalesce({fact}::VARCHAR, ''))
            ) USING (machine, trial)
        )
        WHERE {where}
        WINDOW w AS (PARTITION BY machine, trial, series_device ORDER BY started, run_id)
    )
    WHERE before <> after AND {kept}
"""


@dataclass(frozen=True)
class _WatchedFact:
    """A fact of a trial whose changes are events. All but its name is SQL."""

    fact: Fact
    detail: str
    """What explains a change."""
    where: str = "true"
    """The rows that have the fact."""
    kept: str = "true"
    """The changes that are events."""


_WATCHED = (
    _WatchedFact(
        "outcome",
        detail="CASE WHEN outcome NOT IN ('ok', 'nonconforming') THEN reason END",
        where="NOT not_answered",
    ),
    # An outcome that changed says it already.
    _WatchedFact("failed_checks", detail="NULL", where="NOT not_answered", kept="NOT other_outcome"),
    _WatchedFact("support", detail="NULL", kept="'unsupported' NOT IN (before, after)"),
    # A failed build has no form: the one before it is that of the last program.
    _WatchedFact("lowered", detail="NULL", where="lowered IS NOT NULL"),
    _WatchedFact(
        "believed",
        detail="CASE WHEN NOT believed THEN findings END",
        where="outcome IN ('ok', 'nonconforming')",
    ),
)
_VERSIONS = """
    SELECT machine, backend, backend, run, started, 'versions', before, after, before, after, ''
    FROM (
        SELECT *, lag(after) OVER (PARTITION BY machine, backend ORDER BY started, run_id) AS before
        FROM (
            SELECT machine, backend, run, run_id, started, max(versions) AS after
            FROM nights WHERE versions IS NOT NULL AND pinned IS NULL GROUP BY ALL
        )
    )
    WHERE before <> after
"""
_NO_LONGER = f"""  -- trials that a later run of their case, or of their shard, on the same machine does not have
    SELECT seen.machine, seen.backend, seen.trial, run, seen.last_seen, 'measured', '', '', versions, versions,
        coalesce(min(began.trial) || ' is measured since', '')
    FROM (
        SELECT machine, backend, trial, "case", any_value({_ALIKE}) AS alike, arg_max(run, started) AS run,
            max(started) AS last_seen, arg_max(shard, started) AS shard,
            arg_max(coalesce(versions, ''), started) AS versions
        FROM nights WHERE pinned IS NULL GROUP BY machine, backend, trial, "case"
    ) AS seen
    LEFT JOIN (  -- as after a route was renamed
        SELECT machine, backend, trial, "case", any_value({_ALIKE}) AS alike, min(started) AS first_seen
        FROM nights WHERE pinned IS NULL GROUP BY machine, backend, trial, "case"
    ) AS began
        ON began.machine = seen.machine AND began.backend = seen.backend AND began."case" = seen."case"
        AND began.alike = seen.alike AND began.first_seen > seen.last_seen
    JOIN (  -- a run that was cut short has not come to the rest of its trials
        SELECT machine, "case", shard, max(started) AS last_run FROM nights
        WHERE run_id IN (SELECT run_id FROM runs WHERE finished IS NOT NULL) GROUP BY ALL
    ) AS runs
        ON runs.machine = seen.machine AND runs."case" = seen."case" AND runs.shard IN ('', seen.shard)
    GROUP BY ALL HAVING seen.last_seen < max(last_run)
"""


def _events(history: History, statement: str) -> Iterator[Event]:
    for machine, backend, subject, run, started, fact, before, after, old, new, detail in history.sql(statement).rows:
        night = started.isoformat(timespec="seconds")
        yield Event(machine, backend, subject, fact, run, night, before, after, (old, new), detail)
