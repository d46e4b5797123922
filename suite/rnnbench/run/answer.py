"""What an environment answers when it is asked: run by its own interpreter, with trials on stdin and JSON on stdout.

No framework is imported: what is installed comes from package metadata, and what is supported from the adapters.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from pydantic import TypeAdapter

import rnnbench
from rnnbench.backends.base import Probe, Support
from rnnbench.cases.trial import Trial
from rnnbench.run.messages import Failure
from rnnbench.run.prepare import examine


@dataclass(frozen=True)
class TrialAnswer:
    """What the environment's adapter says of one trial."""

    probe: Probe
    support: Support
    stage: str
    failure: Failure | None


@dataclass(frozen=True)
class Answer:
    source: str
    """Digest of the suite's own files there: both sides must run the same suite."""
    python: str
    packages: dict[str, str]
    """Version by distribution."""
    trials: tuple[TrialAnswer, ...]


TRIALS = TypeAdapter(list[Trial])
ANSWER = TypeAdapter(Answer)


def source_digest() -> str:
    """SHA-256 of the suite's Python files."""
    root = Path(rnnbench.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def answer(trials: list[Trial]) -> Answer:
    found = [examine(trial) for trial in trials]
    return Answer(
        source=source_digest(),
        python=platform.python_version(),
        packages={item.name.lower(): item.version for item in distributions()},
        trials=tuple(TrialAnswer(f.probe, f.support, f.stage, f.failure) for f in found),
    )


if __name__ == "__main__":
    sys.stdout.write(ANSWER.dump_json(answer(TRIALS.validate_json(sys.stdin.buffer.read()))).decode())
