"""What a program turned out to be is read off the compiler's IR and not off the request."""

from __future__ import annotations

from typing import Any

import pytest
from quick_tests import for_proof

from rnnbench.backends.iree.lowered import lowered
from rnnbench.backends.program_store import described


@pytest.mark.proof
@pytest.mark.parametrize(("time", "expected"), [*for_proof(("looped", "looped 1")), ("unrolled", "unrolled 4")])
def test_copies_of_a_counter_are_found(build: Any, time: str, expected: str) -> None:
    """The common suite has other cells."""
    assert build(cell="counter", input=5, hidden=5, time=time).artifact.lowered == expected


@pytest.mark.proof
def test_a_loop_of_one_is_folded(build: Any) -> None:
    looped, unrolled = (described(one, one.request) for one in (build(chunk=1), build(chunk=1, time="unrolled")))
    assert looped.lowered == unrolled.lowered == "unrolled 1"
    assert looped.source_digest != unrolled.source_digest
    assert looped.digest == unrolled.digest


STREAM = """#loc = loc("rnn.mlir":1:1)
#loc1 = loc("copy 0")
#loc2 = loc("copy 1")
#loc3 = loc(callsite(#loc1 at #loc))
#loc4 = loc(fused[#loc3, #loc2])
module {
  util.func public @other(%a: index) {
      stream.cmd.dispatch @e::@f {
      } loc(#loc4)
  } loc(#loc)
  util.func public @step(%a: index) {
      stream.cmd.dispatch @e::@f {
      } loc(#loc3)
    cf.br ^bb1(%a : index) loc(#loc)
  ^bb1(%b: index loc(#loc)):  // 2 preds: ^bb0, ^bb2
    cf.cond_br %c, ^bb2, ^bb3 loc(#loc)
  ^bb2:  // pred: ^bb1
      stream.cmd.dispatch @e::@g {
      } loc(#loc2)
    cf.br ^bb1(%b : index) loc(#loc)
  ^bb3:  // pred: ^bb1
    util.return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""


def test_a_mixture_is_named_in_full() -> None:
    assert lowered(STREAM) == "looped 1 + unrolled 1"


def test_fused_kernels_count_for_every_copy_in_them() -> None:
    assert lowered(STREAM, "other") == "unrolled 2"
