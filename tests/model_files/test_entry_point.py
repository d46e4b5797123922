"""Which function of a file is read."""

from __future__ import annotations

import pytest

from rnnbench.model_files.entry_point import entry_point


@pytest.mark.parametrize(
    ("names", "read"),
    [
        (["init", "main", "step"], "main"),
        (["init"], "init"),
        (["init", "step"], "step"),
        (["step", "other_step"], None),
        (["init", "other_init"], None),
        ([], None),
    ],
)
def test_the_main_one_is_read_or_the_only_one_or_the_only_one_with_inputs(names, read):
    assert entry_point(names, "main", lambda name: name.endswith("step")) == read
