"""What differs between two machines."""

from __future__ import annotations

from rnnbench.results.identity import differences


def test_the_processor_is_named_first_where_a_description_begins_with_it():
    old = {"cpu": "one", "caches": {"L1d": 1, "L2": 2}, "cores": 2}
    new = {"cpu": "other", "caches": {"L1d": 1, "L2": 4}, "memory": 8}
    assert list(differences(old, new)) == [
        ("cpu", "one", "other"),
        ("caches.L2", 2, 4),
        ("cores", 2, "none"),
        ("memory", "none", 8),
    ]
