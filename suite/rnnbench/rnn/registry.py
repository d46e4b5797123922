"""The families of networks: the stack of cells, the families of `rnn/networks/`, and those that other packages bring.

A package brings a family by the entry point `rnnbench.networks`: the family's name, and its class.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import isabstract
from itertools import groupby
from operator import itemgetter
from typing import Any

from rnnbench.lazy import declared
from rnnbench.outside_text import describe_error, safe_text
from rnnbench.rnn.network import Network
from rnnbench.rnn.spec import Model

GROUP = "rnnbench.networks"
OTHER_MODULES = ("rnnbench.model_files.network",)
"""Modules with families elsewhere in the suite."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*", re.IGNORECASE | re.ASCII)
"""The name of a family: a word of case files, of ids of trials and of files."""


def families() -> dict[str, type[Network]]:
    """Every family by its name, the stack of cells first."""
    return _families_and_broken()[0]


def broken_families() -> dict[str, str]:
    """Why the family of a name cannot be used: another package has it, too, or brings one that cannot be loaded."""
    return _families_and_broken()[1]


@cache
def _families_and_broken() -> tuple[dict[str, type[Network]], dict[str, str]]:
    found: dict[str, type[Network]] = {Model.network: Model}
    broken = dict[str, str]()
    listed = (*declared("rnnbench.rnn.networks", "FAMILIES"), *(import_module(name).FAMILIES for name in OTHER_MODULES))
    for several in listed:
        for family in several:
            found[family.network] = family
    brought = {(entry.name, entry.value): entry for entry in entry_points(group=GROUP)}
    own = [(name, f"{family.__module__}:{family.__qualname__}") for name, family in found.items()]
    for name, same_name in groupby(sorted({*own, *brought}), key=itemgetter(0)):
        values = [value for _, value in same_name]
        shown = f"'{safe_text(name, 40)}'"
        if len(values) > 1:
            several = f"several packages have a network {shown}: {safe_text(', '.join(values), 200)}"
            broken[name] = f"{several}; rename it in one of them, or uninstall one"
        if len(values) > 1 or name in found:
            continue
        try:
            found[name] = _loaded(brought[name, values[0]])
        except MemoryError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 a module of any package is run
            what = f"the network {shown} ({safe_text(values[0], 100)}) cannot be loaded"
            broken[name] = f"{what}: {describe_error(error)}; repair or uninstall the package that provides it"
    return found, broken


def _loaded(entry: EntryPoint) -> type[Network]:
    """The class that another package names. Raises what its module raises, and TypeError for another object."""
    family = entry.load()
    if not (isinstance(family, type) and issubclass(family, Network)):
        raise TypeError("it is no subclass of rnnbench.rnn.Network")
    if isabstract(family):
        raise TypeError(f"it does not define {', '.join(sorted(family.__abstractmethods__))}")
    if getattr(family, "network", "") != entry.name or not _NAME.fullmatch(entry.name):
        raise TypeError(
            f"expected network: ClassVar[str] = {entry.name!r} in the class, the name of its entry point, of letters, "
            "digits, '.', '_' and '-'"
        )
    return family


def network_of(written: Mapping[str, Any]) -> Network:
    """The network that `model:` describes; `network` names its family.

    Raises ValidationError, and KeyError if there is no such family.
    """
    keys = dict(written)
    return families()[keys.pop("network", Model.network)].model_validate(keys)
