"""`alerts.yaml`: read with the place of every mistake, and edited so that what people wrote stays as it is."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rnnbench.disk import any_damage_is_told, followed, read_plain, write_text
from rnnbench.history.alert import FIRST_WITH_END, REQUIRED, SCHEMA, Alert, AlertsContent
from rnnbench.locks import locked
from rnnbench.optional import require
from rnnbench.results import unwritable
from rnnbench.yaml_files import (
    NO_END,
    FileError,
    FileKind,
    Place,
    Problem,
    Source,
    TitleGenerator,
    has_end,
    parse,
    problems_of,
    read_source,
)

HEADER = """\
# Alerts of the history. `rnnbench history alerts` updates this file, and keeps what you write and your comments.
# Yours: state, note, accepted {why, by, until}, reported {issue, on}. Not yours: id, found. See docs/history.md.
schema: 3
alerts: []
...
"""
Content = dict[str, Any]


class AlertsError(FileError):
    """The file of the alerts cannot be used, or has no such alert. It is never overwritten then."""


KIND = FileKind("the file of the alerts", AlertsError, max_bytes=8 << 20)


def read_file(file: Path) -> tuple[str, tuple[Alert, ...], frozenset[str]]:
    """Its text, its alerts, and the ids of those beside which people wrote comments. No file: no alerts."""
    if not file.exists():
        return "", (), frozenset()
    source = read_source(file, KIND)
    text = read_plain(file).decode("utf-8-sig")
    alerts = _validated(source, text)
    return text, alerts, frozenset(_commented(text, source, alerts))


def write_file(file: Path, text: str, before: tuple[Alert, ...], after: tuple[Alert, ...]) -> str:
    """Put the alerts into the file, whose text was `text`; returns the new text. Raises AlertsError and StoreError."""
    new = edited(file, text, before, after)
    try:
        if new == text == _text_of(file):
            return new
        real = followed(file)
        with locked(real.with_name(f"{real.name}.lock")):  # Nobody else writes between the look and the writing.
            if _text_of(file) != text:
                raise AlertsError.at(Place(str(file)), "was changed while rnnbench worked on it; run the command again")
            write_text(real, new, durable=True)
    except OSError as error:
        raise unwritable(file, error, "--alerts") from error
    return new


def _text_of(file: Path) -> str:
    return read_plain(file).decode("utf-8-sig") if file.exists() else ""


def edited(file: Path, text: str, before: tuple[Alert, ...], after: tuple[Alert, ...]) -> str:
    """The text with the alerts `after`. Only keys that differ from `before` are touched. Raises AlertsError."""
    if before == after and text:
        return text
    yaml = _round_trip(text)
    try:
        with any_damage_is_told():  # Two readers of YAML differ: a text of the one is a wrong date of the other.
            new = _dumped(yaml, yaml.load(text or HEADER), before, after)
        kept = _validated(parse(new, str(file), lambda line, column: Place(str(file), line + 1, column + 1), KIND), new)
    except ValueError as error:
        raise _uneditable(file) from error
    if kept != after:
        raise _uneditable(file)
    return new


def _uneditable(file: Path) -> AlertsError:
    what = "cannot be edited without loss, and stays as it is; write its entries in plain block style, one key a line"
    return AlertsError.at(Place(str(file)), what)


def _dumped(yaml: Any, document: Any, before: tuple[Alert, ...], after: tuple[Alert, ...]) -> str:
    alerts = document["alerts"]
    if not alerts:  # `[]` is in flow style
        alerts = document["alerts"] = yaml.seq()
    kept, by_id = {alert.id for alert in after}, {alert.id: alert for alert in before}
    for index in reversed(range(len(alerts))):
        if alerts[index]["id"] not in kept:
            del alerts[index]
    nodes = {node["id"]: node for node in alerts}
    for alert in after:
        if alert.id in nodes:
            _merge(nodes[alert.id], _content(by_id[alert.id]), _content(alert))
        else:
            alerts.append(_content(alert))
    document["schema"] = SCHEMA
    stream = io.StringIO()
    yaml.dump(document, stream)
    return stream.getvalue()


def _round_trip(text: str) -> Any:
    ruamel = require("ruamel.yaml", "history", "the file of the alerts")
    yaml = ruamel.YAML()
    yaml.width, yaml.preserve_quotes, yaml.explicit_end = 4_096, True, True
    if "\n  - id:" in text:
        yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _content(alert: Alert) -> Content:
    """As plain data, without what is not there."""
    content: Content = alert.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return content


def _merge(node: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    for key in before.keys() - after.keys():
        del node[key]
    for key, value in after.items():
        old = before.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            _merge(node[key], old, value)
        elif (old != value and key == "state") or (old != value and key in node):
            node[key] = value
        elif old != value:
            # A decision stands before what was found.
            node.insert(list(node).index("found") if "found" in node else len(node), key, value)


def _validated(source: Source, text: str) -> tuple[Alert, ...]:
    try:
        content = AlertsContent.model_validate(source.data)
    except ValidationError as error:
        raise AlertsError(problems_of(error, source, _schema())) from error
    if content.schema_ >= FIRST_WITH_END and not has_end(text):
        raise AlertsError.at(Place(source.name, text.rstrip().count("\n") + 1, 1), NO_END)
    alerts = tuple(content.alerts)
    if problems := [*_missing_decisions(alerts, source), *_twice(alerts, source)]:
        raise AlertsError(problems)
    return alerts


def _missing_decisions(alerts: tuple[Alert, ...], source: Source) -> Iterator[Problem]:
    words = {"accepted": "{why: …, by: …, until: 2026-12-31}", "reported": "{issue: https://…, on: 2026-12-31}"}
    for index, alert in enumerate(alerts):
        needed = REQUIRED.get(alert.state)
        if needed and getattr(alert, needed) is None:
            place = source.place(("alerts", index, "state"))
            example = f"add {needed}: {words[needed]}" if needed in words else "only rnnbench sets it; write 'new'"
            yield Problem(place, f"alerts[{index}]: the state '{alert.state}' needs the key '{needed}'; {example}")


def _twice(alerts: tuple[Alert, ...], source: Source) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, alert in enumerate(alerts):
        if first.setdefault(alert.id, index) != index:
            at = source.place(("alerts", first[alert.id], "id"))
            yield Problem(source.place(("alerts", index, "id")), f"the id '{alert.id}' is here twice; first at {at}")


@cache
def _schema() -> dict[str, Any]:
    return AlertsContent.model_json_schema(schema_generator=TitleGenerator)


def _commented(text: str, source: Source, alerts: tuple[Alert, ...]) -> Iterator[str]:
    """Alerts with a comment in them, before them or after them: a parser cannot tell whose it is between two."""
    lines = text.splitlines()
    starts = [(source.place(("alerts", index)).line or 1) - 1 for index in range(len(alerts))]
    ends = [*starts, len(lines)][1:]
    for alert, start, end in zip(alerts, starts, ends, strict=True):
        while start and lines[start - 1].lstrip().startswith("#"):
            start -= 1
        if any("#" in line for line in lines[start:end]):
            yield alert.id
