"""Durations, sizes and shares with units: `120s`, `4GiB`, `1%`. A plain number is seconds, bytes, or the share itself.

pydantic's ByteSize accepts `True`, drops fractions and has no bounds, so all kinds are read here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

SECONDS: Mapping[str, float] = {"ms": 1e-3, "s": 1, "min": 60, "h": 3600}
BYTES: Mapping[str, float] = {
    "B": 1,
    **{f"{p}B": 1000**n for n, p in enumerate("kMGT", 1)},
    **{f"{p}iB": 1024**n for n, p in enumerate("KMGT", 1)},
}
SHARE: Mapping[str, float] = {"%": 1e-2}
_WRITTEN = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) ?([A-Za-z]+|%)\Z")


def parse(value: object, units: Mapping[str, float]) -> float | None:
    """`value` in the base unit; None if it is neither a finite number nor a number with one of `units`."""
    if isinstance(value, str):
        written = _WRITTEN.match(value)
        return float(written[1]) * units[written[2]] if written and written[2] in units else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value


def parse_duration(value: object) -> float | None:
    """`value` in seconds. None if it is not a duration."""
    return parse(value, SECONDS)


def parse_share(value: object) -> float | None:
    """`value` as a fraction. None if it is not a share."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]*\.?[0-9]+", value):
        return float(value)
    return parse(value, SHARE)


def parse_size(value: object) -> float | None:
    """`value` in bytes. None if it is not a size."""
    number = re.fullmatch(r"[0-9]{1,15}", value) if isinstance(value, str) else None
    return parse(int(number[0]) if number else value, BYTES)


@dataclass(frozen=True)
class Quantity:
    """A pydantic annotation: a float (duration, share) or an int (size) between two bounds, with or without a unit."""

    noun: str
    units: Mapping[str, float] = field(hash=False)
    minimum: str
    maximum: str
    example: str
    base: str
    """The unit of a plain number. Empty for a ratio."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        low, high = self._bounds()

        def validate(value: object) -> float:
            number = parse(value, self.units)
            if number is None or not low <= number <= high:
                raise ValueError("not such a quantity")
            return source(number)  # type: ignore[no-any-return]

        return core_schema.no_info_plain_validator_function(validate)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        pattern = f"^[0-9]+(\\.[0-9]+)? ?({'|'.join(self.units)})$"
        plain = f"a plain number of {self.base}" if self.base else "a plain number"
        title = f"a {self.noun} from {self.minimum} to {self.maximum}, such as {self.example}, or {plain}"
        low, high = self._bounds()
        number = {"type": "number", "minimum": low, "maximum": high}
        return {"title": title, "anyOf": [{"type": "string", "pattern": pattern}, number]}

    def _bounds(self) -> tuple[float, float]:
        return parse(self.minimum, self.units) or 0, parse(self.maximum, self.units) or 0
