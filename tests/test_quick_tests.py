"""`make test` leaves out tests that others stand for, and no value of any parameter with them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from quick_tests import EACH_VALUE, FIRST, PROOF, few, for_proof, left_out, one_of_each_class


class Item:
    """A collected test with its marks and parameters."""

    def __init__(self, test: str, *marks: str, **params: object) -> None:
        self.nodeid = f"tests/backends/{test}[{params}]"
        self.marks = marks
        self.callspec = SimpleNamespace(params=params)

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None

    def iter_markers(self, name: str) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(args=(2,))


def combined(test: str) -> Iterator[Any]:
    for time in ("looped", "unrolled"):
        for state in ("none", "stitched", "stateful"):
            yield Item(test, EACH_VALUE, time=time, state=state)


def test_what_is_marked_for_the_proof_is_left_out() -> None:
    plain: Any = Item("test_a.py::test_one")
    marked: Any = Item("test_a.py::test_other", PROOF)
    assert left_out([plain, marked]) == {marked}


def test_of_combinations_a_few_stay_that_have_each_value() -> None:
    items = list(combined("test_a.py::test_one"))
    stay = set(items) - left_out(items)
    assert len(stay) == 3
    for name in ("time", "state"):
        assert {item.callspec.params[name] for item in stay} == {item.callspec.params[name] for item in items}


def test_each_test_has_all_values_of_its_own() -> None:
    items = [*combined("test_a.py::test_one"), *combined("test_b.py::test_one")]
    assert len(items) - len(left_out(items)) == 2 * 3


def test_of_parameters_the_first_stay() -> None:
    items: list[Any] = [Item("test_a.py::test_one", FIRST, state=state) for state in ("none", "stitched", "stateful")]
    assert left_out(items) == {items[2]}


def test_one_combination_that_is_asked_for_is_run() -> None:
    (first, *_) = combined("test_a.py::test_one")
    assert left_out([first]) == set()


def test_few_have_all_things_and_the_cheaper_one_is_taken() -> None:
    assert few(["ab", "ab", "c", "a"], [3, 2, 1, 1]) in ([1, 2], [2, 1])


def test_parameters_for_the_proof_keep_their_values() -> None:
    one, several = for_proof({"time": "looped"}, ("lstm", 4))
    assert (one.values, several.values) == (({"time": "looped"},), ("lstm", 4))
    assert {mark.name for mark in (*one.marks, *several.marks)} == {PROOF}


def test_the_first_of_each_class_is_no_parameter_for_the_proof_alone() -> None:
    sets = one_of_each_class(["late", "long", "early", "large"], lambda word: word[0])
    assert [(*each.values, bool(each.marks)) for each in sets] == [
        ("late", False),
        ("long", True),
        ("early", False),
        ("large", True),
    ]


@pytest.mark.parametrize("name", [PROOF, EACH_VALUE, FIRST])
def test_the_marks_are_registered(name: str, pytestconfig: pytest.Config) -> None:
    assert any(line.startswith((f"{name}:", f"{name}(")) for line in pytestconfig.getini("markers"))
