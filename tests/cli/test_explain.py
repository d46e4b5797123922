"""`rnnbench explain`: what a trial's program is made of, on real backends, and on a fake that shows nothing."""

from __future__ import annotations

import re

import pytest
from forked_workers import write_python

STREAM = "time=looped,state=stateful,chunk=4"


def test_numpy_shows_its_calls_its_state_and_the_plan(rnnbench, folder):
    shown = rnnbench("explain", "tiny.yaml", "--backend", "numpy", "--filter", STREAM).stdout
    assert "lowered   looped 1" in shown
    assert "emulated  NumPy has no program that could keep a state" in shown
    assert "8 steps in 2 calls of 4 steps\n" in shown
    assert "in      x float32 [4, 1, 3]" in shown
    assert "out     y float32 [4, 1, 4]" in shown
    assert "arrays  h float32 [1, 1, 4], c float32 [1, 1, 4]" in shown
    assert "changed the state; after `reset` it was all zeros; then that call gave the same bits" in shown
    assert "kernels: nothing to read. NumPy's kernels" in shown
    (text,) = (folder / "explained").rglob("01-calls.txt")
    assert "project, then 4 passes" in text.read_text()
    assert "  project, then 4 passes" in shown


def test_a_rest_of_a_call_is_in_the_plan(rnnbench):
    done = rnnbench("explain", "tiny.yaml", "--backend", "numpy", "--filter", STREAM, "--set", "workload.steps=10")
    assert "10 steps in 2 calls of 4 steps and 2 calls of a program of one step" in " ".join(done.stdout.split())


def test_onnxruntime_shows_the_graph_before_and_after_its_optimisations(rnnbench, folder):
    pytest.importorskip("onnxruntime")
    shown = rnnbench("explain", "tiny.yaml", "--backend", "onnxruntime", "--filter", STREAM, "-o", "out").stdout
    given, optimised = sorted((folder / "out").rglob("*.onnx.txt"))
    assert "Scan" in given.read_text()
    assert "MatMul" in given.read_text()
    assert "Gemm" in optimised.read_text()
    assert re.search(r"^ given +\d+ +1 ", shown, re.MULTILINE), "the Scan is its one loop"
    assert "run(x tensor(float) [4, 3], h tensor(float) [1, 4], c tensor(float) [1, 4])" in shown


@pytest.mark.proof
def test_iree_brings_a_file_of_one_addition_down_to_memory(rnnbench, folder):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("iree.compiler")
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy")
    three = onnx.helper.make_tensor("three", onnx.TensorProto.FLOAT, [], [3.0])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "three"], ["y"])], "g", [x], [y], [three])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), folder / "plus.onnx")
    (folder / "plus.yaml").write_text(
        "schema: 1\nname: plus\nmodel: {file: plus.onnx, time: null, batch: null}\n"
        "workload: {steps: 1, chunk: 1}\nstrategy: {time: given, state: none}\n"
    )
    shown = rnnbench("explain", "plus.yaml", "--backend", "iree", "-o", "out", "--lines", "60").stdout
    assert "nothing is carried" in shown
    (kernels,) = (folder / "out").rglob("*-kernels.mlir")
    text = kernels.read_text()
    for operation in ("memref.load", "arith.addf", "memref.store"):
        assert text.count(operation) == 1
        assert operation in shown
    (machine,) = (folder / "out").rglob("*-llvm.ll")
    assert machine.read_text().count(" fadd ") == 1


def test_a_backend_that_shows_nothing_is_named(rnnbench, folder):
    shown = rnnbench("explain", "tiny.yaml", "--backend", "fake:honest", "--filter", STREAM).stdout
    assert "the adapter of 'fake' has no module `explanation`" in shown
    assert "in 2 calls of 4 steps" in shown


def test_another_environment_explains_its_own_program(rnnbench, folder):
    write_python(folder / "old" / "bin" / "python", {"RNNBENCH_FAKE_VERSION": "0.1"})
    given = ("explain", "tiny.yaml", "--filter", STREAM, "--in", "./old")
    assert "versions  rnnbench-fake 0.1\n" in rnnbench(*given, "--backend", "fake:honest").stdout
    assert "--in needs the backends" in rnnbench(*given, status=2).stderr
    assert "no virtual environment" in rnnbench(*given[:-1], "./none", "--backend", "fake", status=2).stderr


def test_a_part_of_a_compound_network_has_stages_of_its_own(rnnbench, folder):
    (folder / "rnnt.yaml").write_text(
        "schema: 1\nname: rnnt\nmodel: {network: rnnt, input: 4, hidden: 4, prediction: 4}\n"
        "workload: {steps: 4, chunk: 2}\nstrategy: {time: looped, state: stitched}\n"
    )
    shown = rnnbench("explain", "rnnt.yaml", "--backend", "numpy").stdout
    stages = re.findall(r"^ (\S+-calls) ", shown, re.MULTILINE)
    assert len(stages) > 1
    assert "A loop in Python calls the parts' programs" in " ".join(shown.split())


def test_several_trials_of_a_target_are_listed_and_none_is_built(rnnbench, folder):
    error = rnnbench("explain", "tiny.yaml", "--backend", "numpy", status=2).stderr
    assert "tiny has 4 trials on numpy:eager; choose one with --filter" in error
    assert error.count("tiny/numpy:eager/looped-") == 4
    assert not (folder / "explained").exists()


def test_what_cannot_be_explained_says_why_and_ends_with_3(rnnbench):
    fused = ("--set", "strategy.time=fused", "--filter", "state=stateful,chunk=4")
    done = rnnbench("explain", "tiny.yaml", "--backend", "numpy", *fused, status=3)
    assert "unsupported: NumPy has no RNN operator." in done.stderr
    broken = rnnbench("explain", "tiny.yaml", "--backend", "fake:build-fails", "--filter", STREAM, status=3)
    assert "build-failed: " in broken.stderr
