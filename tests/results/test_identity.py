"""What differs between two machines."""

from __future__ import annotations

import math

import pytest

from rnnbench.results.identity import differences, earlier_fingerprint, fingerprint, machine_differences

EARLIER = {"cpu": "AMD EPYC", "cores": 2, "memory": 25_276_510_208, "kernel": "6.1.0", "python": "3.11.7", "load": 0.5}
MACHINE = {**EARLIER, "processor": {"cpu family": "25", "model": "1"}, "vector_extensions": "avx2 fma"}


def test_an_update_leaves_a_machine_what_it_is_and_another_processor_of_its_name_is_another_machine():
    updated = {"kernel": "6.2.0", "system": "Debian 13", "python": "3.12.1", "memory": 25_276_400_000, "load": 3.0}
    assert fingerprint({**MACHINE, **updated}) == fingerprint(MACHINE)
    for change in (
        {"processor": {"cpu family": "25", "model": "17"}},
        {"vector_extensions": "avx2 fma avx512f"},
        {"memory": 50 << 30},
        {"cores": 4},
        {"governor": "powersave"},
    ):
        assert fingerprint({**MACHINE, **change}) != fingerprint(MACHINE), change


@pytest.mark.parametrize("memory", [None, "much", [25_276_510_208], 10**400, math.inf, math.nan])
def test_a_memory_that_is_no_number_of_bytes_makes_another_machine(memory):
    assert fingerprint({**MACHINE, "memory": memory}) != fingerprint(MACHINE)


def test_a_description_of_before_keeps_its_fingerprint_and_is_known_by_it():
    assert fingerprint(EARLIER) == earlier_fingerprint(EARLIER) == earlier_fingerprint(MACHINE) == "6c9c67f656a8"
    assert list(machine_differences(EARLIER, {**MACHINE, "cores": 4})) == [("cores", 2, 4)]


def test_the_processor_is_named_first_where_a_description_begins_with_it():
    old = {"cpu": "one", "caches": {"L1d": 1, "L2": 2}, "cores": 2}
    new = {"cpu": "other", "caches": {"L1d": 1, "L2": 4}, "memory": 8}
    assert list(differences(old, new)) == [
        ("cpu", "one", "other"),
        ("caches.L2", 2, 4),
        ("cores", 2, "none"),
        ("memory", "none", 8),
    ]
