"""LiteRT's schema of TFLite files, and files as its objects, which may be changed and written again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from rnnbench.model_files import limits
from rnnbench.optional import require
from rnnbench.outside_text import safe_text

EXTRA = "litert"
IDENTIFIER, IDENTIFIED_AT = b"TFL3", 4
_GRAPH = "subgraphindex"
"""The end of the names of all fields of the schema that are numbers of graphs, such as WHILE's body."""
_LAST_DEPRECATED = 127
"""Numbers of operators up to this one stand in an older field too."""


def require_schema() -> Any:
    """LiteRT's schema of TFLite files. Raises MissingExtraError."""
    return require("ai_edge_litert.schema_py_generated", EXTRA, "reading a TFLite file")


@cache
def names_of(kind: str) -> dict[int, str]:
    """Names of the numbers of an enumeration of the schema."""
    return {number: name for name, number in vars(getattr(require_schema(), kind)).items() if isinstance(number, int)}


def text_of(value: bytes | None) -> str:
    """A name or another text of a file, made safe; empty where there is none."""
    return safe_text((value or b"").decode("utf-8", "replace"), limits.NAME_CHARACTERS)


def unpacked(data: bytes) -> Any:
    """A file whose sizes were checked, as a `ModelT`."""
    return require_schema().ModelT.InitFromPackedBuf(data, 0)


def packed(model: Any, size: int) -> bytes:
    """The file of a `ModelT`. `size` is about as many bytes as it will have."""
    builder = require("flatbuffers", EXTRA, "writing a TFLite file").Builder(size)
    builder.Finish(model.Pack(builder), file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def add_operator(model: Any, name: str, inputs: list[int], output: int, version: int = 1) -> Any:
    """An operator of a kind of its own in the file. The caller puts it into a graph."""
    schema = require_schema()
    code, operator = schema.OperatorCodeT(), schema.OperatorT()
    number = getattr(schema.BuiltinOperator, name)
    code.builtinCode, code.deprecatedBuiltinCode, code.version = number, min(number, _LAST_DEPRECATED), version
    model.operatorCodes.append(code)
    operator.opcodeIndex = len(model.operatorCodes) - 1
    operator.inputs, operator.outputs = inputs, [output]
    return operator


def fields_of_graphs(operator: Any) -> dict[tuple[Any, str], int]:
    """The numbers of graphs that an operator, or a signature, has: by the table and the field that has them."""
    options = (getattr(operator, name, None) for name in ("builtinOptions", "builtinOptions2"))
    tables = [table for table in (*options, operator) if table is not None]
    return {
        (table, field): number
        for table in tables
        for field, number in vars(table).items()
        if field.lower().endswith(_GRAPH)
    }


def numbers_of(vector: Any) -> Sequence[int]:
    """A vector of the schema, which is None where it has no elements."""
    return () if vector is None else vector


class OperatorKinds:
    """The kind of each operator of a model, by its name in the schema: `WHILE`."""

    def __init__(self, model: Any) -> None:
        self._codes = model.operatorCodes

    def of(self, operator: Any) -> str:
        """Empty for a kind that the schema does not know."""
        code = self._codes[operator.opcodeIndex]
        return names_of("BuiltinOperator").get(max(code.builtinCode, code.deprecatedBuiltinCode), "")
