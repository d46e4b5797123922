"""The base of every type in a record."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """A value that never changes. An unknown field raises; `results.reading` drops those of a newer writer first.

    JSON has no infinity and no NaN, which a broken program's errors may be: both are written as strings.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")
