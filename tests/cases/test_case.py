"""Two cases of one name are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rnnbench.cases import CaseError, check_case_names, make_case

SECTIONS = {"workload": {"steps": 8, "chunk": 4}, "strategy": {"time": "looped", "state": "stitched"}}
LSTM = {"cell": "lstm", "input": 3, "hidden": 4}


def test_two_cases_of_one_name_are_refused():
    tiny = make_case("tiny", model=LSTM, **SECTIONS)
    check_case_names([tiny, make_case("other", model=LSTM, **SECTIONS)])
    with pytest.raises(CaseError, match="same name, 'tiny'"):
        check_case_names([replace(tiny, path="a.yaml"), replace(tiny, path="b.yaml")])
