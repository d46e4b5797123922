"""Parsing MLIR's text within limits, by the parser of an installed compiler: IREE's, or JAX's, which has no globals."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError
from rnnbench.optional import MissingExtraError
from rnnbench.outside_text import safe_text

_BYTECODE = b"ML\xefR"
_HLO = b"HloModule"
_EXPECTED = (
    "text is read, such as that of `jax.jit(f).lower(…).as_text()`, of `exported.mlir_module()` after `jax.export`, or "
    "of `iree-opt FILE`"
)
_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[(\[{<]|[)\]}>]')
_OPENING, _CLOSING = frozenset("([{<"), frozenset(")]}>")


def parser() -> tuple[Any, Any]:
    """MLIR's Python API, and a context with the dialects. Raises MissingExtraError."""
    with suppress(ImportError):
        ir: Any = import_module("iree.compiler.ir")
        _spare_searches()
        return ir, ir.Context()
    with suppress(ImportError):
        mlir: Any = import_module("jax.interpreters.mlir")
        return mlir.ir, mlir.make_ir_context()
    raise MissingExtraError("reading an .mlir file needs IREE's compiler or JAX; pip install 'rnnbench[iree]'")


def _spare_searches() -> None:
    """The API looks for a Python module of an operation's dialect until there is one, and IREE has none of these."""
    for name in ("stablehlo", "chlo", "ml_program"):
        full = f"iree.compiler.dialects.{name}"
        if full not in sys.modules and find_spec(full) is None:
            sys.modules[full] = ModuleType(full)


def text_of(data: bytes) -> str:
    """The text of a file, which a parser that calls itself can read. Raises ModelFileError."""
    if data.startswith(_BYTECODE):
        raise ModelFileError(f"it is MLIR's bytecode; {_EXPECTED}")
    if _BYTECODE in data:
        raise ModelFileError(f"it is what `exported.serialize()` gives after `jax.export`; {_EXPECTED}")
    if data.lstrip().startswith(_HLO):
        raise ModelFileError(f"it is HLO, an older text of XLA, and no StableHLO; {_EXPECTED}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelFileError(f"it is no text of MLIR: byte {error.start} is not UTF-8; {_EXPECTED}") from error
    if "\0" in text:
        raise ModelFileError(f"it is no text of MLIR: it has a character that is no text; {_EXPECTED}")
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        depth += (bracket[0] in _OPENING) - (bracket[0] in _CLOSING)
        if depth > limits.DEPTH:
            raise ModelFileError(f"it has brackets more than {limits.DEPTH} deep")
    if "__elided__" in text:
        raise ModelFileError("its constants were left out when it was printed (__elided__); print it with all of them")
    return text


def parsed(ir: Any, context: Any, text: str) -> Any:
    """The module, verified. Raises ModelFileError with the parser's first message."""
    try:
        return ir.Module.parse(text, context)
    except ir.MLIRError as error:
        errors = [line for line in str(error).splitlines() if "error:" in line]
        message = re.sub(r'^error: "-":', "line ", (errors or [str(error)])[0])
        raise ModelFileError(f"it is no module of StableHLO: {safe_text(message, 300)}") from error
