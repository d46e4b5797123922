"""The families of networks: the stack of cells, the families of `rnn/networks/`, and those that other packages bring.

A package brings a family by the entry point `rnnbench.networks`: the family's name, and its class.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from rnnbench.lazy import declared
from rnnbench.rnn.network import Network
from rnnbench.rnn.spec import Model

GROUP = "rnnbench.networks"
OTHER_MODULES = ("rnnbench.model_files.network",)
"""Modules with families elsewhere in the suite."""


@cache
def families() -> dict[str, type[Network]]:
    """Every family by its name, the stack of cells first."""
    found: dict[str, type[Network]] = {Model.network: Model}
    listed = (*declared("rnnbench.rnn.networks", "FAMILIES"), *(import_module(name).FAMILIES for name in OTHER_MODULES))
    for several in listed:
        for family in several:
            found[family.network] = family
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        found.setdefault(entry.name, cast("type[Network]", entry.load()))
    return found


def network_of(written: Mapping[str, Any]) -> Network:
    """The network that `model:` describes; `network` names its family.

    Raises ValidationError, and KeyError if there is no such family.
    """
    keys = dict(written)
    return families()[keys.pop("network", Model.network)].model_validate(keys)
