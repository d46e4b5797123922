"""Route `onnx`: the suite's ONNX graphs, through the ONNX importer that `iree-import-onnx` runs."""

from __future__ import annotations

import re

import onnx
import onnx.version_converter
from iree.compiler import ir
from iree.compiler.extras import onnx_importer

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.iree.imported import Imported
from rnnbench.backends.shared.onnx_graphs import COPY, FUSED_OPERATORS, build_graph, copy_name
from rnnbench.model_files import opset_version

OPSET = 17
"""The operators of files with an older set are converted to this one."""
_NAME = re.compile(rf'loc\("[^"]*\b{COPY}(\d+)/[^"]*"\)')


def import_module(request: Request) -> Imported:
    """The importer takes the location of a node from its name, which has the number of the copy of the cell."""
    model = build_graph(request)
    if request.file is not None and opset_version(model) < OPSET:
        # As `iree-import-onnx --opset-version` does: the importer has no older forms of some operators.
        model = onnx.version_converter.convert_version(model, OPSET)
    model.graph.name = "step"
    operators = [node for node in model.graph.node if node.op_type in FUSED_OPERATORS]
    for number, node in enumerate(operators):
        node.name = copy_name(number) + node.op_type
    try:
        info = onnx_importer.ModelInfo(onnx.shape_inference.infer_shapes(model))
        module = info.create_module(context=ir.Context()).operation
        onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
    except onnx_importer.OnnxImportError as error:
        raise BuildError(f"iree-import-onnx: {error}") from error
    text = _NAME.sub(r'loc("copy \1")', module.get_asm(enable_debug_info=True))
    text = re.sub(r"^module\b", "module @rnn", text, count=1, flags=re.MULTILINE)
    x, *state = [tuple(d.dim_value for d in i.type.tensor_type.shape.dim) for i in model.graph.input]
    return Imported(text, x, tuple(state))
