"""The nodes of a `.pt2` file's graph, those of its regions in place. Branches and loops have graphs of their own.

A region is a graph in a node: a part of the network under `torch.no_grad()` or `torch.autocast`. Under autocast torch
casts what an operator takes when it is called, and no node says so. Here such casts are nodes, by the types that the
file has for what the operator gives.
Source: torch/_export/serde/schema.py, aten/src/ATen/autocast_mode.cpp (torch 2.13).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.pt2.control_flow import CONTROL
from rnnbench.model_files.formats.pt2.graph import Kind, Pt2Graph, Pt2Node, Ref, all_nodes, values_in
from rnnbench.model_files.formats.pt2.operators import WRITES_INSIDE, is_composed
from rnnbench.model_files.formats.pt2.sizes import SIZE_OPERATORS
from rnnbench.outside_text import safe_text

_OPERATOR = re.compile(r"torch\.ops\.aten\.(\w+)\.(\w+)")
_REFUSED = frozenset(("from_file",))
"""Operators of ATen that read or write files."""
_REGION = "torch.ops.higher_order.wrap_with_"
_SET_GRAD, _AUTOCAST = f"{_REGION}set_grad_enabled", f"{_REGION}autocast"
_CONTROL = {f"torch.ops.higher_order.{name}": name for name in CONTROL}
_OTHERS = (
    (
        re.compile(r"torch\.ops\.(?:quantized_decomposed|quantized|_quantized|torchao)\..*"),
        "it was quantised, and what a program gives is not known here, so nothing can be compared; save the network as "
        "it was before, or quantise it in ONNX (onnxruntime.quantization) or TFLite",
    ),
    (
        re.compile(r"torch\.ops\.higher_order\..*"),
        f"export the network without it; of torch's operators with graphs {', '.join(CONTROL)} are read, and parts "
        "under torch.no_grad() and torch.autocast",
    ),
    (
        re.compile(r"torch\._functorch\..*"),
        "torch left a step of its own export in the file; save the program after run_decompositions()",
    ),
)
"""Operators that are not of ATen, and what to do."""
_PLAIN = ("as_int", "as_bool", "as_string", "as_ints", "as_bools", "as_strings")
_LISTS = {
    "as_optional_tensors": "",
    **{f"{kind}s": kind for kind in ("as_tensor", "as_sym_int", "as_sym_bool", "as_sym_float")},
}
"""Lists of values, and the kind of each value where it does not say that itself."""
_SYMBOLIC = ("as_sym_int", "as_sym_bool", "as_sym_float")
"""Numbers that depend on sizes."""
_NOT_FINITE = ("Infinity", "-Infinity", "NaN")
"""How the file writes numbers that JSON does not have."""
_FLOAT32, _NARROW = 7, (6, 13)
"""Numbers of float32, and of float16 and bfloat16, in the schema."""
_CASTING = frozenset(("to", "_to_copy", "type_as", "copy_", "_assert_tensor_metadata"))
"""Operators that say types themselves."""
_WITHOUT_PRODUCTS = frozenset(
    (
        *("layer_norm", "batch_norm", "group_norm", "instance_norm", "rms_norm", "where", "index_put", "index_put_"),
        *("reshape_as", "view_as", "expand_as", "concat", "concatenate", "hstack", "vstack", "subtract", "multiply"),
        *("divide", "true_divide", "minimum", "maximum"),
    )
)
"""Operators of several tensors that torch writes as others, none of which autocast casts."""
_WRITTEN_OUT = "save the program after run_decompositions(), which writes such parts out"
Json = Mapping[str, Any]


def nodes_of(graph: Json) -> tuple[tuple[Pt2Node, ...], dict[str, Json]]:
    """All nodes, and what the file says of each tensor. Raises ModelFileError for a node that is not read."""
    regions = _Regions()
    nodes = tuple(regions.nodes(graph, {}))
    count = sum(1 for _ in all_nodes(nodes))
    if count > limits.NODES:
        raise ModelFileError(f"it has {count:,} nodes; up to {limits.NODES:,} are read")
    return nodes, regions.tensors


class _Regions:
    def __init__(self) -> None:
        self.tensors: dict[str, Json] = {}
        self._regions = 0

    def nodes(
        self, graph: Json, names: Mapping[str, str], prefix: str = "", cast: int | None = None
    ) -> Iterator[Pt2Node]:
        """The nodes of a graph whose values are called otherwise here: by `names`, else with a prefix.

        `cast` is the type of the autocast around it.
        """
        inner_names = _Names(names, prefix)
        self.tensors |= {inner_names[name]: meta for name, meta in graph["tensor_values"].items() if name not in names}
        for node in graph["nodes"]:
            target = str(node["target"])
            if target.startswith(_REGION):
                yield from self._region(node, inner_names, cast)
            elif target in _CONTROL:
                yield self._control(node, inner_names, cast)
            else:
                plain = _renamed(_node(node), inner_names)
                yield from self._with_casts(plain, cast) if cast else [plain]

    def _region(self, node: Json, outer: _Names, cast: int | None) -> Iterator[Pt2Node]:
        """The nodes of a region, whose first values are arguments of the node, and whose last are its outputs."""
        called, arguments = str(node["target"]), [item["arg"] for item in node["inputs"]]
        places = [place for place, argument in enumerate(arguments) if "as_graph" in argument]
        if called not in (_SET_GRAD, _AUTOCAST) or len(places) != 1:
            raise ModelFileError(f"it calls {safe_text(called, 100)}, which is not read; {_WRITTEN_OUT}")
        settings = [_argument(argument) for argument in arguments[: places[0]]]
        if called == _AUTOCAST:
            cast = settings[1].number if settings[2] else None
        graph = arguments[places[0]]["as_graph"]["graph"]
        arguments_outside = [outer[_tensor(argument)] for argument in arguments[places[0] + 1 :]]
        inside = dict(zip(map(_tensor, graph["inputs"]), arguments_outside, strict=True))
        outputs = [outer[name] for name in _outputs(node)[0]]
        self._regions += 1
        prefix = f"region{self._regions}."
        yield from self.nodes(graph, inside, prefix, cast)
        names = _Names(inside, prefix)
        for output, name in zip(map(_tensor, graph["outputs"]), outputs, strict=True):
            yield Pt2Node("alias", "default", (Ref(names[output]),), {}, (name,))

    def _control(self, node: Json, outer: _Names, cast: int | None) -> Pt2Node:
        """A branch or a loop, whose graphs have values of their own."""
        if any(item["kind"] != 1 for item in node["inputs"]):  # torch says there what the graphs write.
            raise ModelFileError(WRITES_INSIDE)
        args = []
        for argument in (item["arg"] for item in node["inputs"]):
            if "as_graph" in argument:
                args.append(self._graph(argument["as_graph"]["graph"], cast))
            else:
                args.append(_renamed_value(_argument(argument), outer))
        name, outputs = _CONTROL[node["target"]], tuple(outer[name] for name in _outputs(node)[0])
        if tuple(sum(isinstance(arg, kind) for arg in args) for kind in (Pt2Graph, list)) != CONTROL[name]:
            raise ModelFileError(f"its {name} takes other graphs and lists of values than torch writes")
        return Pt2Node(name, "", tuple(args), {}, outputs, gives_list=True)

    def _graph(self, graph: Json, cast: int | None) -> Pt2Graph:
        self._regions += 1
        prefix = f"region{self._regions}."
        names, nodes = _Names({}, prefix), tuple(self.nodes(graph, {}, prefix, cast))
        arguments = [_argument(item) for item in graph["inputs"]]
        inputs = tuple(names[argument.name] if isinstance(argument, Ref) else None for argument in arguments)
        outputs = tuple(_renamed_value(_argument(item), names) for item in graph["outputs"])
        return Pt2Graph(nodes, inputs, outputs)

    def _with_casts(self, node: Pt2Node, cast: int) -> Iterator[Pt2Node]:
        """A node under autocast to the type `cast`, after the casts of what it takes."""
        if node.operator in _CASTING or node.operator.endswith("_") or not (node.outputs and node.overload):
            yield node  # What is written in place keeps its type.
            return
        types = {name: self.tensors[name]["dtype"] for name in values_in(node.args) if name in self.tensors}
        output_type: Any = self.tensors.get(node.outputs[0], {}).get("dtype")
        wanted = output_type if output_type in (cast, _FLOAT32) else None
        cast_names = [
            name for name, kind in types.items() if wanted and kind != wanted and kind in (_FLOAT32, *_NARROW)
        ]
        if len(types) > 1 and is_composed(node) and node.operator not in _WITHOUT_PRODUCTS:
            raise ModelFileError(
                f"it calls {node.operator} under torch.autocast, which casts values inside that operator, and no node "
                "says which; export it without autocast, or give it weights and inputs of the narrower type"
            )
        names = {name: name for name in types}
        for name in cast_names:
            names[name] = f"{node.outputs[0]}.{name}"
            self.tensors[names[name]] = {**self.tensors[name], "dtype": wanted}
            yield Pt2Node("_to_copy", "default", (Ref(name),), {"dtype": Kind(int(output_type))}, (names[name],))
        yield replace(node, args=_renamed_value(node.args, _Names(names, "")))


class _Names:
    """The names that values of a region have among those of the whole graph."""

    def __init__(self, names: Mapping[str, str], prefix: str) -> None:
        self._names, self._prefix = names, prefix

    def __getitem__(self, name: str) -> str:
        return self._names.get(name, f"{self._prefix}{name}")


def _node(node: Json) -> Pt2Node:
    target = str(node["target"])
    operator = (target, target, "") if target in SIZE_OPERATORS else _OPERATOR.fullmatch(target)
    if not operator or operator[1] in _REFUSED:
        why = next((text for pattern, text in _OTHERS if pattern.fullmatch(target)), "operators of ATen are read")
        raise ModelFileError(f"it calls {safe_text(target, 100)}; {why}")
    values = [(item["name"], _argument(item["arg"]), item["kind"]) for item in node["inputs"]]
    outputs, gives_list = _outputs(node)
    args = tuple(value for _, value, kind in values if kind == 1)
    kwargs = {str(name): value for name, value, kind in values if kind != 1}
    return Pt2Node(operator[1], operator[2], args, kwargs, tuple(outputs), gives_list)


def _outputs(node: Json) -> tuple[list[str], bool]:
    """Names of what a node gives, and whether that is a list."""
    outputs, gives_list = list[str](), False
    for output in node["outputs"]:
        ((kind, value),) = output.items()
        if kind == "as_tensors":
            outputs, gives_list = [tensor["name"] for tensor in value], True
        elif kind in ("as_tensor", "as_sym_int", "as_sym_bool", "as_sym_float"):
            outputs.append(value["name"] if kind == "as_tensor" else value["as_name"])
        elif kind != "as_none":
            raise ModelFileError(f"a node gives {safe_text(str(kind), 60)}, which is not read")
    return outputs, gives_list


def _argument(arg: Json) -> Any:
    ((kind, value),) = arg.items()
    if kind in _PLAIN:
        return value
    if kind == "as_float":
        return float(value) if value in _NOT_FINITE else value
    if kind == "as_floats":
        return [float(number) if number in _NOT_FINITE else number for number in value]
    if kind == "as_none":
        return None
    if kind == "as_tensor":
        return Ref(value["name"])
    if kind in _SYMBOLIC:
        return Ref(value["as_name"]) if "as_name" in value else _argument(value)
    if kind in _LISTS:
        item_kind = _LISTS[kind]
        return [_argument({item_kind: item} if item_kind else item) for item in value]
    if kind == "as_scalar_type":
        return Kind(int(value))
    if kind in ("as_device", "as_layout", "as_memory_format"):
        return None
    raise ModelFileError(f"a node takes {safe_text(str(kind), 60)}, which is not read")


def _tensor(argument: Json) -> str:
    """The name of a value that goes into a region or comes out of it."""
    value = _argument(argument)
    if not isinstance(value, Ref):
        raise ModelFileError(
            f"a part of the network takes or gives what is no tensor, which is not read; {_WRITTEN_OUT}"
        )
    return value.name


def _renamed(node: Pt2Node, names: _Names) -> Pt2Node:
    return replace(
        node,
        args=_renamed_value(node.args, names),
        kwargs={name: _renamed_value(value, names) for name, value in node.kwargs.items()},
        outputs=tuple(names[name] for name in node.outputs),
    )


def _renamed_value(value: Any, names: Any) -> Any:
    if isinstance(value, Ref):
        return Ref(names[value.name])
    if isinstance(value, (list, tuple)):
        return type(value)(_renamed_value(item, names) for item in value)
    return value
