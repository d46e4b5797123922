"""YAML text to plain data, with the line and column of every key and value.

It reads PyYAML's events. Anchors, aliases, tags and second documents are refused at their place, and nothing is ever
expanded. Plain scalars follow the core schema of YAML 1.2: `no` is a text, `010` is ten. But `0x10` and `0o10` are
texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from rnnbench.disk import open_plain
from rnnbench.spelling import absent
from rnnbench.yaml_files.errors import FileError, Place, Problem

KeyPath = tuple[str | int, ...]
"""Keys and list indices from the root: ("model", "hidden", 1)."""
Locate = Callable[[int, int], Place]
"""From a line and a column, both from 0, to a place."""

MAX_BYTES = 256 * 1024
"""Largest file, unless its kind says another. A case file has a few KiB; 1,000 exclusions have 60 KiB."""
MAX_DEPTH = 12
"""Deepest nesting. Our files need 5."""
MAX_DIGITS = 40
"""Longest number: every bound of a case is shorter."""

END = "..."
"""YAML's mark of the end of a document: the last line of a file that the suite writes. A cut file lacks it."""
NO_END = (
    f"the last line is not `{END}`: the file was cut, or something was written below; take a whole copy back, or, if "
    f"everything is there, let it end with this line"
)
"""What is said of a file that lacks it."""

_NULL = re.compile(r"(|~|null|Null|NULL)\Z")
_BOOL = re.compile(r"(true|True|TRUE|false|False|FALSE)\Z")
_INT = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z")


@dataclass(frozen=True)
class FileKind:
    """A kind of file: what its errors call it, and how they are raised."""

    name: str
    """With its article: "a case"."""
    error: type[FileError]
    max_bytes: int = MAX_BYTES


def dotted(path: KeyPath) -> str:
    """`model.hidden[1]`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "the file"


@dataclass(frozen=True)
class Source:
    """Plain data (dict, list, str, int, float, bool, None), with the place of each value and key."""

    name: str
    data: object
    values: Mapping[KeyPath, Place] = field(default_factory=dict)
    keys: Mapping[KeyPath, Place] = field(default_factory=dict)

    def place(self, path: KeyPath) -> Place:
        """The place of the value at `path`. Where it is not written, that of the nearest key or value around it."""
        if path in self.values:
            return self.values[path]
        while path:
            path = path[:-1]
            if path in self.keys:
                return self.keys[path]
            if path in self.values:
                return self.values[path]
        return Place(self.name)

    def key_place(self, path: KeyPath) -> Place:
        return self.keys[path] if path in self.keys else self.place(path)

    def problem(self, path: KeyPath, message: str) -> Problem:
        """What is wrong with the value at `path`, at its place and under its name."""
        return Problem(self.place(path), f"{dotted(path)}: {message}")

    def at(self, path: KeyPath) -> object:
        """The value at `path`, or None."""
        node = self.data
        for part in path:
            if isinstance(node, dict) or (isinstance(node, list) and isinstance(part, int) and part < len(node)):
                node = node.get(part) if isinstance(node, dict) else node[part]  # type: ignore[index]
            else:
                return None
        return node


def read_source(path: Path, kind: FileKind) -> Source:
    """The one document of a file. Raises the kind's error, with line and column wherever there are any."""
    name = str(path)
    try:
        with open_plain(path) as file:
            raw = file.read(kind.max_bytes + 1)
    except FileNotFoundError as error:
        raise kind.error.at(Place(name), absent(path)) from error
    except OSError as error:
        reason = error.strerror or error
        raise kind.error.at(Place(name), f"cannot be read: {reason}; correct its path, or its permissions") from error
    if len(raw) > kind.max_bytes:
        most = kind.max_bytes // 1024
        raise kind.error.at(Place(name), f"expected a file of at most {most} KiB, and this is larger")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8-sig", "replace")
        place = _file_place(name)(*_line_and_column(before, len(before)))
        raise kind.error.at(place, f"expected UTF-8 text, got the byte 0x{raw[error.start]:02x}") from error
    return parse(text, name, _file_place(name), kind)


def parse(text: str, name: str, locate: Locate, kind: FileKind) -> Source:
    """The one document of `text`. `locate` turns a line and a column of it (from 0) into a place."""
    builder = _Builder(text, locate, kind)
    try:
        data = builder.document()
    except FileError:
        raise
    except yaml.reader.ReaderError as error:
        place = locate(*_line_and_column(text, error.position))
        raise kind.error.at(place, f"the character U+{ord(text[error.position]):04X} is not allowed in YAML") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = locate(mark.line, mark.column) if mark else Place(name)
        context = f" ({error.context})" if error.context else ""
        raise kind.error.at(place, f"not YAML: {error.problem}{context}") from error
    except (ValueError, OverflowError) as error:  # An escape that is no character of Unicode.
        raise kind.error.at(builder.reached, f"not YAML after this: {error}") from error
    return Source(name, data, builder.values, builder.keys)


def has_end(text: str) -> bool:
    """Whether the last line that is not empty is END."""
    return text.rstrip().splitlines()[-1:] == [END]


def _file_place(name: str) -> Locate:
    return lambda line, column: Place(name, line + 1, column + 1)


def _line_and_column(text: str, position: int) -> tuple[int, int]:
    return text.count("\n", 0, position), position - (text.rfind("\n", 0, position) + 1)


class _Builder:
    """Data from events. Recursion is bounded by MAX_DEPTH."""

    def __init__(self, text: str, locate: Locate, kind: FileKind) -> None:
        self.values: dict[KeyPath, Place] = {}
        self.keys: dict[KeyPath, Place] = {}
        self._locate = locate
        self._kind = kind
        self.reached = locate(0, 0)
        """The place of the last event."""
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.SafeLoader)

    def document(self) -> object:
        next(self._events)
        start = next(self._events)
        if not isinstance(start, yaml.DocumentStartEvent):
            raise self._error(self._place(start), "expected one YAML document, got an empty file")
        data = self._node(next(self._events), ())
        next(self._events)
        end = next(self._events)
        if isinstance(end, yaml.DocumentStartEvent):
            raise self._error(self._place(end), "expected one YAML document, and here a second begins; split the file")
        return data

    def _place(self, event: yaml.Event) -> Place:
        mark = event.start_mark
        self.reached = self._locate(mark.line, mark.column) if mark else self._locate(0, 0)
        return self.reached

    def _error(self, place: Place, message: str) -> FileError:
        return self._kind.error.at(place, message)

    def _node(self, event: yaml.Event, path: KeyPath) -> object:
        place = self._place(event)
        self._refuse_magic(event, place)
        if len(path) > MAX_DEPTH:
            raise self._error(place, f"nested more than {MAX_DEPTH} deep; {self._kind.name} needs 5")
        self.values[path] = place
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, place)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path)
        return self._mapping(path)

    def _refuse_magic(self, event: yaml.Event, place: Place) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise self._error(
                place, f"the alias *{event.anchor} is not allowed in {self._kind.name}; write the value out"
            )
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            raise self._error(
                place, f"the anchor &{event.anchor} is not allowed in {self._kind.name}; write each value out"
            )
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            raise self._error(place, f"the tag {event.tag} is not allowed in {self._kind.name}; leave it out")

    def _sequence(self, path: KeyPath) -> list[object]:
        items: list[object] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items))))
        return items

    def _mapping(self, path: KeyPath) -> dict[str, object]:
        mapping: dict[str, object] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            place = self._place(event)
            self._refuse_magic(event, place)
            key = self._scalar(event, place) if isinstance(event, yaml.ScalarEvent) else None
            if not isinstance(key, str):
                raise self._error(place, "expected the name of a key")
            if key in mapping:
                raise self._error(place, f"the key '{key}' is here twice; the first is at {self.keys[*path, key]}")
            self.keys[*path, key] = place
            mapping[key] = self._node(next(self._events), (*path, key))
        return mapping

    def _scalar(self, event: yaml.ScalarEvent, place: Place) -> object:
        text = event.value
        if event.style is not None:
            return text
        if _NULL.match(text):
            return None
        if _BOOL.match(text):
            return text.lower() == "true"
        if _INT.match(text) or _FLOAT.match(text):
            if len(text) > MAX_DIGITS:
                raise self._error(place, f"expected a number of at most {MAX_DIGITS} characters, got {len(text)}")
            return int(text) if _INT.match(text) else float(text)
        if _SPECIAL.match(text):
            return float(text.replace(".", "", 1))
        return text
