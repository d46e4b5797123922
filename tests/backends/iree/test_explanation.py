"""Reading the texts of TensorFlow and IREE: names of operations, and where they came from."""

from __future__ import annotations

from rnnbench.backends.explanation import shortened
from rnnbench.backends.iree import explanation
from rnnbench.backends.tensorflow.ml_program import source_of

GRAPH = """\
#loc = loc(unknown)
module {
  func.func @step(%arg0: tensor<1xf32>) {
    %0 = tf_executor.graph {
      %outputs, %control = tf_executor.island wraps "tf.Const"() <{value = dense<1> : tensor<i32>}> loc(#loc1)
      %outputs_0, %control_1 = tf_executor.island wraps "tf.Tanh"(%arg0) {device = ""} loc(#loc2)
      %1:2 = "tf.While"(%outputs) <{cond = @cond}> : (tensor<i32>) -> tensor<i32> loc(#loc3)
    }
  }
}
#loc1 = loc("layer/strided_slice")
#loc2 = loc(fused["Tanh:", #loc4])
#loc3 = loc("layer/while")
#loc4 = loc("layer/cell_copy_3/Tanh@step")
"""


def test_names_are_read_without_results_islands_and_quotes() -> None:
    bare = explanation._RESULTS.sub(r"\1\2", GRAPH)
    assert "      tf.Const() <{" in bare
    assert "      tf.Tanh(%arg0)" in bare
    assert "      tf.While(%outputs)" in bare


def test_operations_are_told_by_the_names_of_their_nodes_through_aliases() -> None:
    bare = explanation._RESULTS.sub(r"\1\2", GRAPH)
    assert explanation._sources(bare) == {"around the cells": 1, "cells outside of loops": 1, "the loop itself": 1}


def test_a_node_is_of_a_cell_of_the_loop_or_of_what_is_around() -> None:
    assert source_of("layer/while/cell/cell_copy_2/MatMul") == "cells in a loop"
    assert source_of("layer/cell/cell_copy_2/MatMul") == "cells outside of loops"
    assert source_of("layer/while/add_1") == source_of("layer/x", "NextIteration") == "the loop itself"
    assert source_of("layer/TensorArrayV2", "TensorListReserve") == "the loop itself"
    assert source_of("layer/meanwhile/add") == source_of("transpose/perm", "Const") == "around the cells"


def test_values_of_large_constants_and_resources_are_left_out() -> None:
    values = ", ".join(["1.0"] * 40)
    text = f'%0 = arith.constant dense<[{values}]> : tensor<40xf32>\n%1 = dense<3.0>\n{{-#\n  dialect_resources: "0x00"'
    assert shortened(text) == "%0 = arith.constant dense<…> : tensor<40xf32>\n%1 = dense<3.0>"


def test_only_the_kernels_own_instructions_are_counted() -> None:
    text = (
        'define internal i32 @"step$async_dispatch_0"(ptr %0) {\n  %1 = load float, ptr %0\n  ret i32 0\n}\n'
        "define internal float @linked(float %0) {\n  %1 = fadd float %0, 1.0\n  ret float %1\n}\n"
    )
    stage = explanation._llvm(text, "func.func @step$async_dispatch_0() {")
    assert stage.operations == {"llvm.load": 1, "llvm.ret": 1}
    assert "linked" not in stage.text
