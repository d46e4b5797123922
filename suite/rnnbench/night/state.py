"""`night.yaml`: the last good version of each backend, and the progress of the night."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, Field, ValidationError

from rnnbench.disk import any_damage_is_told, followed, open_plain, write_text
from rnnbench.history import Detection, Measured
from rnnbench.locks import holder_of, locked
from rnnbench.results import FrozenModel, StoreError, unwritable
from rnnbench.yaml_files import NO_END, has_end

SCHEMA: Literal[2] = 2
"""A file of schema 1 need not end with YAML's mark of the end."""
MOST_BYTES = 8 << 20
"""Bytes of the file that are read. With a hundred backends and their comparisons it has some 100 KiB, and a large file
would be read for hours."""
HEADER = "# Written by `rnnbench night`. To make a version the last good one by hand, edit `good`. See docs/night.md.\n"


def _time(text: str) -> str:
    datetime.fromisoformat(text)
    return text


class Build(FrozenModel):
    """One version of a backend's released package."""

    version: str
    requirements: str
    """The requirements from which its environment is made."""

    def alone(self) -> Build:
        """A plain `Build`, without the fields that a subclass adds."""
        return Build(version=self.version, requirements=self.requirements)


class Slowdown(FrozenModel):
    """A latency with a SLOWER verdict, and the answer of the second comparison."""

    found: Detection
    answer: Literal["confirmed", "refuted", "undecided"] = "undecided"
    measured: Measured | None = None
    """The ratio of the second comparison; None if it could not be made."""


class Compared(FrozenModel):
    """The comparison of the last good version with the newest."""

    good: Build
    runs: tuple[str, str]
    """The names of the runs of both sides."""
    versions: tuple[str, str]
    """The versions of the backend's packages on both sides, as texts of rows."""
    worse: bool
    """Whether a trial that was ok failed, or no longer conforms or is supported."""
    slower: tuple[Slowdown, ...] = ()
    confirmed: bool = False
    """Whether the second comparisons are done."""


class BackendNight(FrozenModel):
    """One backend in one night."""

    package: str = ""
    """The released package; empty for the baseline, whose version is that of the running environment."""
    newest: Build | None = None
    """The newest version; None if it is unknown, and for the baseline."""
    measured: Build | None = None
    """The measured version: the newest, or the last good one if the newest could not be installed."""
    problem: str = ""
    """Why the newest version was not measured."""
    compared: Compared | None = None
    not_compared: str = ""
    """Why a necessary comparison with the last good version was not made."""
    checked: str = ""
    """The name of the run of the newest version's conformance check."""
    not_checked: str = ""
    """Why a necessary conformance check was not made."""


class Night(FrozenModel):
    """A night in progress. The steps that are noted here are done, and are not made again."""

    started: Annotated[str, AfterValidator(_time)]
    """UTC, ISO 8601."""
    trials: str
    """A digest of its trials' ids. A command that selects other trials begins another night."""
    backends: dict[str, BackendNight]
    run: str = ""
    """The name of the run of the newest versions."""
    run_ended: bool = False
    same: tuple[str, str] | None = None
    """The names of the two runs of the A/A comparison."""
    problems: tuple[str, ...] = ()
    """Sentences about failed steps."""


class Good(Build):
    """The last good version of a backend. The newest version is compared with it."""

    since: str
    """The day on which it became the last good version."""


class Held(FrozenModel):
    """A newest version that is not good, and its alerts. It is not compared again."""

    version: str
    alerts: tuple[str, ...]


class State(FrozenModel):
    """The content of the file."""

    schema_version: Literal[1, 2] = SCHEMA
    good: dict[str, Good] = Field(default_factory=dict)
    """The last good version of each backend."""
    held: dict[str, Held] = Field(default_factory=dict)
    """The newest version of each backend that is not good."""
    night: Night | None = None


class _Loader(yaml.SafeLoader):
    """A loader that refuses aliases: a few lines of them can expand to more data than memory holds.

    It also refuses a key that is there twice: one of the two values would be dropped without a word.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="an alias; write the value out", problem_mark=mark)
        return super().compose_node(parent, index)

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        known: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in known:
                raise yaml.MarkedYAMLError(problem=f"the key '{key.value}' is here twice", problem_mark=key.start_mark)
            known.add(str(key.value))
        return node


@contextmanager
def hold_state(file: Path) -> Iterator[None]:
    """Lock a state file against other nights. Raises StoreError if another night works on it."""
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
    """The state in a file; an empty state if there is no file. An empty file has lost its state. Raises StoreError."""
    try:
        with open_plain(file) as opened:
            content = opened.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ValueError(f"expected at most {MOST_BYTES >> 20} MiB, and it is larger")
        with any_damage_is_told(yaml.YAMLError):
            read = yaml.load(content, _Loader)
        schema = read.get("schema_version") if isinstance(read, dict) else None
        if isinstance(schema, int) and schema > SCHEMA:
            raise StoreError(
                f"{file}: it has schema {schema}, and this rnnbench reads schemas up to {SCHEMA}; upgrade rnnbench"
            )
        if schema == SCHEMA and not has_end(content.decode("utf-8", "replace")):
            raise ValueError(NO_END)
        return State.model_validate(read)
    except FileNotFoundError:
        return State()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "its content"
        raise StoreError(
            f"{file}: {where}: {first['msg']}; correct it, or delete it: then a first night begins"
        ) from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise StoreError(f"{file}: cannot be read: {reason}; correct it, or delete it") from error


def write_state(file: Path, state: State) -> None:
    """Write a state file. Raises StoreError."""
    content = state.model_dump(mode="json", exclude_defaults=True, exclude={"schema_version"})
    text = HEADER + yaml.safe_dump(
        {"schema_version": SCHEMA, **content}, sort_keys=False, allow_unicode=True, width=4_096, explicit_end=True
    )
    try:
        write_text(followed(file), text, durable=True)
    except OSError as error:
        raise unwritable(file, error, "--state") from error
