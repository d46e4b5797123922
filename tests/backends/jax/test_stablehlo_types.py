"""Users' modules of StableHLO whose arrays are not float32, compiled by XLA."""

from __future__ import annotations

import pytest
import stablehlo_files as files
import typed_streams as typed

from rnnbench.backends.jax import JaxBackend


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("types", "name", "state"),
    [
        *(({"f32": "f16"}, "kept", "stateful"), ({"f32": "bf16"}, "kept", "stateful")),
        *(({}, "ring", "stitched"), ({"f32": "bf16"}, "ring", "stateful"), ({"i32": "i8"}, "ring", "stitched")),
    ],
)
def test_a_module_of_other_types(tmp_path, types, name, state):
    path = files.saved(name, tmp_path, types)
    typed.assert_right(JaxBackend(), typed.asked(path, "jit", files.ANSWERS[name], state), tmp_path)


@pytest.mark.parametrize(("types", "wide"), [({"i32": "i64"}, True), ({"f32": "f64"}, True), ({}, False)])
def test_numbers_of_64_bits_get_their_environment(tmp_path, types, wide):
    """Without it JAX makes 32 bits of them."""
    asked = typed.asked(files.saved("ring", tmp_path, types), "jit", files.RING_ANSWERS, "stitched")
    assert ("JAX_ENABLE_X64" in JaxBackend().support(asked).environment) == wide
