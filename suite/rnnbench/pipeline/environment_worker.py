"""The worker that says what an environment has and supports. It runs in that environment's own Python.

No framework is imported: versions come from package metadata, and support from the adapters.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

import rnnbench
from rnnbench.backends import digest_of
from rnnbench.cases import Trial
from rnnbench.plan import close_adapters, examine_all
from rnnbench.stages import Examined
from rnnbench.worker import Command, attempt, die_with_parent, encode_reply, open_channel, receive_command


@dataclass(frozen=True)
class EnvironmentFacts:
    """What an environment has."""

    source: str
    """Digest of the suite's own files there: both sides must run the same suite."""
    python: str
    packages: dict[str, str]
    """Version by distribution."""
    trials: tuple[Examined, ...]
    """The trials, as its adapters see them."""


@dataclass(frozen=True)
class Describe(Command[EnvironmentFacts]):
    """The first and only command."""

    trials: tuple[Trial, ...]


@cache
def source_digest() -> str:
    """SHA-256 of the suite's Python files."""
    root = Path(rnnbench.__file__).parent
    return digest_of((str(path.relative_to(root)), path) for path in sorted(root.rglob("*.py")))


def describe(command: Describe) -> EnvironmentFacts:
    examined = tuple(examine_all(command.trials))
    close_adapters()
    return EnvironmentFacts(
        source=source_digest(),
        python=platform.python_version(),
        # Of a package in both layers of an environment, the first is the one that is imported.
        packages={item.name.lower(): item.version for item in reversed(list(distributions()))},
        trials=examined,
    )


def main() -> None:
    """Carry out one command."""
    die_with_parent()
    channel = open_channel()
    command = receive_command(channel, {Describe: None})
    assert isinstance(command, Describe), "there is no other"
    channel.send(encode_reply(attempt(lambda: describe(command), "run-failed")))


if __name__ == "__main__":
    main()
