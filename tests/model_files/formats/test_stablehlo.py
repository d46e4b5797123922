# ruff: noqa: E501
"""Modules of StableHLO: what is in them, what they give in float64, and what is refused."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
import stablehlo_files as files

from rnnbench.model_files import ModelFileError, answered, check_state, describe, network_of, oracle_of, section_of
from rnnbench.rnn import Arithmetic, RandomRounding, Weights, draw_inputs, rounded, run_reference


def test_a_global_that_a_call_changes_is_a_state(tmp_path):
    path = files.saved("kept", tmp_path)
    found = describe(path)
    assert [(pair.before, pair.after, pair.found) for pair in found.state] == [("h", "h_next", "traced")]
    assert [(a.name, a.role, a.shape, a.dtype) for a in found.arrays] == [
        ("x", "input", (1, 3), "float32"),
        ("h", "state_in", (1, 2), "float32"),
        ("y", "output", (1, 2), "float32"),
        ("h_next", "state_out", (1, 2), "float32"),
    ]
    assert (found.format, found.weight_bytes, found.questions) == ("stablehlo", files.WEIGHTS.nbytes, ())
    assert check_state(oracle_of(path), found, section_of(found, path.name)).ok


def test_a_global_that_begins_elsewhere_than_at_zero_is_told(tmp_path):
    path = files.saved("kept", tmp_path)
    assert not any("begins in the file" in note for note in describe(path).notes)
    path.write_text(path.read_text().replace("@h(dense<0.0>", "@h(dense<0.5>"))
    found = describe(path)
    assert [note for note in found.notes if note.startswith("h begins in the file with values that are not zero")]
    assert "h from 0 → h_next" in network_of(path, section_of(found, path.name), found).called


def test_the_oracle_gives_what_the_module_says(tmp_path):
    x, h, weights = np.ones((1, 3)), np.full((1, 2), 0.5), files.WEIGHTS.astype(float)
    after = np.tanh(np.concatenate([x, h], 1) @ weights)
    oracle = oracle_of(files.saved("kept", tmp_path))
    made = oracle.run({"x": x, "h": h})
    np.testing.assert_allclose(made["y"], 2 * after, rtol=1e-12)
    np.testing.assert_array_equal(dict(oracle.weights())["a constant of the shape [5, 2]"], files.WEIGHTS)
    np.testing.assert_allclose(made["h_next"], after, rtol=1e-12)


def test_a_loop_is_computed(tmp_path):
    path = files.saved("loop", tmp_path)
    found = describe(path)
    network = network_of(path, answered(section_of(found, path.name), found, files.LOOP_ANSWERS), found)
    x, h, expected = draw_inputs(network, 4, 1, 0), 0.5, []
    for step in x:
        h = np.sin(h + step.astype(float))
        expected.append(h)
    np.testing.assert_allclose(run_reference(network, Weights(), x, {}).y, np.stack(expected), rtol=1e-12)
    assert [note.partition(",")[0] for note in found.notes] == ["No state was found: while begins anew in each call"]


def test_roundings_are_those_of_the_arithmetic(tmp_path):
    oracle = oracle_of(files.saved("carried", tmp_path))
    given = {"x": np.ones((3, 2)), "h": np.ones((2, 2)), "gain": np.array(0.5), "none": np.zeros((0, 2))}
    exact, noisy = (oracle.in_arithmetic(a).run(given) for a in (Arithmetic(), RandomRounding("float32", 0, 0)))
    for name, array in exact.items():
        np.testing.assert_array_equal(oracle.run(given)[name], array)
        assert 1e-9 < np.abs(noisy[name] - array).max() < 1e-5


BODIES = {
    "unary": "\n".join(
        f"%{index} = stablehlo.{kind} %{index - 1 if index else 'a'} : tensor<2x3xf64>"
        for index, kind in enumerate(
            ("negate", "tanh", "exponential", "log_plus_one", "sqrt", "logistic", "cosine", "ceil", "sign", "rsqrt")
        )
    )
    + "\nreturn %9 : tensor<2x3xf64>",
    "binary": """
      %0 = stablehlo.subtract %a, %b : tensor<2x3xf64>
      %1 = stablehlo.divide %0, %b : tensor<2x3xf64>
      %2 = stablehlo.maximum %1, %a : tensor<2x3xf64>
      %3 = stablehlo.compare GT, %2, %b : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xi1>
      %4 = stablehlo.select %3, %a, %b : tensor<2x3xi1>, tensor<2x3xf64>
      %5 = stablehlo.remainder %4, %b : tensor<2x3xf64>
      return %5 : tensor<2x3xf64>""",
    "sign of a negative zero": """
      %0 = stablehlo.subtract %a, %a : tensor<2x3xf64>
      %1 = stablehlo.negate %0 : tensor<2x3xf64>
      %2 = stablehlo.sign %1 : tensor<2x3xf64>
      %3 = stablehlo.divide %a, %2 : tensor<2x3xf64>
      return %3 : tensor<2x3xf64>""",
    "pad": """
      %z = stablehlo.constant dense<7.0> : tensor<f64>
      %0 = stablehlo.pad %a, %z, low = [1, -1], high = [-1, 2], interior = [1, 2] : (tensor<2x3xf64>, tensor<f64>) -> tensor<3x8xf64>
      %1 = stablehlo.slice %0 [0:3:2, 1:8:2] : (tensor<3x8xf64>) -> tensor<2x4xf64>
      %2 = stablehlo.reverse %1, dims = [1] : tensor<2x4xf64>
      return %2 : tensor<2x4xf64>""",
    "dot": """
      %0 = stablehlo.broadcast_in_dim %a, dims = [2, 0] : (tensor<2x3xf64>) -> tensor<3x4x2xf64>
      %1 = stablehlo.broadcast_in_dim %b, dims = [1, 2] : (tensor<2x3xf64>) -> tensor<5x2x3xf64>
      %2 = stablehlo.dot_general %0, %1, batching_dims = [0] x [2], contracting_dims = [2] x [1] : (tensor<3x4x2xf64>, tensor<5x2x3xf64>) -> tensor<3x4x5xf64>
      return %2 : tensor<3x4x5xf64>""",
    "convolution": """
      %0 = stablehlo.broadcast_in_dim %a, dims = [1, 3] : (tensor<2x3xf64>) -> tensor<1x2x6x3xf64>
      %i = stablehlo.iota dim = 0 : tensor<2x3x2x4xf64>
      %j = stablehlo.iota dim = 1 : tensor<2x3x2x4xf64>
      %1 = stablehlo.add %i, %j : tensor<2x3x2x4xf64>
      %2 = stablehlo.convolution(%0, %1) dim_numbers = [b, f, 0, 1]x[1, 0, i, o]->[0, b, 1, f], window = {stride = [2, 1], pad = [[0, 2], [-1, 1]], lhs_dilate = [2, 1], rhs_dilate = [1, 2], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x6x3xf64>, tensor<2x3x2x4xf64>) -> tensor<6x1x1x4xf64>
      return %2 : tensor<6x1x1x4xf64>""",
    "groups": """
      %0 = stablehlo.broadcast_in_dim %a, dims = [1, 2] : (tensor<2x3xf64>) -> tensor<1x2x3xf64>
      %1 = stablehlo.iota dim = 2 : tensor<2x1x4xf64>
      %2 = stablehlo.convolution(%0, %1) dim_numbers = [b, f, 0]x[0, i, o]->[b, f, 0], window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x2x3xf64>, tensor<2x1x4xf64>) -> tensor<1x4x2xf64>
      return %2 : tensor<1x4x2xf64>""",
    "reduce": """
      %z = stablehlo.constant dense<1.5> : tensor<f64>
      %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf64>, tensor<f64>) -> tensor<2xf64>
      %1 = stablehlo.reduce(%b init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf64>, tensor<f64>) -> tensor<2xf64>
      %2 = stablehlo.multiply %0, %1 : tensor<2xf64>
      return %2 : tensor<2xf64>""",
    "gather": """
      %i = stablehlo.constant dense<[[2, 0], [9, 1]]> : tensor<2x2xi64>
      %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1, 0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 1>}> : (tensor<2x3xf64>, tensor<2x2xi64>) -> tensor<2x2xf64>
      return %0 : tensor<2x2xf64>""",
    "scatter": """
      %i = stablehlo.constant dense<[[2, 0], [9, 1]]> : tensor<2x2xi64>
      %u = stablehlo.constant dense<[[7.0, 8.0], [9.0, 6.0]]> : tensor<2x2xf64>
      %0 = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1>}> ({
      ^bb0(%0: tensor<f64>, %1: tensor<f64>): stablehlo.return %1 : tensor<f64> }) : (tensor<2x3xf64>, tensor<2x2xi64>, tensor<2x2xf64>) -> tensor<2x3xf64>
      return %0 : tensor<2x3xf64>""",
    "scatter in rows": """
      %i = stablehlo.constant dense<[[2], [0]]> : tensor<2x1xi32>
      %u = stablehlo.constant dense<[7.0, 8.0]> : tensor<2xf64>
      %0 = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
      ^bb0(%0: tensor<f64>, %1: tensor<f64>): stablehlo.return %1 : tensor<f64> }) : (tensor<2x3xf64>, tensor<2x1xi32>, tensor<2xf64>) -> tensor<2x3xf64>
      return %0 : tensor<2x3xf64>""",
    "windows": """
      %z = stablehlo.constant dense<0.5> : tensor<f64>
      %0 = "stablehlo.reduce_window"(%a, %z) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>, base_dilations = array<i64: 2, 1>, window_dilations = array<i64: 1, 2>, padding = dense<[[1, 0], [2, 1]]> : tensor<2x2xi64>}> ({
      ^bb0(%0: tensor<f64>, %1: tensor<f64>):
        %2 = stablehlo.add %0, %1 : tensor<f64>
        stablehlo.return %2 : tensor<f64> }) : (tensor<2x3xf64>, tensor<f64>) -> tensor<3x2xf64>
      return %0 : tensor<3x2xf64>""",
    "integers": """
      %0 = stablehlo.convert %a : (tensor<2x3xf64>) -> tensor<2x3xi32>
      %1 = stablehlo.constant dense<-3> : tensor<2x3xi32>
      %2 = stablehlo.divide %1, %0 : tensor<2x3xi32>
      %3 = stablehlo.remainder %1, %0 : tensor<2x3xi32>
      %4 = stablehlo.xor %2, %3 : tensor<2x3xi32>
      %5 = stablehlo.convert %4 : (tensor<2x3xi32>) -> tensor<2x3xf64>
      return %5 : tensor<2x3xf64>""",
    "case": """
      %i = stablehlo.constant dense<7> : tensor<i32>
      %0 = "stablehlo.case"(%i) ({ stablehlo.return %a : tensor<2x3xf64> }, { stablehlo.return %b : tensor<2x3xf64> }) : (tensor<i32>) -> tensor<2x3xf64>
      %1 = stablehlo.clamp %a, %0, %b : tensor<2x3xf64>
      return %1 : tensor<2x3xf64>""",
}


@pytest.mark.parametrize("name", BODIES)
def test_operations_are_those_of_the_reference_interpreter_of_stablehlo(tmp_path, name):
    from jax.extend.mlir import ir
    from jax.extend.mlir.dialects import stablehlo
    from jax.interpreters import mlir

    body = BODIES[name]
    result = body.rsplit(" : ", 1)[1]
    path = tmp_path / "module.mlir"
    path.write_text(
        f"module {{ func.func @main(%a: tensor<2x3xf64>, %b: tensor<2x3xf64>) -> {result} {{\n{body}\n}} }}"
    )
    given = [np.array([[1.5, 2.25, 3.0], [1.0, 2.0, 4.5]]), np.array([[5.0, 3.0, 2.0], [8.0, 2.5, 1.25]])]
    with mlir.make_ir_context(), ir.Location.unknown():
        (expected,) = stablehlo.eval_module(
            ir.Module.parse(path.read_text()), [ir.DenseElementsAttr.get(each) for each in given]
        )
        expected = np.array(expected)
    made = oracle_of(path).run({"arg0": given[0], "arg1": given[1]})
    np.testing.assert_allclose(made["result0"], expected, rtol=1e-12)


def test_a_product_of_two_matrices_is_numpys(tmp_path):
    """The interpreter of StableHLO does not know this operation."""
    path, given = tmp_path / "module.mlir", np.random.default_rng(0).standard_normal((2, 3, 3))
    kind = "tensor<3x3xf64>"
    body = f"%0 = stablehlo.dot %a, %b : ({kind}, {kind}) -> {kind}\nreturn %0 : {kind}"
    path.write_text(f"module {{ func.func @main(%a: {kind}, %b: {kind}) -> {kind} {{\n{body}\n}} }}")
    made = oracle_of(path).run({"arg0": given[0], "arg1": given[1]})
    np.testing.assert_allclose(made["result0"], given[0] @ given[1], rtol=1e-12)


def in_main(body, before="", x="tensor<2xf32>"):
    return f"module {{ {before}\nfunc.func @main(%x: {x}) -> {x} {{\n{body}\nreturn %x : {x} }} }}"


A_GLOBAL = "ml_program.global private mutable @g(dense<0.0> : tensor<2xf32>) : tensor<2xf32>"
REFUSED = {
    "text": ("hello", "it is no module of StableHLO: line 1:1: custom op 'hello' is unknown"),
    "bytes": (b"\xff\xfe", "it is no text of MLIR"),
    "bytecode": (b"ML\xefR\x01", "it is MLIR's bytecode; text is read"),
    "serialised": (b"\x1c\0\0\0\x9cf(x)ML\xefR\x01", "it is what `exported.serialize()` gives after `jax.export`"),
    "HLO": ("HloModule jit_f, is_scheduled=true", "it is HLO, an older text of XLA, and no StableHLO; text is read"),
    "deep": ("module {" * 5_000, "brackets more than 60 deep"),
    "other operation": (
        in_main('%0 = stablehlo.custom_call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>'),
        "its operation stablehlo.custom_call is not among those that are read; write that part",
    ),
    "scatter that adds": (
        in_main(
            "%i = stablehlo.constant dense<0> : tensor<1xi32>\n%u = stablehlo.constant dense<1.0> : tensor<f32>\n"
            '%0 = "stablehlo.scatter"(%x, %i, %u) ({^bb0(%a: tensor<f32>, %b: tensor<f32>): '
            "%s = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %s : tensor<f32>}) {scatter_dimension_numbers = "
            "#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>} : (tensor<2xf32>, "
            "tensor<1xi32>, tensor<f32>) -> tensor<2xf32>"
        ),
        "a scatter that does more than write values into one array is not computed here; write what",
    ),
    "other dialect": (in_main('"a.b"() : () -> ()'), "unregistered dialect"),
    "recursion": (in_main("%0 = call @main(%x) : (tensor<2xf32>) -> tensor<2xf32>"), "its function main calls itself"),
    "calls without an end": (
        in_main(
            "%0 = call @f0(%x) : (tensor<2xf32>) -> tensor<2xf32>",
            "\n".join(
                f"func.func private @f{n}(%x: tensor<2xf32>) -> tensor<2xf32> {{"
                f"%0 = call @f{n + 1}(%x) : (tensor<2xf32>) -> tensor<2xf32>\n"
                f"%1 = call @f{n + 1}(%0) : (tensor<2xf32>) -> tensor<2xf32>\nreturn %1 : tensor<2xf32> }}"
                for n in range(40)
            )
            + "\nfunc.func private @f40(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }",
        ),
        "a call of it runs more than 100,000 operations",
    ),
    "open size": (in_main("", x="tensor<?xf32>"), "with an open size; lower the network for one size"),
    "giant": (in_main("%0 = stablehlo.iota dim = 0 : tensor<99999999999xf32>"), "more than 268,435,456 elements"),
    "type": (in_main("", x="tensor<2xf8E4M3FN>"), "elements of f8E4M3FN are not read"),
    "elided": (in_main("%0 = stablehlo.constant dense_resource<__elided__> : tensor<9xf32>"), "were left out"),
    "resource": (in_main("%0 = stablehlo.constant dense_resource<w> : tensor<9xf32>"), "values in a resource"),
    "two functions": (
        "module { func.func @a() { return }\nfunc.func @b() { return } }",
        "its public functions are a, b; the one that is read is 'main', or the only one with arguments",
    ),
    "declared": (
        in_main("call @f() : () -> ()", "func.func private @f()"),
        "it calls the function f, which is not in it",
    ),
    "global in a resource": (
        in_main("ml_program.global_store @g = %x : tensor<2xf32>",
                "ml_program.global private mutable @g(dense_resource<w> : tensor<2xf32>) : tensor<2xf32>"),
        "its global g has no plain values",
    ),
    "global inside": (
        in_main("call @f(%x) : (tensor<2xf32>) -> ()", f"{A_GLOBAL}\nfunc.func private @f(%x: tensor<2xf32>) {{"
                "ml_program.global_store @g = %x : tensor<2xf32>\nreturn }"),
        "the global g is used in a loop or a called function",
    ),
    "reduction": (
        in_main("""%0 = stablehlo.constant dense<0.0> : tensor<f32>
          %1 = stablehlo.reduce(%x init: %0) across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
          reducer(%a: tensor<f32>, %b: tensor<f32>) {
          %2 = stablehlo.reshape %b : (tensor<f32>) -> tensor<f32>\nstablehlo.return %2 : tensor<f32> }"""),
        "a reduction by a body with stablehlo.reshape is not computed here",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_a_sentence(tmp_path, name):
    content, told = REFUSED[name]
    path = tmp_path / "wrong.mlir"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ModelFileError) as caught:
        oracle_of(path).run({"arg0": np.zeros(2)})
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_place_of_the_largest_number_is_computed(tmp_path):
    """As jax.numpy.argmax writes it: a reduction of two arrays by a body of several operations."""
    jax = pytest.importorskip("jax")
    path, x = tmp_path / "argmax.mlir", np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
    places = jax.jit(lambda x: (jax.numpy.argmax(x, 1), jax.numpy.argmin(x), jax.numpy.max(x, 1)))
    path.write_text(places.lower(x).as_text())
    made = oracle_of(path).run({"arg0": x.astype(np.float64)})
    expected = np.argmax(x, 1), np.argmin(x), np.max(x, 1)
    for array, theirs in zip(made.values(), expected, strict=True):
        np.testing.assert_array_equal(array, theirs)


def test_the_platform_of_a_module_for_several_is_told(tmp_path):
    """jax.export adds an argument before those of the function, in the order of the platforms."""
    jax = pytest.importorskip("jax")

    def step(h, x):
        h = jax.lax.platform_dependent(h, x, cpu=lambda h, x: h + x, default=lambda h, x: h - x)
        return h, h * 2

    zeros, path = jax.numpy.zeros(3), tmp_path / "platforms.mlir"
    exported = jax.export.export(jax.jit(step), platforms=("cuda", "cpu"))(zeros, zeros)
    path.write_text(exported.mlir_module())
    found = describe(path)
    assert (found.arrays[0].name, found.arrays[0].role) == ("_platform_index", "constant")
    assert any("in the order of platforms" in note for note in found.notes)
    assert "--set state.h=result_0" in next(each.text for each in found.questions if each.array == "h")
    ones = np.ones(3)
    for index, expected in ((0, -ones), (1, ones)):
        made = oracle_of(path).run({"_platform_index": np.array(index, np.int32), "h": 0 * ones, "x": ones})
        np.testing.assert_array_equal(made["result_0"], expected)


@pytest.mark.parametrize(("is_argument", "told"), [(True, True), (False, False)])
def test_weights_among_the_inputs_are_told(tmp_path, is_argument, told):
    """As of `jax.jit(model.apply)`, whose first argument has the parameters."""
    given = ", %w: tensor<5x2xf32>" if is_argument else ""
    own = "" if is_argument else f"%w = stablehlo.constant dense<{files.literal(files.WEIGHTS)}> : tensor<5x2xf32>"
    product = "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]"
    types = "(tensor<1x5xf32>, tensor<5x2xf32>) -> tensor<1x2xf32>"
    head = f"func.func @main(%x: tensor<1x5xf32>{given}) -> tensor<1x2xf32> {{"
    path = tmp_path / "net.mlir"
    path.write_text(f"{head}\n{own}\n{product} : {types}\nreturn %0 : tensor<1x2xf32>\n}}")
    assert any(note.startswith("It has products and no weights.") for note in describe(path).notes) == told


def test_a_state_may_have_any_name(tmp_path):
    path = tmp_path / "named.mlir"
    path.write_text(files.KEPT.replace("@h", '@"the \\22state\\22/[h]"'))
    found = describe(path)
    assert [(pair.before, pair.after) for pair in found.state] == [("the_state_h", "the_state_h_next")]


def test_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "marked.mlir"
    path.write_bytes(b"\xef\xbb\xbf" + files.KEPT.encode())
    assert len(describe(path).state) == 1


def test_a_loop_without_an_end_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("rnnbench.model_files.limits.PASSES", 50)
    path = tmp_path / "endless.mlir"
    path.write_text(
        re.sub(r"compare LT", "compare NE", files.LOOP).replace("dense<4> : tensor<i32>", "dense<-1> : tensor<i32>")
    )
    with pytest.raises(ModelFileError, match="its loops take more than 50 passes"):
        oracle_of(path).run({"x": np.zeros((4, 1, 2))})


def test_without_a_parser_it_says_what_to_install(tmp_path, monkeypatch):
    for name in ("iree.compiler.ir", "jax.interpreters.mlir"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(ImportError, match=r"needs IREE's compiler or JAX; pip install 'rnnbench\[iree\]'"):
        describe(files.saved("loop", tmp_path))


def test_jax_parses_it_where_iree_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "iree.compiler.ir", None)
    path = files.saved("loop", tmp_path)
    assert oracle_of(path).run({"x": np.zeros((4, 1, 2))})["result0"].shape == (4, 1, 2)
    with pytest.raises(ModelFileError, match="ml_program"):
        describe(files.saved("kept", tmp_path))


def test_damaged_text_never_raises_anything_else(tmp_path):
    good, draw, path, refused = files.KEPT.encode(), random.Random(0), tmp_path / "damaged.mlir", 0
    for _ in range(40):
        data = bytearray(good[: draw.randrange(8, len(good) + 1)] if draw.random() < 0.3 else good)
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] = draw.choice(b"0123456789<>{}()%@x:,-=. af")
        path.write_bytes(data)
        try:
            describe(path)
        except ModelFileError:
            refused += 1
    assert refused > 10


@pytest.mark.parametrize(
    ("element", "low", "high"), [("f16", 1e-4, 1e-2), ("bf16", 1e-3, 1e-1), ("f32", 1e-9, 1e-5), ("f64", 1e-18, 1e-14)]
)
def test_roundings_are_as_fine_as_the_file_computes(tmp_path, element, low, high):
    given = {"x": np.ones((1, 3)), "h": np.full((1, 2), 0.5)}
    oracle = oracle_of(files.saved("kept", tmp_path, {"f32": element}))
    dtype = "float64" if element == "f64" else "float32"
    exact, noisy = (oracle.in_arithmetic(a).run(given) for a in (Arithmetic(), RandomRounding(dtype, 0, 0)))
    assert low < np.abs(noisy["y"] - exact["y"]).max() < high
    tanh = np.tanh(np.array([[1, 1, 1, 0.5, 0.5]]) @ files.WEIGHTS)
    np.testing.assert_allclose(exact["h_next"], tanh, atol=high)


def test_a_cast_to_a_narrower_type_rounds(tmp_path):
    path, cast = tmp_path / "half.mlir", "%0 = stablehlo.convert %x : (tensor<2xf32>) -> tensor<2xf16>"
    path.write_text(
        f"module {{ func.func @main(%x: tensor<2xf32>) -> tensor<2xf16> {{ {cast}\nreturn %0 : tensor<2xf16> }} }}"
    )
    oracle, given = oracle_of(path), {"arg0": np.array([0.1, 0.2])}
    np.testing.assert_array_equal(oracle.run(given)["result0"], given["arg0"])
    noisy = oracle.in_arithmetic(RandomRounding("float32", 0, 0)).run(given)["result0"]
    assert 1e-6 < np.abs(noisy - given["arg0"]).max() < 1e-4
    narrow = oracle.in_arithmetic(Arithmetic("float32")).run(given)["result0"]
    np.testing.assert_array_equal(narrow, given["arg0"].astype(np.float16))


INFINITE = ("0x7F80", "0xFF80", "0x7FC0")
"""MLIR's text of what is no number, in bfloat16."""


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("[0.1, -2.5, 3.0e38, 1.0e-40]", [0.1, -2.5, 3e38, 1e-40]),
        (f"[{', '.join(INFINITE)}]", [np.inf, -np.inf, np.nan]),
        ("0.3", [0.3, 0.3]),
        (str([each / 7 for each in range(300)]), np.arange(300) / 7),
    ],
)
def test_constants_of_bfloat16_are_those_of_the_text(tmp_path, text, values):
    path, kind = tmp_path / "constant.mlir", f"tensor<{len(values)}xbf16>"
    constant = f"%0 = stablehlo.constant dense<{text}> : {kind}"
    path.write_text(f"module {{ func.func @main(%x: {kind}) -> {kind} {{ {constant}\nreturn %0 : {kind} }} }}")
    (made,) = oracle_of(path).run({"arg0": np.zeros(len(values))}).values()
    np.testing.assert_array_equal(made, rounded(np.asarray(values), "bfloat16"))


def step(arguments, results):
    """A module whose results are its arguments, by number: (name, type) and (place, number)."""
    given = ", ".join(
        f"%a{i}: tensor<{kind}>" + (f' loc("{name}")' if name else "") for i, (name, kind) in enumerate(arguments)
    )
    kinds = [arguments[number][1] for _, number in results]
    made = ", ".join(
        f'tensor<{kind}> {{jax.result_info = "{place}"}}' for kind, (place, _) in zip(kinds, results, strict=True)
    )
    returned = ", ".join(f"%a{number}" for _, number in results)
    types = ", ".join(f"tensor<{kind}>" for kind in kinds)
    return f"func.func public @main({given}) -> ({made}) {{ return {returned} : {types} }}"


def described(text, folder):
    path = folder / "step.mlir"
    path.write_text(text)
    return describe(path)


def test_a_carry_is_found_by_the_trees_of_arguments_and_results(tmp_path):
    arguments = [("carry['c']", "1x8xf32"), ("carry['h']", "1x8xf32"), ("carry['n']", "i32"), ("x", "1x5xf32")]
    results = [("result[0]['c']", 1), ("result[0]['h']", 0), ("result[0]['n']", 2), ("result[1]", 0)]
    found = described(step(arguments, results), tmp_path)
    assert [(pair.before, pair.after, pair.found) for pair in found.state] == [
        (f"carry_{name}", f"result_0_{name}", "tree") for name in "chn"
    ]
    assert not [question for question in found.questions if question.key in ("state", "constants")]


@pytest.mark.parametrize(
    ("names", "places"),
    [
        (("a[0]", "a[1]", "b[0]", "b[1]"), ("result[0][0]", "result[0][1]", "result[1]")),  # two arguments fit
        (("a[0]", "a[1]", "x"), ("result[0][0]", "result[0][1]", "result[1][0]", "result[1][1]")),  # two results do
        (("a[0]", "a[1]"), ("result[0]", "result[1]")),  # nothing is left that is new in a call
    ],
)
def test_trees_that_fit_several_ways_are_asked_for(tmp_path, names, places):
    arguments = [(name, "1x8xf32") for name in names]
    found = described(step(arguments, [(place, 0) for place in places]), tmp_path)
    assert not [pair for pair in found.state if pair.found == "tree"]


@pytest.mark.parametrize(
    ("arguments", "results", "proposed"),
    [
        ("8 8 5", "0.0 0.1 1", "--set state.arg0=result_0_0 --set state.arg1=result_0_1."),
        ("8 5", "0 1", "--set state.arg0=result_0."),
        ("8 8", "0 1", "--set state.arg0=result_0, or --set state.arg1=result_1."),
    ],
)
def test_without_names_the_order_is_a_proposal(tmp_path, arguments, results, proposed):
    places = ["result" + "".join(f"[{number}]" for number in place.split(".")) for place in results.split()]
    given = [("", f"1x{size}xf32") for size in arguments.split()]
    found = described(step(given, [(place, 0) for place in places]), tmp_path)
    assert found.state == ()
    assert proposed in next(question.text for question in found.questions if question.key == "state")


def test_of_several_public_functions_the_only_one_with_arguments_is_read(tmp_path):
    """Such as `step` beside `init`, which gives the state to begin with."""
    (tmp_path / "two.mlir").write_text("""
        func.func @init() -> tensor<1x2xf32> {
          %0 = stablehlo.constant dense<0.0> : tensor<1x2xf32>
          return %0 : tensor<1x2xf32>
        }
        func.func @step(%x: tensor<1x2xf32>, %h: tensor<1x2xf32>) -> tensor<1x2xf32> {
          %0 = stablehlo.add %x, %h : tensor<1x2xf32>
          return %0 : tensor<1x2xf32>
        }
    """)
    assert [array.role for array in describe(tmp_path / "two.mlir").arrays] == ["input", "input", "output"]


@pytest.mark.parametrize("is_moved", [True, False])
def test_a_result_that_is_computed_from_an_argument_alone_is_asked_for(tmp_path, is_moved):
    """As an embedding of a voice's profile, which has a shape of its own. One that is moved is a state that was lost."""
    made = "reshape %profile : (tensor<1x7xf32>) ->" if is_moved else "tanh %profile :"
    path = tmp_path / "profile.mlir"
    path.write_text(f"""
    func.func public @main(%x: tensor<1x3xf32> loc("x"), %profile: tensor<1x7xf32> loc("profile"))
        -> (tensor<1x2xf32> {{jax.result_info = "result['y']"}}, tensor<1x7xf32> {{jax.result_info = "result['emb']"}}) {{
      %0 = stablehlo.slice %x [0:1, 0:2] : (tensor<1x3xf32>) -> tensor<1x2xf32>
      %1 = stablehlo.{made} tensor<1x7xf32>
      return %0, %1 : tensor<1x2xf32>, tensor<1x7xf32>
    }}""")
    found = describe(path)
    assert [(pair.before, pair.after) for pair in found.state] == ([("profile", "emb")] if is_moved else [])
    asked = [question.text for question in found.questions if question.array == "profile"]
    assert is_moved or asked[0].startswith("is emb its next value? It is computed from profile alone")
