"""Route `torch`: torch.nn's LSTM, GRU or RNN through torch.export and torch-mlir."""

from __future__ import annotations

import warnings

from torch_mlir import fx

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.iree.imported import Imported, located
from rnnbench.backends.torch import export as torch_export
from rnnbench.outside_text import describe_error
from rnnbench.rnn import Cell, Model

ACTIVATIONS: dict[Cell, int] = {"lstm": 2, "gru": 1, "rnn": 1}
"""tanh (or relu) operations in a step. They tell where one copy of the cell ends and the next begins."""


def import_module(request: Request) -> Imported:
    """Every size is that of the request. Raises BuildError where torch-mlir cannot import a user's file.

    torch.export writes out one step after another, so a chunk is no variable."""
    x, *state = torch_export.argument_shapes(request)
    example = torch_export.arguments(request)
    with warnings.catch_warnings():
        # torch.export warns of nn's own attributes, and torch-mlir of torch's deprecations.
        warnings.simplefilter("ignore")
        try:
            module = fx.export_and_import(torch_export.module(request), *example, output_type="raw", func_name="step")
        except Exception as error:
            if request.file is None:
                raise
            # A user's file may have whatever its importer does not expect.
            raise BuildError(f"torch-mlir: {describe_error(error)[:1000]}") from error
    if request.file is not None:
        return Imported(str(module), x, tuple(state))
    return Imported(_with_copies(str(module), request.stack), x, tuple(state))


def _with_copies(text: str, model: Model) -> str:
    """The text with the location of a copy of the cell on each operation, from a copy's first activation to the next's.

    A copy is found again by the last operation of a kernel, which may be any operation after an activation. What comes
    before the first one is of the first copy: of a cell of one unit, a kernel may have no other location left.
    """
    activation = f" = torch.aten.{'relu' if model.activation == 'relu' else 'tanh'} "
    activations, lines = 0, []
    for line in text.splitlines():
        activations += activation in line
        copy = max(0, activations - 1) // ACTIVATIONS[model.cell]
        lines.append(located(line, copy) if " = torch." in line else line)
    return "\n".join(lines)
