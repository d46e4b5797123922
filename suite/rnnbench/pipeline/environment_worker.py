"""The worker that describes an environment: its packages and what it supports. It runs in that environment's Python.

No framework is imported: versions come from package metadata, and support from the adapters.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

import rnnbench
from rnnbench.backends import digest_of, installed_files
from rnnbench.cases import Trial
from rnnbench.plan import close_adapters, examine_all
from rnnbench.stages import Examined
from rnnbench.worker import Command, run_worker


@dataclass(frozen=True)
class EnvironmentFacts:
    """The content of an environment."""

    source: str
    """Digest of the suite's files there: both sides must run the same suite."""
    python: str
    packages: dict[str, str]
    """The version of each distribution."""
    trials: tuple[Examined, ...]
    """The trials, as the adapters there examine them."""
    files: dict[str, str] = field(default_factory=dict)
    """A digest of the files of each distribution. That of the suite is `source`."""


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
    """The content of the running environment, and its adapters' answers on the command's trials."""
    examined = tuple(examine_all(command.trials))
    close_adapters()
    # If both layers of an environment have a package, the first one is imported. A pip that was interrupted may leave
    # a folder without metadata, which has no name.
    packages = {item.name.lower(): item for item in reversed(list(distributions())) if item.name}
    return EnvironmentFacts(
        source=source_digest(),
        python=platform.python_version(),
        packages={name: item.version for name, item in packages.items()},
        trials=examined,
        files={name: installed_files(item) for name, item in packages.items() if name != "rnnbench"},
    )


def main() -> None:
    run_worker({Describe: describe})


if __name__ == "__main__":
    main()
