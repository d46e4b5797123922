"""What flows where in a `.pt2` file: from which input a recurrent operator has its state, and to which output."""

from __future__ import annotations

from collections.abc import Iterator

from rnnbench.model_files.axes import Axes
from rnnbench.model_files.description import Feature
from rnnbench.model_files.flow import OUTERMOST, Flow, OperatorState, Value
from rnnbench.model_files.formats.pt2.control_flow import carried, entering, leaving
from rnnbench.model_files.formats.pt2.graph import Pt2File, Pt2Node, Ref, values_in
from rnnbench.model_files.traits import Operation

_MOVES = frozenset(
    (
        *("alias", "clone", "contiguous", "detach", "detach_", "expand", "flatten", "lift_fresh_copy", "narrow"),
        *("permute", "reshape", "select", "slice", "squeeze", "t", "to", "_to_copy", "transpose", "unsqueeze", "view"),
        *("chunk", "split", "split_with_sizes", "unbind", "cat", "stack", "masked_fill", "index_select", "dropout"),
    )
)
"""Operators of ATen whose outputs are elements of their first argument, which may be a list."""
_VIEWS = frozenset(
    (
        *("alias", "detach", "expand", "flatten", "narrow", "permute", "reshape", "select", "slice", "squeeze", "t"),
        *("transpose", "unsqueeze", "view", "chunk", "split", "split_with_sizes", "unbind"),
    )
)
"""Operators of ATen whose outputs may lie in the memory of their first argument."""
_CHOOSES = "where"
"""An operator whose output are elements of its second and third argument."""
_RECURRENT = {
    "lstm": ("LSTM", (1, 2)),
    "lstm_cell": ("LSTM", (0, 1)),
    "gru": ("GRU", (1,)),
    "gru_cell": ("GRU", (0,)),
    "rnn_relu": ("RNN", (1,)),
    "rnn_relu_cell": ("RNN", (0,)),
    "rnn_tanh": ("RNN", (1,)),
    "rnn_tanh_cell": ("RNN", (0,)),
}
"""Kind of a recurrent operator, and which of its outputs are final states. Its second argument has the initial ones."""
_BATCH_FIRST = 8
"""The argument that says whether the batch is the first axis."""
_PACKED = "data"
"""The overload whose second argument is the lengths of packed sequences."""


def flow_of(file: Pt2File) -> Flow:
    """The flow between inputs and outputs. A cell hands its state on, so that a loop of cells is one state."""
    flow = Flow(knows_moves=True)
    for node in file.all_nodes:
        if node.graphs:
            _go_through(flow, node)
        elif node.operator in (*_MOVES, _CHOOSES):
            for source in values_in(node.args[1:3] if node.operator == _CHOOSES else node.args[:1]):
                for output in node.outputs:
                    flow.move(_value(source), _value(output))
        elif node.operator in _RECURRENT and node.overload != _PACKED and len(node.args) > 1:
            _carry(flow, node)
    return flow


def axes_of(file: Pt2File) -> dict[str, Axes]:
    """The axes of time and batch of the inputs and outputs that recurrent operators take and give, by name."""
    axes: dict[str, Axes] = {}
    for node in file.nodes:
        if node.operator not in _RECURRENT or node.operator.endswith("_cell") or node.overload == _PACKED:
            continue
        layers = [len(array.shape) for array in file.inputs if Ref(array.value) in node.args[:1]]
        if layers == [3] and len(node.args) > _BATCH_FIRST:
            sequence = Axes(1, 0) if node.args[_BATCH_FIRST] is True else Axes(0, 1)
            axes |= dict.fromkeys((*values_in(node.args[:1]), node.outputs[0]), sequence)
            axes |= dict.fromkeys((*values_in(node.args[1:2]), *node.outputs[1:]), Axes(None, 1))
    return {array.name: axes[array.value] for array in (*file.inputs, *file.outputs) if array.value in axes}


def operations_of(file: Pt2File) -> Iterator[Operation]:
    """What each node takes and gives. One that changes its first argument gives it, and what that is a view of."""
    base: dict[str, str] = {}
    for node in file.nodes:
        gives = set(node.outputs)
        first = next(values_in(node.args[:1]), None)
        if first is not None and node.operator in _VIEWS:
            base |= dict.fromkeys(node.outputs, base.get(first, first))
        if first is not None and node.operator.endswith("_"):
            gives |= {first, base.get(first, first)}
        yield Operation({*node.takes()}, gives)


def features_of(file: Pt2File) -> Iterator[Feature]:
    """A ring: an output that puts a slice of an input, and other values, behind each other."""
    makers = {output: node for node in file.nodes for output in node.outputs}
    rings = set[str]()
    for node in (makers.get(after.value) for after in (*file.outputs, *(pair[1] for pair in file.states))):
        if node is not None and node.operator == "cat" and isinstance(node.args[0], list | tuple):
            parts = [makers.get(value) for value in values_in(node.args[:1])]
            slices = [part for part in parts if part is not None and part.operator in ("slice", "narrow")]
            rings |= {value for part in slices for value in values_in(part.args[:1])}
    inputs = (*file.inputs, *(pair[0] for pair in file.states))
    if arrays := tuple(array.name for array in inputs if array.value in rings):
        yield Feature("ring", arrays)


def unused_inputs(file: Pt2File) -> set[str]:
    """Names of the inputs that no operator takes, and that are no output."""
    used = {name for node in file.nodes for name in node.takes()}
    used |= {array.value for array in file.outputs}
    return {array.name for array in file.inputs if array.value not in used}


def _go_through(flow: Flow, node: Pt2Node) -> None:
    """The ways into the graphs of a branch or loop, and out of them."""
    for source, name in entering(node):
        if isinstance(source, Ref) and name:
            flow.move(_value(source.name), _value(name))
    for source, name in leaving(node):
        if isinstance(source, Ref):
            flow.move(_value(source.name), _value(name))
    kind, states = carried(node)
    for before, after in states:
        if isinstance(before, Ref):
            flow.states.append(OperatorState(kind, node.outputs[0], _value(before.name), _value(after)))


def _carry(flow: Flow, node: Pt2Node) -> None:
    kind, finals = _RECURRENT[node.operator]
    for before, index in zip(values_in(node.args[1:2]), finals, strict=False):
        if index < len(node.outputs):
            after = node.outputs[index]
            flow.states.append(OperatorState(kind, node.outputs[0], _value(before), _value(after)))
            flow.move(_value(before), _value(after))


def _value(name: str) -> Value:
    return Value(OUTERMOST, name)
