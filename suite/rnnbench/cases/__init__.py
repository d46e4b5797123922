"""Case files: YAML → Case → Trials. What is named here is for other rooms; every other name is this room's own.

Names are imported when they are first asked for: a run starts hundreds of workers, each needs `trial` alone, and the
rest takes some 40 ms to import. Choosing among trials is `rnnbench.cases.select.select`; that name cannot be both here.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rnnbench.cases.case import Case, Point
    from rnnbench.cases.errors import CaseError, Place, Problem
    from rnnbench.cases.load import load_case
    from rnnbench.cases.matrix import MAX_TRIALS
    from rnnbench.cases.schema import json_schema
    from rnnbench.cases.trial import Limits, Measure, Precision, Strategy, Target, Trial

_MODULES = {
    "case": ("Case", "Point"),
    "errors": ("CaseError", "Place", "Problem"),
    "load": ("load_case",),
    "matrix": ("MAX_TRIALS",),
    "schema": ("json_schema",),
    "trial": ("Limits", "Measure", "Precision", "Strategy", "Target", "Trial"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "MAX_TRIALS",
    "Case",
    "CaseError",
    "Limits",
    "Measure",
    "Place",
    "Point",
    "Precision",
    "Problem",
    "Strategy",
    "Target",
    "Trial",
    "json_schema",
    "load_case",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
