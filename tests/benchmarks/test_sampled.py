"""A trial of every installed backend comes through one whole run, beside those of all others (minutes; no figures).

Each framework is imported three times.
"""

from __future__ import annotations

from pathlib import Path

from harness_trials import assert_all_figures, make_trial, run_trials

from rnnbench.backends import registry
from rnnbench.cases.trial import Measure


def test_a_run_has_all_figures_of_every_backend(tmp_path: Path) -> None:
    probes = {name: registry.find(name).probe() for name in registry.names() if name not in ("fake", "absent")}
    targets = [f"{name}:{probe.routes[0]}" for name, probe in probes.items() if probe.lack(probe.routes[0]) is None]
    trials = [make_trial(target, state="stateful", measure=Measure(budget=0.1, processes=1)) for target in targets]
    _, records = run_trials(trials, tmp_path)
    print("\n" + "\n".join(f"{record.target}: {record.outcome} {record.reason}" for record in records.values()))
    assert len(records) == len(trials) > 1
    for record in records.values():
        assert_all_figures(record)
