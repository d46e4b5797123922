"""The oracle gives what ONNX's own node tests of LSTM, GRU and RNN expect."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from rnnbench.rnn import GATES, Layer, Model, Weights, run_reference

onnx = pytest.importorskip("onnx")

ORDERS = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
"""Where PyTorch's gates stand in ONNX's order: i f g o in i o f c; r z n in z r h."""

NOT_EXPRESSIBLE = {"test_lstm_with_peepholes": "a Model has no peephole connections"}


def collect() -> dict[str, Any]:
    """The cases of the three operators by name. A case registers itself when its module is imported, and the public
    `collect_testcases` would import those of every operator."""
    package = "onnx.backend.test.case.node"
    for module in ("lstm", "gru", "rnn"):
        importlib.import_module(f"{package}.{module}")
    cases = importlib.import_module(package)._NodeTestCases
    return {case.name: case for case in cases if case.model.graph.node[0].op_type in ORDERS}


class Unexpressible(Exception):
    """The case needs something that Model has no word for."""


class NodeCase:
    """A node test in the words of a Model: [steps, batch, …] and PyTorch's order of gates."""

    def __init__(self, case: Any) -> None:
        (node,) = case.model.graph.node
        ((inputs, outputs),) = case.data_sets
        arrays = dict(zip([name for name in node.input if name], inputs, strict=True))
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        self.operator = node.op_type
        self.batch_first = bool(attributes.pop("layout", 0))
        hidden = attributes.pop("hidden_size")
        direction = attributes.pop("direction", b"forward").decode()
        roles = dict(zip(("x", "w", "r", "b", "lengths", "h", "c", "peepholes"), node.input, strict=False))
        given = {role: arrays[name] for role, name in roles.items() if name}
        if attributes or not given.keys() <= {"x", "w", "r", "b"}:
            raise Unexpressible(f"{case.name}: {attributes} {list(given)}")
        self.x = given["x"].swapaxes(0, 1) if self.batch_first else given["x"]
        self.model = Model(
            cell=node.op_type.lower(),
            input=self.x.shape[2],
            hidden=hidden,
            direction=direction,
            bias="b" in given,
            reset_after=node.op_type != "GRU",
        )
        self.weights = Weights(tuple(self._layer(given, row) for row in range(self.model.directions)))
        self.expected = dict(zip([name for name in node.output if name], outputs, strict=True))
        self.outputs = dict(zip(("y", "h", "c"), node.output, strict=False))

    def _layer(self, given: dict[str, np.ndarray], row: int) -> Layer:
        b_ih, b_hh = np.split(given["b"][row], 2) if "b" in given else (None, None)
        return Layer(
            w_ih=self._gates(given["w"][row]),
            w_hh=self._gates(given["r"][row]),
            b_ih=None if b_ih is None else self._gates(b_ih),
            b_hh=None if b_hh is None else self._gates(b_hh),
            w_hr=None,
        )

    def _gates(self, rows: np.ndarray) -> np.ndarray:
        parts = np.split(rows, GATES[self.model.cell])
        return np.concatenate([parts[index] for index in ORDERS[self.operator]])

    def check(self) -> None:
        found = run_reference(self.model, self.weights, self.x)
        steps, batch, _ = found.y.shape
        y = found.y.reshape(steps, batch, self.model.directions, -1).transpose(0, 2, 1, 3)
        results = {"y": y, **found.final}
        compared = 0
        for role, name in self.outputs.items():
            if name:
                result = results[role]
                if self.batch_first:
                    result = result.transpose(2, 0, 1, 3) if role == "y" else result.swapaxes(0, 1)
                np.testing.assert_allclose(result, self.expected[name], rtol=1e-5, atol=1e-6)
                compared += 1
        assert compared


CASES = collect()


def test_all_of_the_operators_cases_are_here() -> None:
    assert len(CASES) >= 18
    assert {case.model.graph.node[0].op_type for case in CASES.values()} == set(ORDERS)


def test_the_list_of_what_a_model_cannot_express_is_exact() -> None:
    refused = set()
    for name, case in CASES.items():
        try:
            NodeCase(case)
        except Unexpressible:
            refused.add(name)
    assert refused == set(NOT_EXPRESSIBLE)


@pytest.mark.parametrize("name", sorted(CASES.keys() - NOT_EXPRESSIBLE.keys()))
def test_agrees_with_the_node_test(name: str) -> None:
    NodeCase(CASES[name]).check()
