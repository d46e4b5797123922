"""Calling the graph of a SavedModel, with the variables that it changes as arrays of each call."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.file_arrays import FLOATS
from rnnbench.model_files.formats.savedmodel.file import SavedFile, read_saved_model
from rnnbench.model_files.tensorflow_graph import require_tensorflow
from rnnbench.model_files.tensorflow_program import TensorflowArray, TensorflowState, error_line, named_arrays
from rnnbench.model_files.tensorflow_types import in_float64, with_own_names


class SavedModelProgram:
    """The graph with its variables. `double`: in float64 wherever the file has floats."""

    def __init__(self, path: Path, *, double: bool = False) -> None:
        """Raises ModelFileError for a file that is not read."""
        self._tf = require_tensorflow()
        self.file: SavedFile = read_saved_model(path)
        self._double = double
        try:
            self._prepare()
        except (MemoryError, ModelFileError):
            raise
        except Exception as error:  # TensorFlow has no base class of its errors
            raise ModelFileError(f"TensorFlow cannot read its graph: {error_line(error)}") from error

    def _prepare(self) -> None:
        file, tf = self.file, self._tf
        self.inputs = self._ends(file.inputs)
        self.outputs = self._ends(file.outputs, file.inputs)
        ends = [tf.as_dtype(info.dtype) for info in (*file.inputs.values(), *file.outputs.values())]
        self._graph = with_own_names(in_float64(file.graph, ends) if self._double else file.graph)
        self._held = {
            variable.tensor: tf.Variable(self._typed(variable.value), trainable=False)
            for variable in file.variables
            if not variable.is_constant
        }
        changed = [variable for variable in file.variables if variable.is_state]
        variables = [self._held[variable.tensor] for variable in changed]
        self.states = tuple(
            TensorflowState(array, f"{array.name}_next", variable)
            for array, variable in zip(
                named_arrays([saved.name for saved in changed], variables), variables, strict=True
            )
        )

    @property
    def variables(self) -> list[Any]:
        """The variables that a call reads, states included."""
        return list(self._held.values())

    def weights(self) -> Iterator[tuple[str, np.ndarray]]:
        yield from ((variable.name, variable.value) for variable in self.file.variables)

    def __call__(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Every output and next state, of every input and state, all by name. Traced only: it uses the variables."""
        for state in self.states:
            state.variable.assign(arrays[state.before.name])
        ends = {
            info.name: arrays[array.name] for array, info in zip(self.inputs, self.file.inputs.values(), strict=True)
        }
        capture = self._tf.compat.v1.get_default_graph().capture
        ends |= {tensor: capture(variable.handle) for tensor, variable in self._held.items()}
        constants = [variable for variable in self.file.variables if variable.is_constant]
        ends |= {constant.tensor: self._tf.constant(self._typed(constant.value)) for constant in constants}
        wanted = [info.name for info in self.file.outputs.values()]
        tensors = self._tf.graph_util.import_graph_def(self._graph, input_map=ends, return_elements=wanted, name="file")
        outputs = dict(zip((array.name for array in self.outputs), tensors, strict=True))
        return outputs | {state.after: state.variable.read_value() for state in self.states}

    def _ends(self, infos: Mapping[str, Any], inputs: Collection[str] = ()) -> tuple[TensorflowArray, ...]:
        specs = [self._tf.TensorSpec(self._tf.TensorShape(info.tensor_shape), info.dtype) for info in infos.values()]
        if any(spec.shape.rank is None for spec in specs):
            raise ModelFileError("the number of axes of an input or output is not known")
        arrays = named_arrays(infos, specs, inputs)
        return tuple(
            TensorflowArray(array.name, array.shape, "float64") if self._double and array.dtype in FLOATS else array
            for array in arrays
        )

    def _typed(self, value: Any) -> Any:
        return value.astype("float64") if self._double and str(value.dtype) in FLOATS else value
