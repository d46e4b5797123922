"""What every part of a record is made as."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")
    """A broken program's errors are infinite or NaN, and JSON has no number for either."""
