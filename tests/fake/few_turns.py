"""Counts for the checks with a time of their own: few, and always as many, whatever time they take."""

from __future__ import annotations

import pytest

from rnnbench.conformance import arrays, edge_cases, mixed_calls, streams, threads, values_and_states

FEW = 10
COUNTS = {
    "kept": (streams, "KEPT_CALLS", "KEPT_S", 140),
    "sessions": (streams, "OPENED", "OPENED_S", 170),
    "resets": (streams, "RESETS", "RESETS_S", 100),
    "threads": (threads, "THREAD_CALLS", "THREADS_S", 300),
    "mixed": (mixed_calls, "QUEUED", "QUEUED_S", 132),
    "watched": (arrays, "WATCHED_CALLS", "WATCHED_S", 20),
}
"""Where each check has its count and its time, and with how many turns it finds the faults that are planted for it."""
ENDLESS_S = 3600.0


def set_turns(monkeypatch: pytest.MonkeyPatch, check: str = "") -> None:
    """Let this check make as many turns as it needs, and all others FEW."""
    for name, (module, planned, seconds, count) in COUNTS.items():
        monkeypatch.setattr(module, planned, count if name == check else FEW)
        monkeypatch.setattr(module, seconds, ENDLESS_S)
    monkeypatch.setattr(streams, "READ_BACK", streams.READ_BACK_ENOUGH if check == "resets" else FEW)
    monkeypatch.setattr(edge_cases, "POISONED_S", ENDLESS_S)
    for seconds in ("LONG_S", "IN_TURN_S", "DRAWN_S"):
        monkeypatch.setattr(values_and_states, seconds, ENDLESS_S if check == "chunks" else 0.0)
