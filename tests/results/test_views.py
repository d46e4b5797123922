"""Workloads: what trials must have in common to be ranked together."""

from __future__ import annotations

import fake_records as fake
import pytest

from rnnbench.results import Finding, FindingKind, rank, view_runs


@pytest.mark.parametrize(("changes", "told"), [({"lengths": "ragged"}, "ragged lengths"), ({"seed": 7}, "seed 7")])
def test_ragged_lengths_and_another_seed_are_another_workload_whose_title_says_so(
    changes: dict[str, object], told: str
) -> None:
    one = fake.record(state="none")
    params = one.params.model_copy(update=changes)
    other = one.model_copy(update={"trial": f"{one.trial}-other", "params": params})
    view = view_runs([fake.run((one, other))])
    titles = [str(workload) for workload in view.workloads]
    assert titles[1] == f"{titles[0]}, {told}"
    assert [len(ranking.places) for entries in view.workloads.values() for ranking in rank(entries)] == [1, 1]
    assert len({family.slug for family in view.families}) == 2


def test_what_is_not_believed_is_in_no_ranking() -> None:
    moved = Finding(kind=FindingKind.TIME, detail="work was moved out of the blocks", disbelieved=True)
    honest, faster = fake.record(), fake.record("fakemlir", bound=1e-9).model_copy(update={"findings": (moved,)})
    view = view_runs([fake.run((honest, faster))])
    (ranking,) = rank(view.entries)
    assert [place.entry.record for place in ranking.places] == [honest]
