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
SOFTWARE = frozenset({INTERPRETER, "kernel", "system"})
"""Entries that an update changes. A machine stays the same one, and a chart marks the update."""
VECTORS = "vector_extensions"
SINCE = frozenset({"processor", VECTORS})
"""Entries that descriptions did not have at first. They tell two processors with one name apart."""
GIB = 1 << 30
FINGERPRINT_DIGITS = 12


def machine_identity(machine: Mapping[str, Any]) -> dict[str, Any]:
    """A machine's description without what is measured anew for each run."""
    return {key: value for key, value in machine.items() if key not in MEASURED_ANEW}


def fingerprint(machine: Mapping[str, Any]) -> str:
    """12 hex digits of the SHA-256 of a machine's hardware. Equal digits: latencies may be compared.

    Memory counts in whole GiB: a kernel keeps some of it for itself, and another one keeps more.
    """
    if VECTORS not in machine:
        return earlier_fingerprint(machine)
    hardware = {key: value for key, value in machine_identity(machine).items() if key not in SOFTWARE}
    return _digits({**hardware, "memory": _whole_gib(hardware.get("memory", 0))})


def _whole_gib(memory: Any) -> Any:
    """As it is, where an edited or damaged description has no number."""
    try:
        return round(memory / GIB)
    except (TypeError, ValueError, OverflowError):
        return memory


def earlier_fingerprint(machine: Mapping[str, Any]) -> str:
    """The fingerprint that the machine had before SINCE was read. The histories of that time have it."""
    return _digits(
        {key: value for key, value in machine_identity(machine).items() if key not in SINCE and key != INTERPRETER}
    )


def _digits(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:FINGERPRINT_DIGITS]


def machine_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """`differences` of two machines, without what was not read of one of them."""
    a, b = machine_identity(old), machine_identity(new)
    unread = SINCE - (a.keys() & b.keys())
    yield from differences(
        {k: v for k, v in a.items() if k not in unread}, {k: v for k, v in b.items() if k not in unread}
    )


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Dotted keys whose values differ, with both values, in their order. A value that is absent counts as `none`."""
    for key in dict.fromkeys((*old, *new)):
        a, b = old.get(key), new.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            yield from differences(a, b, f"{prefix}{key}.")
        elif a != b:
            yield f"{prefix}{key}", "none" if a is None else a, "none" if b is None else b
