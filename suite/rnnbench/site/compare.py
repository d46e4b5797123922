"""The data of the compare page: an index of nights, an index of trials, and a data file for each night."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from rnnbench.results import COMPARED_PATHS, ERROR_RATE, RATIO_CONFIDENCE, SMALLEST
from rnnbench.site.content import Content
from rnnbench.site.nights import FIGURES, Identity, Night
from rnnbench.site.numbers import Numbered, scaled_each
from rnnbench.site.page import Folder
from rnnbench.spelling import count

FINENESS = {name: 1e6 if name == "build_s" else 1.0 for name in FIGURES}
"""Figures are integers: microseconds and bytes. The page shows their ratios only."""


def write_compare(content: Content, folder: Folder) -> None:
    """`compare.html` with its data."""
    trials, texts, settings = Numbered(), Numbered(), Numbered()
    nights = [folder.data("night", _night(night, trials, texts, settings)) for night in content.nights]
    described = [_described(identity, texts) for identity in trials.values]
    named = folder.data("trials", {"trials": described, "texts": texts.values, "settings": settings.values})
    settings_of_page = {
        "nights": folder.data("nights", _index(content, nights, named)),
        "paths": list(COMPARED_PATHS),
        "figures": list(FIGURES),
        "smallest": SMALLEST,
        "error_rate": ERROR_RATE,
        "ratio_confidence": RATIO_CONFIDENCE,
    }
    folder.page("compare.html", "compare.html", content=content, settings=settings_of_page, first=_first_kind(content))


def _first_kind(content: Content) -> str:
    """What the page compares before a person chooses: nights where two of them have a trial in common."""
    seen: set[tuple[str, str]] = set()
    for night in content.nights:
        trials = {(night.entry.machine, trial.name) for trial in night.trials}
        if seen & trials:
            return "nights"
        seen |= trials
    return "strategies"


def _index(content: Content, files: Sequence[str], trials: str) -> dict[str, Any]:
    """The nights with the names of their data files, and the name of the file of the trials that they number.

    A plan is the cases of a run with its shard: what another run must have been given to have the same trials.
    """
    versions, plans = Numbered(), Numbered()
    nights = [
        {
            "id": night.entry.run_id,
            "file": file,
            "run": night.entry.run,
            "started": night.entry.started,
            "plan": plans((night.entry.cases, night.entry.shard)),
            "machine": night.entry.machine,
            "rnnbench": night.entry.rnnbench,
            "versions": [versions(item) for item in sorted(night.versions.items())],
        }
        for night, file in zip(content.nights, files, strict=True)
    ]
    cpus = {night.entry.machine: night.entry.machine_cpu or "" for night in content.nights}
    pages = [[machine, trial, page] for (machine, trial), page in content.pages.items()]
    return {
        "nights": nights,
        "trials": trials,
        "versions": versions.values,
        "machines": list(cpus.items()),
        "pages": pages,
    }


def _night(night: Night, trials: Numbered, texts: Numbered, settings: Numbered) -> list[list[Any]]:
    """A row for each trial: its number, outcome, whether it is believed, and the trial it shares its figures with.

    Then come the scale of its latencies, in that scale the geometric mean of each path, as `rnnbench compare` has it,
    with the medians process by process, the figures, and the number of its setting. All of these are integers.
    """
    return [
        [
            trials(trial.identity),
            texts(trial.outcome),
            int(trial.believed),
            texts(trial.same_as) if trial.same_as else -1,
            *latencies,
            [
                round(value * FINENESS[name]) if math.isfinite(value) else None
                for name, value in zip(FIGURES, figures, strict=True)
            ],
            settings(trial.setting),
        ]
        for trial, latencies, figures in zip(
            night.trials, scaled_each(night.processes), night.figures.tolist(), strict=True
        )
    ]


def _described(trial: Identity, texts: Numbered) -> tuple[Any, ...]:
    """A trial: its id, and what must be equal where two targets, two strategies or two devices are compared."""
    steps = count(trial.steps, "step") + (f" with {trial.lengths} lengths" if trial.lengths != "full" else "")
    seed = f", seed {int(trial.seed)}" if trial.seed else ""  # The history has numbers as floats.
    workload = f"{trial.case}: {_model(trial.model)}, {steps}, batch {trial.batch}, {trial.dtype}{seed}"
    strategy = f"{trial.time}-{trial.state}" + (f"-{trial.launch}" if trial.launch != "stream" else "")
    device = f"{trial.device}, {count(trial.threads, 'thread')}"
    return trial.trial, texts(workload), texts(trial.target), texts(strategy), trial.chunk, texts(device)


def _model(parameters: str) -> str:
    """`lstm, input 64, hidden 128`, of the parameters of a model as JSON. What is none stays as it is."""
    try:
        named = json.loads(parameters)
    except ValueError:
        return parameters
    if not isinstance(named, dict):
        return parameters
    return ", ".join(
        str(value) if name in ("cell", "network", "file") else f"{name} {value}" for name, value in named.items()
    )
