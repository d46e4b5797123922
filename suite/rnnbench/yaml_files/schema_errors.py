"""Turns pydantic's errors into problems of the file: the place, what was expected, what was there, and what to do."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import reduce
from typing import Any

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import ErrorDetails, core_schema

from rnnbench.spelling import did_you_mean, hint
from rnnbench.yaml_files.errors import Problem
from rnnbench.yaml_files.source import KeyPath, Source, dotted

Schema = dict[str, Any]

KEY = "[key]"
"""Where pydantic says that the key of a mapping is wrong, and not its value."""
MAX_PROBLEMS = 100
"""Most problems of one file. Each costs a search for the nearest name."""


class TitleGenerator(GenerateJsonSchema):
    """Keeps only the titles that a schema's module sets: they are the words of error messages."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return {key: value for key, value in super().model_schema(schema).items() if key != "title"}

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """What keys and values are, where messages look for it. Pydantic leaves out a key's type and title."""
        made = super().dict_schema(schema)
        if patterns := made.pop("patternProperties", None):
            (made["additionalProperties"],) = patterns.values()
        if patterns or "propertyNames" in made:
            made["propertyNames"] = self.generate_inner(schema["keys_schema"])
        return made


def problems_of(error: ValidationError, source: Source, schema: Schema) -> Iterator[Problem]:
    """One problem for each key or value that is wrong, in the order of the schema, up to MAX_PROBLEMS.

    `schema` is the JSON Schema of the file. Of a file of a newer rnnbench that is the only problem: what else this one
    does not know is no mistake.
    """
    if newer := _of_newer(source, schema):
        yield newer
        return
    for path, details in itertools.islice(_by_path(error, source).items(), MAX_PROBLEMS):
        if details["type"] == "extra_forbidden":
            yield Problem(source.key_place(path), _unknown(path, schema))
        elif details["type"] == "missing" and isinstance(path[-1], str):
            yield missing_key(path, source, schema)
        elif details["loc"][-1:] == (KEY,):
            wanted = _phrase(_descend(path[:-1], schema)["propertyNames"])
            yield Problem(source.key_place(path), f"{dotted(path)}: expected {wanted} as the key, got '{path[-1]}'")
        elif details["type"] == "too_long":
            most = details["ctx"]["max_length"]
            yield source.problem(path, f"expected at most {most:,} values, got {_got(path, source, schema)}")
        else:
            if details["type"] == "missing":  # A list is too short.
                path = path[:-1]
            wanted, got = expected(path, schema), _got(path, source, schema)
            yield source.problem(path, f"expected {wanted}, got {got}")


def _of_newer(source: Source, schema: Schema) -> Problem | None:
    """The problem of a file whose schema is newer than every one that is known; None for any other."""
    number = source.at(("schema",))
    kind = schema.get("properties", {}).get("schema", {})
    newest = max(kind.get("enum") or [kind.get("const", 0)])
    if type(number) is not int or not newest or number <= newest:
        return None
    read = f"has schema {number}, and this rnnbench reads schemas up to {newest}; upgrade rnnbench"
    return Problem(source.place(("schema",)), read)


def missing_key(path: KeyPath, source: Source, schema: Schema) -> Problem:
    """The problem that a key is missing, at its section, with what to add."""
    missing = f"the key '{path[-1]}' is missing{_within(path)}"
    return Problem(source.key_place(path[:-1]), f"{missing}; add it: {expected(path, schema)}")


def expected(path: KeyPath, schema: Schema) -> str:
    """What the schema wants at `path`, in words."""
    return _phrase(_descend(path, schema))


def _by_path(error: ValidationError, source: Source) -> dict[KeyPath, ErrorDetails]:
    """The first error of each part of the file: a union has one for each of its kinds."""
    first_errors: dict[KeyPath, ErrorDetails] = {}
    for details in error.errors(include_url=False, include_input=False):
        path = details["loc"]
        if details["type"] != "missing":
            while path and path not in source.values:
                path = path[:-1]
        first_errors.setdefault(path, details)
    return first_errors


def _unknown(path: KeyPath, schema: Schema) -> str:
    key, names = str(path[-1]), list(_descend(path[:-1], schema).get("properties", {}))
    home = _home(key, schema) if len(path) <= 2 else None
    advice = f"did you mean {home}.{key}?" if home else hint(key, names)
    return f"unknown key '{key}'{_within(path)}; {advice}"


def _home(key: str, schema: Schema) -> str | None:
    """The section that has this key."""
    sections = schema.get("properties", {})
    return next((name for name in sections if key in _descend((name,), schema).get("properties", {})), None)


def _within(path: KeyPath) -> str:
    return f" in {dotted(path[:-1])}" if len(path) > 1 else ""


def _got(path: KeyPath, source: Source, schema: Schema) -> str:
    value = source.at(path)
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, str):
        shown = repr(value if len(value) <= 60 else value[:60] + "…")
        names = _choices(_descend(path, schema))
        near = did_you_mean(value, names)
        return f"the text {shown}" + (f"; {near}" if near else "")
    return str(value)


def _descend(path: KeyPath, schema: Schema) -> dict[str, Any]:
    """The part of the JSON Schema that describes `path`."""
    node = schema
    for part in path:
        node = _resolve(node, schema)
        if isinstance(part, int):
            lists = [kind for kind in (node, *node.get("anyOf", ())) if kind.get("type") == "array"]
            node = (lists[0].get("items") or lists[0]["prefixItems"][part]) if lists else {}
        else:
            kinds = [_resolve(kind, schema) for kind in (node, *node.get("anyOf", ()))]
            mappings = [kind for kind in kinds if "properties" in kind] or [node]
            node = mappings[0].get("properties", {}).get(part) or mappings[0].get("additionalProperties") or {}
    node = _resolve(node, schema)
    optional = [kind for kind in node.get("anyOf", ()) if kind != {"type": "null"}]
    return _resolve(optional[0], schema) if len(optional) == 1 and "title" not in node else node


def _resolve(node: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """What a node refers to by a path of keys (`#/$defs/Pattern`), or the node itself."""
    if "$ref" not in node:
        return node
    resolved: dict[str, Any] = reduce(lambda part, key: part[key], node["$ref"].split("/")[1:], schema)
    return resolved


def _choices(node: dict[str, Any]) -> list[str]:
    """The texts that are allowed here."""
    nested = [name for kind in node.get("anyOf", ()) for name in _choices(kind)]
    direct = [value for value in (node.get("const"), *node.get("enum", ())) if isinstance(value, str)]
    return [*direct, *nested]


def _phrase(node: dict[str, Any]) -> str:
    if "title" in node:
        return str(node["title"])
    if "const" in node:
        return str(node["const"])
    if "enum" in node:
        return "one of " + ", ".join(map(str, node["enum"]))
    kind = node.get("type")
    if "anyOf" in node and kind != "object":
        return _either(node["anyOf"])
    if kind in ("integer", "number"):
        return _number(node)
    if "prefixItems" in node:
        return f"a list of {' and '.join(map(_phrase, node['prefixItems']))}"
    if kind == "array":
        return f"a list of at most {node['maxItems']:,} mappings" if "maxItems" in node else "a list"
    if kind == "string":
        return _text(node)
    if kind == "object":
        needed = node.get("required") or node.get("anyOf", [{}])[0].get("required")
        return "a mapping" + (f" with {', '.join(needed)}" if needed else "")
    if "$ref" in node:
        return "a mapping"
    return {"boolean": "true or false", "null": "null"}.get(str(kind), "another value")


def _either(kinds: list[dict[str, Any]]) -> str:
    """An axis is a value or a list of values. Anything else is one of several kinds."""
    if len(kinds) == 2 and kinds[1].get("items") == kinds[0]:
        return f"{_phrase(kinds[0])}, or a list of such"
    return " or ".join(_phrase(kind) for kind in kinds)


def _text(node: dict[str, Any]) -> str:
    """A text and its limits, of which a schema may have any."""
    least, most = node.get("minLength"), node.get("maxLength")
    if most is None:
        return "a text" if least is None else f"a text of at least {least:,} characters"
    return f"a text of {'at most' if least is None else f'{least:,} to'} {most:,} characters"


def _number(node: dict[str, Any]) -> str:
    """A number and its limits, of which a schema may have any."""
    noun = "a whole number" if node["type"] == "integer" else "a number"
    most = node.get("maximum", node["exclusiveMaximum"] - 1 if "exclusiveMaximum" in node else None)
    if "exclusiveMinimum" in node:
        return f"{noun} above {node['exclusiveMinimum']:,}" + ("" if most is None else f", at most {most:,}")
    least = node.get("minimum")
    if least is None:
        unbounded = noun if node["type"] == "integer" else "a finite number"
        return unbounded if most is None else f"{noun} of at most {most:,}"
    return f"{noun} of at least {least:,}" if most is None else f"{noun} from {least:,} to {most:,}"
