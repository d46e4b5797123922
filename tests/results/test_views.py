"""Workloads: what trials must have in common to be ranked together."""

from __future__ import annotations

from pathlib import Path

import fake_records as fake

from rnnbench.results import Run, rank, view_runs


def test_ragged_lengths_are_another_workload_and_its_title_says_so() -> None:
    full = fake.record(state="none")
    params = full.params.model_copy(update={"lengths": "ragged"})
    ragged = full.model_copy(update={"trial": f"{full.trial}-ragged", "params": params})
    view = view_runs([Run(Path("fake"), fake.info(), (full, ragged))])
    titles = [str(workload) for workload in view.workloads]
    assert titles[1] == f"{titles[0]}, ragged lengths"
    assert [len(ranking.places) for entries in view.workloads.values() for ranking in rank(entries)] == [1, 1]
    assert len({family.slug for family in view.families}) == 2
