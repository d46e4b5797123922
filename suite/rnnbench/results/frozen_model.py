"""The base of every type in a record."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Self, get_args

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """A value that never changes. An unknown field raises; `results.reading` drops those of a newer writer first.

    JSON has no infinity and no NaN, which a broken program's errors may be: both are written as strings.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values. Raises TypeError for a name that is no field: Pydantic would keep the old value."""
        if unknown := set(update or ()) - type(self).model_fields.keys():
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        return super().model_copy(update=update, deep=deep)


def share_field_sets(model: BaseModel) -> None:
    """Let all models of one type share the set of the fields that were given, here and in what the model holds.

    Nobody asks a record which fields were given, and these sets are half of its memory.
    """
    names, holders = _fields_of(type(model))
    object.__setattr__(model, "__pydantic_fields_set__", names)
    for holder in holders:
        value = model.__dict__[holder]
        for held in value.values() if isinstance(value, dict) else (value,):
            if isinstance(held, BaseModel):
                share_field_sets(held)


@cache
def _fields_of(model: type[BaseModel]) -> tuple[set[str], tuple[str, ...]]:
    """The names of the fields, and of those whose values are models, or models by name."""
    fields = model.model_fields
    return set(fields), tuple(name for name, field in fields.items() if _holds_models(field.annotation))


def _holds_models(annotation: object) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    return any(map(_holds_models, get_args(annotation)))
