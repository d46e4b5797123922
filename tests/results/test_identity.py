"""What differs between two machines."""

from __future__ import annotations

import pytest

from rnnbench.results.identity import differences, fingerprint

MACHINE = {"cpu": "one", "cores": 2, "caches": {"L2": 1 << 18}, "memory": 1 << 33}


@pytest.mark.parametrize("other", [{"cpu": "other"}, {"cores": 4}, {"caches": {"L2": 1 << 20}}, {"memory": 1 << 34}])
def test_a_machine_with_other_hardware_is_another_machine(other):
    assert fingerprint({**MACHINE, **other}) != fingerprint(MACHINE) == fingerprint({**MACHINE, "python": "3.0"})


def test_the_processor_is_named_first_where_a_description_begins_with_it():
    old = {"cpu": "one", "caches": {"L1d": 1, "L2": 2}, "cores": 2}
    new = {"cpu": "other", "caches": {"L1d": 1, "L2": 4}, "memory": 8}
    assert list(differences(old, new)) == [
        ("cpu", "one", "other"),
        ("caches.L2", 2, 4),
        ("cores", 2, "none"),
        ("memory", "none", 8),
    ]
