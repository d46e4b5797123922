"""From the text of a file to a record or a run's info: upgraded from its schema, checked, and errors with their place.

A field that this version does not know, of a newer writer of the same schema, is left out and named in a warning.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from rnnbench import __version__
from rnnbench.content_digest import EDITED, without_digest
from rnnbench.results.frozen_model import FrozenModel
from rnnbench.results.migrations import Content, UnknownSchemaError, upgrade_record
from rnnbench.results.record import SCHEMA, Record
from rnnbench.results.text import visible

M = TypeVar("M", bound=FrozenModel)
DEEPEST = 64
"""Levels of arrays and objects in a file that is read. Ours have fewer than ten. One with hundreds cannot be written
again: Pydantic and Python end with errors of their own."""
_IN_JSON: dict[type, str] = {list: "an array", str: "a string", bool: "true or false", type(None): "null"}


class StoreError(Exception):
    """A run cannot be read or written. The message names the file or folder, what is wrong, and what to do."""


class DamagedError(StoreError):
    """A text that is no record: torn, overwritten or edited. Others of the same file may be whole."""


@dataclass
class Reader:
    """Reads the objects of one file, and collects the fields that it does not know."""

    file: str
    seed: int | None = None
    """The seed of the records' run."""
    unknown: set[str] = field(default_factory=set)
    """Dotted names of the fields that were left out."""

    def parse_record(self, text: bytes, line: int) -> Record:
        """`text` as a record of this run.

        Raises as `parse` does, and DamagedError for one of another run or with a digest that is not its own.
        """
        text, is_as_written = without_digest(text)
        if not is_as_written:  # Its schema may be what is damaged.
            raise DamagedError(f"{self.file}:{line}: {EDITED}")
        record = self._record(text, line)
        if record.run_seed not in (None, self.seed):
            raise DamagedError(
                f"{self.file}:{line}: a record of another run, with the seed {record.run_seed} and not {self.seed}"
            )
        return record

    def _record(self, text: bytes, line: int) -> Record:
        """A record of the present schema is validated as it is, which takes half the time of an upgrade."""
        try:
            record = Record.model_validate_json(text)
            if record.schema_ == SCHEMA and "schema_" in record.model_fields_set:
                return record
        except ValidationError:
            pass  # `parse` upgrades it, leaves fields out, or says what is wrong.
        return self.parse(Record, upgrade_record, text, line)

    def parse(self, model: type[M], upgrade: Callable[[Content], Content], text: bytes, line: int | None = None) -> M:
        """`text` as a `model`. Raises StoreError, which names the file and the line; DamagedError for no such text."""
        where = self.file if line is None else f"{self.file}:{line}"
        try:
            return self._parsed(model, upgrade, text, where)
        except StoreError as error:
            raise type(error)(visible(str(error))) from error

    def _parsed(self, model: type[M], upgrade: Callable[[Content], Content], text: bytes, where: str) -> M:
        content = _json_object(text, where)
        try:
            upgraded = upgrade(content)
        except UnknownSchemaError as error:
            raise StoreError(f"{where}: {_other_schema(content)}") from error
        except (TypeError, AttributeError, ValueError, RecursionError) as error:
            raise DamagedError(
                f"{where}: {_damaged(model, content)}: {error}; restore the file, or run again"
            ) from error
        try:
            return self._validated(model, upgraded)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = _dotted(first["loc"])
            raise DamagedError(
                f"{where}: {_damaged(model, content)}: {name}: {first['msg']}; "
                f"read it with the rnnbench that wrote it, or run again"
            ) from error

    def warnings(self) -> tuple[str, ...]:
        """One sentence where fields were left out."""
        if not self.unknown:
            return ()
        return (
            f"{self.file}: fields that rnnbench {__version__} does not know were ignored: "
            f"{', '.join(map(visible, sorted(self.unknown)))}; a newer rnnbench wrote the file",
        )

    def _validated(self, model: type[M], content: Content) -> M:
        try:
            return model.model_validate(content)
        except ValidationError as error:
            unknown = [found["loc"] for found in error.errors(include_url=False) if found["type"] == "extra_forbidden"]
            if not unknown:
                raise
            for location in unknown:
                _remove(content, location)
            self.unknown |= {_dotted(location) for location in unknown}
            return model.model_validate(content)


def _json_object(text: bytes, where: str) -> Content:
    """Half a surrogate pair, which only an escape can write, becomes a question mark: no text of UTF-8 holds it.

    A text of UTF-16, or with half a pair as bytes, which `json` reads too, is damaged: it is not UTF-8.
    """
    try:
        content = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{where}: not JSON: {error}; restore the file, or delete what is broken in it") from error
    if _is_deeper(content, DEEPEST):
        raise DamagedError(f"{where}: has more than {DEEPEST} levels of arrays and objects; restore the file")
    if b"\\ud" in text.lower():
        content = json.loads(json.dumps(content, ensure_ascii=False).encode(errors="replace"))
    if not isinstance(content, dict):
        got = _IN_JSON.get(type(content), "a number")
        raise DamagedError(f"{where}: expected a JSON object, got {got}; is this rnnbench's file?")
    return content


def _is_deeper(content: Any, most: int) -> bool:
    """Whether values lie in each other on more than `most` levels."""
    values = [content]
    for _ in range(most + 1):
        inner = (
            value.values() if isinstance(value, dict) else value for value in values if isinstance(value, dict | list)
        )
        values = [value for some in inner for value in some]
        if not values:
            return False
    return True


def _remove(content: Any, location: tuple[int | str, ...]) -> None:
    *path, name = location
    for key in path:
        content = content[key]
    del content[name]


def _dotted(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location)


def _damaged(model: type[FrozenModel], content: Content) -> str:
    return f"not a {model.__name__} of schema {content.get('schema')}"


def _other_schema(content: Content) -> str:
    schema = content.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        writer = content.get("rnnbench")
        version = f"rnnbench {writer} or later" if isinstance(writer, str) else "a newer rnnbench"
        return (
            f"has schema {schema}, and this rnnbench ({__version__}) reads schemas up to {SCHEMA}; "
            f"upgrade rnnbench to read it: {version} can"
        )
    return (
        f"has schema {schema!r}, and this rnnbench ({__version__}) reads schemas 1 to {SCHEMA}; "
        f"read it with the rnnbench that wrote it"
    )
