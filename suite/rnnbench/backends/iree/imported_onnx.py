"""Route `onnx`: the suite's ONNX graphs, through the ONNX importer that `iree-import-onnx` runs."""

from __future__ import annotations

import re
from typing import Any

import onnx
import onnx.version_converter
from iree.compiler import ir
from iree.compiler.extras import onnx_importer

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.iree.imported import Imported
from rnnbench.backends.shared.onnx_graphs import COPY, FUSED_OPERATORS, build_graph, copy_name
from rnnbench.model_files import all_nodes, opset_version
from rnnbench.outside_text import describe_error

OPSET = 17
"""The operators of files with an older set are converted to this one."""
_OLDER_RESIZE = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
"""What a Resize before version 11 does, as attributes of later versions, which have other defaults."""
_LATER_RESIZE, _LATER_HARDMAX = 11, 13
"""The versions in which the operators got their later meaning."""
_NAME = re.compile(rf'loc\("[^"]*\b{COPY}(\d+)/[^"]*"\)')


def import_module(request: Request) -> Imported:
    """The importer takes the location of a node from its name, which has the number of the copy of the cell."""
    model = build_graph(request)
    if request.file is not None and opset_version(model) < OPSET:
        model = _newer(model)
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


def _newer(model: Any) -> Any:
    """The model as `iree-import-onnx --opset-version` makes it: the importer has no older forms of some operators.

    ONNX's converter keeps the attributes of two operators that mean something else later. So Hardmax goes as a Softmax,
    which it converts rightly (docs/upstream/onnx-converted-operators.md). Raises BuildError.
    """
    version, hardmaxes = opset_version(model), set[str]()
    for node in all_nodes(model):
        if node.op_type == "Hardmax" and version < _LATER_HARDMAX:
            node.op_type = "Softmax"
            hardmaxes.update(node.output)
    try:
        converted = onnx.version_converter.convert_version(model, OPSET)
    except RuntimeError as error:
        raise BuildError(
            f"onnx.version_converter makes no operators of version {OPSET}, which the importer needs, of those of "
            f"version {version}; export the network with opset {OPSET} or later: {describe_error(error)}"
        ) from error
    for node in all_nodes(converted):
        if node.op_type == "Softmax" and node.output[0].removesuffix("_intermediate") in hardmaxes:
            node.op_type = "Hardmax"
        if node.op_type == "Resize" and version < _LATER_RESIZE:
            node.attribute.extend(onnx.helper.make_attribute(*item) for item in _OLDER_RESIZE.items())
    return converted
