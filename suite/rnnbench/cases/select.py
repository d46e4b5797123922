"""Some of the trials: those that `--only` names and `--filter` describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rnnbench.cases.errors import CaseError, Place, Problem, hint
from rnnbench.cases.expand import scalar
from rnnbench.cases.matrix import Value
from rnnbench.cases.schema import LEAVES
from rnnbench.cases.trial import Trial

_OF_TRIAL: Mapping[str, Callable[[Trial], Value]] = {
    "case": lambda trial: trial.case,
    "backend": lambda trial: trial.target.backend,
    "route": lambda trial: trial.target.route,
    "time": lambda trial: trial.strategy.time,
    "state": lambda trial: trial.strategy.state,
    "chunk": lambda trial: trial.strategy.chunk,
}
KEYS = (*LEAVES, "case", "backend", "route")
"""What a filter may name."""


def select(trials: Sequence[Trial], only: Sequence[str] = (), filters: Sequence[str] = ()) -> list[Trial]:
    """The trials that some `only` names and every filter describes, in their order.

    `only` is a trial's id, or the 8 hex digits that end it. A filter is `key=value|value,key=value` over the leaf names
    of case files, `case`, `backend` and `route`; `chunk=all` is the calls of all the workload's steps. Raises CaseError
    for an id, a key or a value that no trial has, and where nothing is left.
    """
    problems: list[Problem] = []
    kept = list(trials)
    if only:
        named = _named(trials, only, problems)
        kept = [trial for trial in kept if trial.id in named]
    for text in filters:
        for term in text.split(","):
            wanted = _wanted(trials, text, term, problems)
            key = term.partition("=")[0].strip()
            kept = [trial for trial in kept if wanted & texts_of(trial, key)] if wanted else kept
    if problems:
        raise CaseError(problems)
    if not kept and trials:
        options = [f"--only {text}" for text in only] + [f"--filter {text}" for text in filters]
        raise CaseError.at(Place(" ".join(options)), f"none of the {len(trials)} trials is all of this; ask for less")
    return kept


def _named(trials: Sequence[Trial], only: Sequence[str], problems: list[Problem]) -> set[str]:
    ids = [trial.id for trial in trials]
    named: set[str] = set()
    for text in only:
        place = Place(f"--only {text}")
        found = {name for name in ids if text in (name, name[-8:])}
        if not found:
            near = hint(text, ids if "/" in text else [name[-8:] for name in ids])
            advice = near if near.startswith("did") else "`rnnbench list` shows the ids"
            problems.append(Problem(place, f"no trial has this id; {advice}"))
        elif len(found) > 1:
            problems.append(Problem(place, f"{len(found)} trials end in these digits; give the whole id"))
        named |= found
    return named


def _wanted(trials: Sequence[Trial], text: str, term: str, problems: list[Problem]) -> set[str]:
    """The values of one `key=value|value`, as texts; none where there is a problem."""
    place = Place(f"--filter {text}")
    key, equals, listed = (part.strip() for part in term.partition("="))
    if not equals:
        problems.append(Problem(place, f"expected key=value, as in time=looped|unrolled,hidden=128; got '{term}'"))
        return set()
    if key not in KEYS:
        problems.append(Problem(place, f"unknown key '{key}'; {hint(key, KEYS)}"))
        return set()
    wanted = {value.strip() for value in listed.split("|")}
    known = sorted({value for trial in trials for value in texts_of(trial, key)})
    for value in sorted(wanted.difference(known)):
        problems.append(Problem(place, f"no trial has {key} '{value}'; {hint(value, known)}"))
    return wanted


def texts_of(trial: Trial, key: str) -> set[str]:
    """The texts that a trial answers to under one key of KEYS."""
    if key in _OF_TRIAL:
        value = _OF_TRIAL[key](trial)
    else:
        value = getattr(trial.model if LEAVES[key] == "model" else trial, key)
    texts = {scalar(value)}
    return texts | {"all"} if key == "chunk" and value == trial.steps else texts
