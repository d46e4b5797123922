"""Pydantic's errors in the words of people: the place, what was expected, what was there, and what to do."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rnnbench.yaml_files import FileError, FileKind, Place, TitleGenerator, parse, problems_of

KIND = FileKind("a garden", FileError)
Name = Annotated[str, Field(pattern="^[a-z]+$")]


class Section(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class Owner(Section):
    name: str = ""


class Tree(Section):
    species: str = ""
    sign: Annotated[str, Field(min_length=2)] = "oak"
    owner: Owner | bool = False
    kind: Literal["oak", "elm"] = "oak"
    height: int = Field(default=1, ge=1, le=2_000)
    age: float = Field(default=1.0, gt=0)
    pruned: bool = False
    span: tuple[int, int] = (1, 2)
    note: Annotated[str, Field(max_length=5)] = ""
    birds: Annotated[list[int], Field(max_length=2)] = []


class Pond(Section):
    depth: float | None = Field(default=None, allow_inf_nan=False)
    fish: dict[Name, int] = {}


class Garden(Section):
    tree: Tree
    pond: Pond = Pond()


def problems(text: str) -> list[str]:
    source = parse(text, "garden.yaml", lambda line, column: Place("garden.yaml", line + 1, column + 1), KIND)
    schema: dict[str, Any] = Garden.model_json_schema(schema_generator=TitleGenerator)
    with pytest.raises(ValidationError) as raised:
        Garden.model_validate(source.data)
    return [str(problem) for problem in problems_of(raised.value, source, schema)]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("height: [1, 2]", "tree.height: expected a whole number from 1 to 2,000, got a list of 2"),
        ("height: {a: 1}", "tree.height: expected a whole number from 1 to 2,000, got a mapping"),
        ("height:", "tree.height: expected a whole number from 1 to 2,000, got nothing"),
        ("height: true", "tree.height: expected a whole number from 1 to 2,000, got true"),
        ("height: 2001", "tree.height: expected a whole number from 1 to 2,000, got 2001"),
        ("age: 0", "tree.age: expected a number above 0, got 0"),
        ("pruned: 1", "tree.pruned: expected true or false, got 1"),
        ("kind: elf", "tree.kind: expected one of oak, elm, got the text 'elf'; did you mean 'elm'?"),
        ("span: [1]", "tree.span: expected a list of a whole number and a whole number, got a list of 1"),
        ("note: flowers", "tree.note: expected a text of at most 5 characters, got the text 'flowers'"),
        ("species: 3", "tree.species: expected a text, got 3"),
        ("sign: x", "tree.sign: expected a text of at least 2 characters, got the text 'x'"),
        ("owner: [1]", "tree.owner: expected a mapping or true or false, got a list of 1"),
        ("birds: [1, 2, 3]", "tree.birds: expected at most 2 values, got a list of 3"),
        ("hight: 3", "unknown key 'hight' in tree; did you mean 'height'?"),
        ("depth: 3", "unknown key 'depth' in tree; did you mean pond.depth?"),
    ],
)
def test_a_wrong_value_is_told_with_what_was_expected(written: str, told: str) -> None:
    (said,) = problems(f"tree:\n  {written}\n")
    assert said.startswith("garden.yaml:2:")
    assert told in said


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pond: {}\n", "garden.yaml:1:1: the key 'tree' is missing; add it: a mapping"),
        ("tree: 3\n", "garden.yaml:1:7: tree: expected a mapping, got 3"),
        ("tree: {}\npond: {depth: deep}\n", "pond.depth: expected a finite number, got the text 'deep'"),
        ("tree: {}\npond: {fish: {Carp: 1}}\n", "pond.fish.Carp: expected a text as the key, got 'Carp'"),
    ],
)
def test_a_wrong_section_is_told_at_its_place(text: str, told: str) -> None:
    (said,) = problems(text)
    assert told in said


def test_every_mistake_is_told_once() -> None:
    assert len(problems("tree: {height: 0, pruned: 2}\npond: {depth: x}\n")) == 3
