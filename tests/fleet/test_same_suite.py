"""Whether a node has what the driver has."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

from rnnbench.fleet.same_suite import suite_facts, unlike


def test_packages_that_every_trial_uses_are_facts_beside_those_of_its_adapters():
    facts = suite_facts({"fake": {"fakelib": "1"}})
    every_trial = {package: version(package) for package in ("numpy", "scipy", "pydantic")}
    assert facts.versions == {"fake": {"fakelib": "1"}, "rnnbench": every_trial}
    assert unlike(facts, suite_facts({"fake": {"fakelib": "1"}})) == []


def test_each_difference_is_told_with_both_sides():
    facts = suite_facts({"fake": {"fakelib": "1"}})
    node = replace(facts, source="other", python="3.0", versions={**facts.versions, "fake": {"fakelib": "2"}})
    assert unlike(facts, node) == [
        "its source of rnnbench is another one",
        f"its Python is 3.0, the driver's {facts.python}",
        "fakelib is 2, the driver's 1",
    ]


def test_a_distribution_in_the_place_of_another_one_is_one_difference():
    driver, node = (suite_facts({"onnxruntime": {name: "1.31.1"}}) for name in ("onnxruntime", "onnxruntime-gpu"))
    assert unlike(driver, node) == ["onnxruntime is 1.31.1 (onnxruntime-gpu), the driver's 1.31.1"]
