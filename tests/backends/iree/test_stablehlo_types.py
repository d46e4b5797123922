"""Users' modules of StableHLO whose arrays are not float32, compiled by IREE."""

from __future__ import annotations

import pytest
import stablehlo_files as files
import typed_streams as typed
from quick_tests import for_proof

from rnnbench.backends.iree import IreeBackend


def of_type(element, name, folder, state):
    path = files.saved(name, folder, {"f32": element})
    return typed.asked(path, "stablehlo", files.ANSWERS[name], state)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("element", "name", "state"),
    [
        ("bf16", "kept", "stateful"),
        *for_proof(
            ("f16", "ring", "stitched"),
            ("f16", "kept", "stateful"),
            ("bf16", "kept", "stitched"),
            ("f64", "ring", "stateful"),
        ),
    ],
)
def test_a_module_of_another_type_of_floats(tmp_path, element, name, state):
    typed.assert_right(IreeBackend(), of_type(element, name, tmp_path, state), tmp_path)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("element", "state"), [("i8", "stateful"), *for_proof(("i64", "stitched"), ("ui8", "stateful"))]
)
def test_a_state_of_whole_numbers(tmp_path, element, state):
    path = files.saved("ring", tmp_path, {"i32": element})
    typed.assert_right(IreeBackend(), typed.asked(path, "stablehlo", files.RING_ANSWERS, state), tmp_path)


def test_an_operation_without_a_function_in_float64_is_unsupported(tmp_path):
    support = IreeBackend().support(of_type("f64", "kept", tmp_path, "stateful"))
    assert support.level == "unsupported"
    assert "tanh in float64 calls one (undefined symbol)" in support.reason
