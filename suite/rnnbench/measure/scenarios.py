"""The scenarios: the work of one core for many callers. A scenario is declared only here.

Case files ask for a scenario by its key under `measure:`. A latency path times one call of one stream. A scenario has
its own schedule, and its time is not part of `measure.budget`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rnnbench.measure.paths import Setting


@dataclass(frozen=True)
class Scenario:
    """One scenario."""

    name: str
    meaning: str
    """A sentence for readers of a report."""
    setting: Setting
    """The key of `measure:` that asks for it."""

    def value(self, settings: Mapping[str, float]) -> float:
        """The value of its key; 0 if it is not asked for."""
        return settings.get(self.setting.key, 0.0)


STREAMS = Scenario(
    "streams",
    "How many real-time streams are held: sessions of one process that are served in turn, each frame of all before "
    "the next one is due.",
    Setting(
        "streams",
        "duration",
        "Time between two steps of a real-time stream. How many such streams are held is then searched for.",
    ),
)
SERVER = Scenario(
    "server",
    "Calls that arrive at random (a Poisson process with a seeded schedule), and wait in one queue for one core.",
    Setting("server", "rate", "Requests per second that arrive at random, each for one call; null for none."),
)
SCENARIOS: Mapping[str, Scenario] = {scenario.name: scenario for scenario in (STREAMS, SERVER)}
