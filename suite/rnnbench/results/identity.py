"""What must be equal in two runs for a comparison of their latencies to mean something: the machine, then the trial.

Trials are matched by their id, which has the case, the backend with its route, and all parameters in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

MEASURED_ANEW = frozenset({"load", "temperature", "clock_resolution_s", "clock_cost_s"})
"""Entries of a machine's description that differ from run to run on one machine."""
INTERPRETER = "python"
"""One machine has several interpreters: `rnnbench ab` compares them, and a difference is a warning."""
FINGERPRINT_DIGITS = 12


def machine_identity(machine: Mapping[str, Any]) -> dict[str, Any]:
    """A machine's description without what is measured anew for each run."""
    return {key: value for key, value in machine.items() if key not in MEASURED_ANEW}


def fingerprint(machine: Mapping[str, Any]) -> str:
    """12 hex digits of the SHA-256 of a machine's identity, its interpreter left out.

    Equal digits: latencies may be compared.
    """
    hardware = {key: value for key, value in machine_identity(machine).items() if key != INTERPRETER}
    canonical = json.dumps(hardware, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:FINGERPRINT_DIGITS]


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Dotted keys whose values differ, with both values, in their order. A value that is absent counts as `none`."""
    for key in dict.fromkeys((*old, *new)):
        a, b = old.get(key), new.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            yield from differences(a, b, f"{prefix}{key}.")
        elif a != b:
            yield f"{prefix}{key}", "none" if a is None else a, "none" if b is None else b
