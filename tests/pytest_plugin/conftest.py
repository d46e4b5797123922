"""A folder with a case, in which pytest is started as a user would, with the fake backend there."""

from __future__ import annotations

import pytest

CASE = """\
schema: 1
name: tiny
model: {cell: lstm, input: 3, hidden: 4}
workload: {steps: 8, chunk: [2, 4]}
strategy: {time: [looped, fused], state: [stitched, stateful]}
"""


@pytest.fixture
def tiny(pytester, monkeypatch):
    """A pytester with `tiny.yaml`: two trials that run and two that are unsupported, for each of two chunks."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # by which pytest-benchmark knows whether it may measure
    monkeypatch.setenv("COLUMNS", "200")
    pytester.path.joinpath("tiny.yaml").write_text(CASE)
    return pytester
