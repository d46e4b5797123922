"""`night.yaml`: the last good versions of each backend, and how far the night in progress has come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import AfterValidator, Field, ValidationError

from rnnbench.disk import followed, read_plain, write_text
from rnnbench.history import Found, Measured
from rnnbench.locks import holder_of, locked
from rnnbench.results import FrozenModel, StoreError, unwritable

SCHEMA: Literal[1] = 1
HEADER = "# Written by `rnnbench night`. To make a version the last good one by hand, edit `good`. See docs/night.md.\n"


def _time(text: str) -> str:
    datetime.fromisoformat(text)
    return text


class Build(FrozenModel):
    """One version of the package whose releases are a backend's."""

    version: str
    requirements: str
    """What an environment of it is made from."""

    def alone(self) -> Build:
        """Without what a subclass adds."""
        return Build(version=self.version, requirements=self.requirements)


class Slower(FrozenModel):
    """A latency that a comparison found SLOWER, and what the second comparison said of it."""

    found: Found
    answer: Literal["confirmed", "refuted", "undecided"] = "undecided"
    measured: Measured | None = None
    """By the second comparison; None if it could not be made."""


class Compared(FrozenModel):
    """The last good versions beside today's."""

    good: Build
    runs: tuple[str, str]
    """Names of the runs of both sides."""
    versions: tuple[str, str]
    """Of the backend's packages on both sides, as rows have them."""
    worse: bool
    """Whether a trial that was ok failed, or no longer conforms or is supported."""
    slower: tuple[Slower, ...] = ()
    confirmed: bool = False
    """Whether the second comparisons are done."""


class BackendNight(FrozenModel):
    """One backend in one night."""

    package: str = ""
    """Empty for the baseline, whose versions are those of the environment that runs the command."""
    newest: Build | None = None
    """Today's; None if it is not known, or is the baseline."""
    measured: Build | None = None
    """What was measured: the newest, or the last good versions where the newest could not be installed."""
    problem: str = ""
    """Why the newest was not measured."""
    compared: Compared | None = None
    not_compared: str = ""
    """Why the newest and the last good versions were not compared, where they had to be."""
    checked: str = ""
    """Name of the run of the conformance check of the newest version."""
    not_checked: str = ""
    """Why its conformance was not checked, where it had to be."""


class Night(FrozenModel):
    """A night in progress: what is in it is done, and is not done again."""

    started: Annotated[str, AfterValidator(_time)]
    """UTC, ISO 8601."""
    trials: str
    """Digest of the ids of its trials. A command that selects others begins another night."""
    backends: dict[str, BackendNight]
    run: str = ""
    """Name of the run of today's versions."""
    run_ended: bool = False
    same: tuple[str, str] | None = None
    """Names of the runs of the A/A comparison."""
    problems: tuple[str, ...] = ()
    """Steps that failed, a sentence each."""


class Good(Build):
    """The last good version of a backend: what the newest is compared with."""

    since: str
    """Day on which it became the last good one."""


class Held(FrozenModel):
    """A newest version that is not good, and the alerts that say why: it is compared once."""

    version: str
    alerts: tuple[str, ...]


class State(FrozenModel):
    """The content of the file."""

    schema_version: Literal[1] = SCHEMA
    good: dict[str, Good] = Field(default_factory=dict)
    """By backend."""
    held: dict[str, Held] = Field(default_factory=dict)
    """By backend."""
    night: Night | None = None


class _Loader(yaml.SafeLoader):
    """A state has no aliases. A few lines of them can stand for more data than memory holds."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="an alias; write the value out", problem_mark=mark)
        return super().compose_node(parent, index)


@contextmanager
def hold_state(file: Path) -> Iterator[None]:
    """Keeps other nights away from a state while one works on it. Raises StoreError if another one does."""
    path = followed(file)
    path = path.with_name(f"{path.name}.lock")
    with ExitStack() as held:
        try:
            held.enter_context(locked(path, wait=False))
        except BlockingIOError as error:
            raise StoreError(
                f"{file} is in use: another night works on it, {holder_of(path)}; wait until it has ended, or give "
                f"another --state"
            ) from error
        except OSError as error:
            raise unwritable(file, error, "--state") from error
        yield


def read_state(file: Path) -> State:
    """The state in a file; where there is none, one without backends. Raises StoreError."""
    try:
        return State.model_validate(yaml.load(read_plain(file), _Loader) or {})
    except FileNotFoundError:
        return State()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "its content"
        raise StoreError(
            f"{file}: {where}: {first['msg']}; correct it, or delete it: then a first night begins"
        ) from error
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        reason = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise StoreError(f"{file}: cannot be read: {reason}; correct it, or delete it") from error


def write_state(file: Path, state: State) -> None:
    """Raises StoreError."""
    content = state.model_dump(mode="json", exclude_defaults=True)
    text = HEADER + yaml.safe_dump(
        {"schema_version": SCHEMA, **content}, sort_keys=False, allow_unicode=True, width=4_096
    )
    try:
        write_text(followed(file), text, durable=True)
    except OSError as error:
        raise unwritable(file, error, "--state") from error
