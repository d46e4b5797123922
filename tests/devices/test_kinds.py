"""Every kind of device is declared in a file of its own, and says why it lacks figures."""

from __future__ import annotations

import pytest

from rnnbench.devices import KINDS
from rnnbench.measure import PATHS


def test_the_processor_comes_first_and_is_on_every_machine() -> None:
    assert next(iter(KINDS)) == "cpu"
    processor = KINDS["cpu"].describe()
    assert processor.name
    assert processor.memory > 0
    assert not processor.software
    assert KINDS["cpu"].unmeasured == {}


@pytest.mark.parametrize("name", [name for name in KINDS if name != "cpu"])
def test_another_kind_says_why_it_has_no_floor_of_the_processor(name: str) -> None:
    kind = KINDS[name]
    assert kind.name == name
    assert kind.describe is None
    assert set(kind.unmeasured) <= {"latency_floor", "device_memory", *PATHS}
    assert "processor" in kind.unmeasured["latency_floor"]
    assert all(reason.endswith(".") for reason in kind.unmeasured.values())
