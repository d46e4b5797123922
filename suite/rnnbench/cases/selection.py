"""Selecting trials by `--only` and `--filter`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rnnbench.cases.errors import CaseError, Place, Problem
from rnnbench.cases.expand import scalar
from rnnbench.cases.matrix import Value
from rnnbench.cases.schema import LEAVES
from rnnbench.cases.trial import Trial
from rnnbench.spelling import did_you_mean, hint

_TRIAL_VALUES: Mapping[str, Callable[[Trial], Value]] = {
    "case": lambda trial: trial.case,
    "backend": lambda trial: trial.target.backend,
    "route": lambda trial: trial.target.route,
    "time": lambda trial: trial.strategy.time,
    "state": lambda trial: trial.strategy.state,
    "chunk": lambda trial: trial.strategy.chunk,
    "launch": lambda trial: trial.strategy.launch,
}
KEYS = (*LEAVES, "case", "backend", "route")
"""The keys of a filter."""


def select(trials: Sequence[Trial], only: Sequence[str] = (), filters: Sequence[str] = ()) -> list[Trial]:
    """The trials that an entry of `only` names and that match every filter, in their order.

    An entry of `only` is a trial's id, or its last 8 hex digits. A filter is `key=value|value,key=value`. Its keys are
    KEYS. `chunk=all` matches calls of all the workload's steps. Raises CaseError for an id, a key or a value that no
    trial has, and if no trial is left.
    """
    problems: list[Problem] = []
    selected = list(trials)
    if only:
        named = _named(trials, only, problems)
        selected = [trial for trial in selected if trial.id in named]
    for text in filters:
        for term in text.split(","):
            values = _filter_values(trials, text, term, problems)
            key = term.partition("=")[0].strip()
            selected = [trial for trial in selected if values & texts_of(trial, key)] if values else selected
    if problems:
        raise CaseError(problems)
    if not selected and trials:
        options = [f"--only {text}" for text in only] + [f"--filter {text}" for text in filters]
        raise CaseError.at(Place(" ".join(options)), f"no trial is all of this, of {len(trials)}; ask for less")
    return selected


def _named(trials: Sequence[Trial], only: Sequence[str], problems: list[Problem]) -> set[str]:
    ids = [trial.id for trial in trials]
    named: set[str] = set()
    for text in only:
        place = Place(f"--only {text}")
        matching = {name for name in ids if text in (name, name[-8:])}
        if not matching:
            near = did_you_mean(text, ids if "/" in text else [name[-8:] for name in ids])
            advice = near or "`rnnbench list` shows the ids"
            problems.append(Problem(place, f"no trial has this id; {advice}"))
        elif len(matching) > 1:
            problems.append(Problem(place, f"{len(matching)} trials end in these digits; give the whole id"))
        named |= matching
    return named


def _filter_values(trials: Sequence[Trial], text: str, term: str, problems: list[Problem]) -> set[str]:
    """The values of one `key=value|value`, as texts. Empty if there is a problem."""
    place = Place(f"--filter {text}")
    key, equals, listed = (part.strip() for part in term.partition("="))
    if not equals:
        problems.append(Problem(place, f"expected key=value, as in time=looped|unrolled,hidden=128; got '{term}'"))
        return set()
    if key not in KEYS:
        problems.append(Problem(place, f"unknown key '{key}'; {hint(key, KEYS)}"))
        return set()
    values = {value.strip() for value in listed.split("|")}
    existing = sorted({value for trial in trials for value in texts_of(trial, key)})
    for value in sorted(values.difference(existing)):
        problems.append(Problem(place, f"no trial has {key} '{value}'; {hint(value, existing)}"))
    return values


def texts_of(trial: Trial, key: str) -> set[str]:
    """The texts of a trial's value under one key of KEYS. A chunk of all steps has two: its number, and `all`."""
    if key in _TRIAL_VALUES:
        value = _TRIAL_VALUES[key](trial)
    else:
        value = getattr(trial.model if LEAVES[key] == "model" else trial, key, None)
    texts = {scalar(value)}
    return texts | {"all"} if key == "chunk" and value == trial.steps else texts
