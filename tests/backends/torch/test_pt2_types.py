"""Users' `.pt2` files whose arrays are not float32, on torch's routes and through the torch importers."""

from __future__ import annotations

import pytest
import torch
import typed_streams as typed
from pt2_modules import Cell, Counting, GivenRing, Ring, Streaming
from quick_tests import for_proof

from rnnbench.backends import find

STATES = {GivenRing: {"kept": "index_copy", "position": "remainder"}, Counting: {"h": "sigmoid", "count": "add_1"}}
"""Arguments that are states, and what they are after a call."""


def exported(module, dtype, folder):
    """A module in a type of floats, as a file."""
    kind = getattr(torch, dtype)
    given = (torch.zeros(1, 3, dtype=kind),)
    if type(module) in STATES:
        kept = torch.zeros(4 if isinstance(module, GivenRing) else 1, 3, dtype=kind)
        given = (*given, kept, torch.zeros(1, dtype=torch.int64))
    path = folder / "module.pt2"
    torch.export.save(torch.export.export(module.to(kind).eval(), given), path)
    return path


def answers_for(module):
    states = STATES.get(type(module), {})
    return ("batch=0", "time=null", *(f"state.{before}={after}" for before, after in states.items()))


def test_a_product_that_an_importer_gives_in_float32_is_unsupported(tmp_path):
    request = typed.asked(exported(Streaming(), "float64", tmp_path), "torch", answers_for(Streaming()), "stitched")
    support = find("tvm").support(request)
    assert support.level == "unsupported"
    assert "gives products in float32, whatever they are of: " in support.reason


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("on", "module", "dtype", "state"),
    [
        *(("torch:eager", Streaming, dtype, "stitched") for dtype in ("float16", "bfloat16", "float64")),
        *(("torch:eager", Ring, "float32", "stateful"), ("torch:eager", GivenRing, "bfloat16", "stateful")),
        *for_proof(
            ("iree:torch", GivenRing, "bfloat16", "stitched"),
            ("tvm:torch", Counting, "float16", "stateful"),
            *(("torch:compile", Ring, "bfloat16", "stateful"), ("torch:aoti", Streaming, "float16", "stitched")),
            *(("tvm:torch", Counting, "float64", "stitched"), ("tvm:torch", Counting, "bfloat16", "stitched")),
            *(("iree:torch", Cell, "float64", "stateful"), ("iree:torch", Counting, "float16", "stateful")),
        ),
    ],
)
def test_a_file_of_other_types(tmp_path, cache_for, on, module, dtype, state):
    backend, route = on.split(":")
    adapter = find(backend)
    if lack := adapter.probe().lack(route):
        pytest.skip(f"{on} {lack.reason}; {lack.install}")
    torch.manual_seed(0)
    made = module()
    request = typed.asked(exported(made, dtype, tmp_path), route, answers_for(made), state)
    typed.assert_right(adapter, request, cache_for(on))
