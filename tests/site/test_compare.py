"""The data of the compare page: which trials it compares with each other."""

from __future__ import annotations

import json

import fake_records as fake
import pytest

from rnnbench.history import History
from rnnbench.results import read_run
from rnnbench.site import write_site


@pytest.mark.parametrize("stored", [False, True], ids=["runs", "history"])
def test_other_lengths_and_seeds_are_not_compared_as_one_workload(tmp_path, stored):
    one = fake.record(state="none")
    ragged, seeded = (
        one.model_copy(update={"trial": f"{one.trial}-{name}", "params": one.params.model_copy(update=changes)})
        for name, changes in (("ragged", {"lengths": "ragged"}), ("seeded", {"seed": 7}))
    )
    run = fake.write_run(tmp_path / "run", [one, ragged, seeded])
    history = History(tmp_path / "history")
    if stored:
        history.add(run)
    write_site([read_run(run)], history if stored else None, tmp_path / "site")
    (file,) = (tmp_path / "site" / "data").glob("trials-*.js")
    script = file.read_text()
    data = json.loads(script[script.index("{") : script.rindex("}") + 1])
    workloads = {trial: data["texts"][workload] for trial, workload, *_ in data["trials"]}
    assert workloads[ragged.trial] == workloads[one.trial].replace("steps,", "steps with ragged lengths,")
    assert workloads[seeded.trial] == f"{workloads[one.trial]}, seed 7"
    assert len(set(workloads.values())) == 3
