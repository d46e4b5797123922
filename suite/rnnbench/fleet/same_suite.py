"""Checking that a node has the suite and the packages of the driver."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version

from rnnbench.pipeline import source_digest
from rnnbench.results import by_package, differences

ALWAYS = ("numpy", "scipy", "pydantic")
"""Packages that trials of every backend use."""


@dataclass(frozen=True)
class SuiteFacts:
    """The facts that must be equal on the driver and on every node."""

    source: str
    """A digest of the suite's files."""
    python: str
    versions: Mapping[str, Mapping[str, str]]
    """The versions of each backend's packages, and of those in ALWAYS."""


def suite_facts(versions: Mapping[str, Mapping[str, str]]) -> SuiteFacts:
    """The facts of this environment. `versions` are those of its adapters, by backend."""
    every_trial = {package: version(package) for package in ALWAYS}
    return SuiteFacts(source_digest(), platform.python_version(), {**versions, "rnnbench": every_trial})


def unlike(driver: SuiteFacts, node: SuiteFacts) -> list[str]:
    """The differences, in some words each; empty if there are none."""
    sentences = []
    if driver.source != node.source:
        sentences.append("its source of rnnbench is another one")
    if driver.python != node.python:
        sentences.append(f"its Python is {node.python}, the driver's {driver.python}")
    ours, theirs = ({name: by_package(one) for name, one in facts.versions.items()} for facts in (driver, node))
    for what, here, there in differences(ours, theirs):
        sentences.append(f"{what.partition('.')[2] or what} is {there}, the driver's {here}")
    return sentences
