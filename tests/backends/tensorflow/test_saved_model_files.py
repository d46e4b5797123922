"""SavedModels: what is in them, what they give in float64 and on TensorFlow, and what is refused."""

from __future__ import annotations

import itertools
import os
import random
import shutil

import numpy as np
import pytest
from quick_tests import for_proof

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.tensorflow import TensorflowBackend
from rnnbench.cases import Precision, Strategy
from rnnbench.model_files import ModelFileError, answered, check_state, describe, network_of, oracle_of, section_of
from rnnbench.rnn import Arithmetic, RandomRounding, Weights, draw_inputs, draw_state, run_reference

STEPS = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`step`: a cell whose state is in variables; `loop`: a loop of the same over the steps of a call, from zeros."""
    from rnnbench.backends.tensorflow.process import prepare_process

    prepare_process(1)
    import tensorflow as tf

    draw, folder = np.random.default_rng(0), tmp_path_factory.mktemp("saved")
    weights, shift = (tf.Variable(draw.standard_normal(shape) * 0.4, dtype=tf.float32) for shape in ((7, 4), (4,)))

    def cell(x, h):
        return tf.tanh(tf.matmul(tf.concat([x, h], 1), weights) + shift)

    def step(x):
        h = module.h.assign(cell(x, module.h))
        return {"y": h * 2.0}

    def loop(x):
        steps = tf.TensorArray(tf.float32, tf.shape(x)[0])
        body = lambda i, h, made: (i + 1, cell(x[i], h), made.write(i, cell(x[i], h)))  # noqa: E731
        start = (0, tf.zeros((tf.shape(x)[1], 4)), steps)
        return {"y": tf.while_loop(lambda i, *_: i < tf.shape(x)[0], body, start)[2].stack()}

    for name, function, shape in (("step", step, (1, 3)), ("loop", loop, (None, None, 3)), ("started", step, (1, 3))):
        module = tf.Module()
        module.weights, module.shift, module.h = weights, shift, tf.Variable(tf.zeros((1, 4)), name="h")
        if name == "started":
            module.h.assign(tf.fill((1, 4), 0.5))
        specs = [tf.TensorSpec(shape, tf.float32, "x")]
        module.call = tf.function(function, input_signature=specs, autograph=False)
        tf.saved_model.save(module, str(folder / name), signatures=module.call)
    return folder


def test_a_variable_that_begins_elsewhere_than_at_zero_is_told(folder):
    (told,) = describe(folder / "started" / "saved_model.pb").notes
    assert told.startswith("h begins in the file with values that are not zero")
    assert not describe(folder / "step" / "saved_model.pb").notes


def described(folder, name):
    path = folder / name / "saved_model.pb"
    description, answers = describe(path), ("time=0", "batch=1") if name == "loop" else ()
    section = answered(section_of(description, path.name), description, answers)
    return path, description, section


@pytest.fixture
def with_constants(folder, tmp_path):
    """A cell whose weights are tensors that were made before the function: no variables."""
    import tensorflow as tf

    weights = np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32)
    constant, module = tf.constant(weights), tf.Module()

    def step(x, h):
        after = tf.tanh(tf.matmul(tf.concat([x, h], 1), constant))
        return {"y": after * 2.0, "h_next": after}

    specs = [tf.TensorSpec((1, 3), tf.float32, "x"), tf.TensorSpec((1, 4), tf.float32, "h")]
    module.call = tf.function(step, input_signature=specs, autograph=False)
    tf.saved_model.save(module, str(tmp_path), signatures=module.call.get_concrete_function())
    return tmp_path / "saved_model.pb", weights


def test_constants_beside_the_function_are_read(with_constants):
    path, weights = with_constants
    found = describe(path)
    assert found.weight_bytes == weights.nbytes
    assert [(pair.before, pair.after) for pair in found.state] == [("h", "h_next")]
    x, h = np.full((1, 3), 0.25), np.full((1, 4), 0.5)
    after = np.tanh(np.concatenate([x, h], 1) @ weights.astype(float))
    oracle = oracle_of(path)
    np.testing.assert_array_equal([array for _, array in oracle.weights()], [weights])
    made = oracle.run({"x": x, "h": h})
    np.testing.assert_allclose(made["h_next"], after, rtol=1e-12)
    np.testing.assert_allclose(made["y"], 2 * after, rtol=1e-12)


def test_a_type_that_the_file_leaves_out_is_that_of_the_operations_declaration(tmp_path):
    """TensorFlow leaves out what is the default, such as float32 of LeakyRelu."""
    import tensorflow as tf

    module = tf.Module()
    specs = [tf.TensorSpec((1, 3), tf.float32, "x")]
    module.call = tf.function(lambda x: {"y": tf.nn.leaky_relu(x, 0.25)}, input_signature=specs, autograph=False)
    tf.saved_model.save(module, str(tmp_path), signatures=module.call.get_concrete_function())
    given = {"x": np.array([[-1.0, 0.5, -3.0]])}
    np.testing.assert_array_equal(oracle_of(tmp_path / "saved_model.pb").run(given)["y"], [[-0.25, 0.5, -0.75]])


@pytest.mark.first(2)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("layout", "dtype"), [("NHWC", "float32"), ("NCHW", "float32"), ("NHWC", "float16")])
def test_a_fused_normalisation_is_computed_in_float64(tmp_path, layout, dtype, training):
    """Keras 2 writes BatchNormalization so, and LayerNormalization as one in training mode."""
    import tensorflow as tf

    channels, axes = (3, (0, 1, 2)) if layout == "NHWC" else (1, (0, 2, 3))
    shape = [2, 4, 5, 6]
    draw = np.random.default_rng(0)
    scale, offset, mean, variance = (draw.uniform(0.5, 2, shape[channels]).astype(np.float32) for _ in range(4))
    mode = {"data_format": layout, "is_training": training, "epsilon": 0.01}

    def call(x):
        own = ([], []) if training else (mean, variance)
        made = tf.raw_ops.FusedBatchNormV3(x=x, scale=scale, offset=offset, mean=own[0], variance=own[1], **mode)
        return {"y": tf.cast(made.y, tf.float32), "variance": made.batch_variance}

    module = tf.Module()
    module.call = tf.function(call, input_signature=[tf.TensorSpec(shape, dtype, "x")], autograph=False)
    tf.saved_model.save(module, str(tmp_path), signatures=module.call.get_concrete_function())
    x = draw.standard_normal(shape).astype(dtype).astype(float)
    oracle = oracle_of(tmp_path / "saved_model.pb")
    made = oracle.run({"x": x})
    laid = [-1 if axis == channels else 1 for axis in range(4)]
    mean, variance = (x.mean(axes), x.var(axes)) if training else (mean.astype(float), variance.astype(float))
    divided = (x - mean.reshape(laid)) / np.sqrt(variance.reshape(laid) + np.float32(0.01))
    np.testing.assert_allclose(made["y"], divided * scale.reshape(laid) + offset.reshape(laid), rtol=1e-6, atol=1e-12)
    terms = x.size / shape[channels]
    np.testing.assert_allclose(made["variance"], variance * (terms / (terms - 1) if training else 1), rtol=1e-6)
    noisy = oracle.in_arithmetic(RandomRounding("float32", 0, 0)).run({"x": x})["y"]
    assert 0 < np.abs(noisy - made["y"]).max() < (1e-5 if dtype == "float32" else 4e-3)
    if layout == "NHWC":  # TensorFlow has no other on the processor.
        np.testing.assert_allclose(
            module.call(x.astype(dtype))["y"], made["y"], atol=1e-5 if dtype == "float32" else 4e-3
        )


def test_a_signature_without_inputs_is_passed_over(with_constants):
    from tensorflow.core.protobuf import saved_model_pb2

    path, _ = with_constants
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    signatures = model.meta_graphs[0].signature_def
    for name in ("step", "init"):
        signatures[name].CopyFrom(signatures["serving_default"])
    signatures["init"].inputs.clear()
    del signatures["serving_default"]
    path.write_bytes(model.SerializeToString())
    assert [array.name for array in describe(path).of_role("input")] == ["x"]


def test_a_constant_that_the_graph_has_not_is_refused(with_constants):
    from tensorflow.core.protobuf import saved_model_pb2

    path, _ = with_constants
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    (saved,) = (each for each in model.meta_graphs[0].object_graph_def.nodes if each.WhichOneof("kind") == "constant")
    saved.constant.operation = "elsewhere"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelFileError, match="its constant elsewhere is not in its graph"):
        describe(path)


def test_one_input_without_a_number_of_axes_is_refused(with_constants):
    def without_axes(meta):
        shape = meta.signature_def["serving_default"].inputs["h"].tensor_shape
        shape.unknown_rank = True
        shape.ClearField("dim")

    path, _ = with_constants
    changed(without_axes)(path.parent)
    with pytest.raises(ModelFileError, match="the number of axes of an input or output is not known"):
        describe(path)


def saved_module(path, function, specs, **variables):
    """A module with a function of these inputs, which gets the module too."""
    import tensorflow as tf

    module = tf.Module()
    for name, value in variables.items():
        setattr(module, name, tf.Variable(value, name=name))
    named = [tf.TensorSpec(shape, tf.float32, name) for name, shape in specs.items()]
    module.call = tf.function(lambda *given: function(module, *given), input_signature=named, autograph=False)
    tf.saved_model.save(module, str(path), signatures=module.call)
    return path / "saved_model.pb"


def test_arrays_are_in_the_order_of_the_function(tmp_path):
    """A map of protobuf has another order in each process."""
    names = ["x", "zeta", "alpha", "mid", "beta", "omega"]
    function = lambda module, *given: {f"o{place}": array * 2.0 for place, array in enumerate(given)}  # noqa: E731
    path = saved_module(tmp_path, function, {name: (1, 2 + place) for place, name in enumerate(names)}, unused=0.0)
    found = describe(path)
    given = [array.name for array in found.of_role("input")]
    assert given in (names, sorted(names))
    assert [array.name for array in found.of_role("output")] == [f"o{place}" for place in range(len(names))]


def test_an_output_with_the_name_of_an_input_is_its_next_value(tmp_path):
    def step(module, x, h, c):
        after = 0.5 * c + x
        return {"y": h * 2.0, "h": h * 0.5 + x, "c": after}

    path = saved_module(tmp_path, step, {"x": (1, 4), "h": (1, 4), "c": (1, 4)}, unused=0.0)
    found = describe(path)
    assert {pair.before: pair.after for pair in found.state} == {"h": "h_next", "c": "c_next"}
    made = oracle_of(path).run({"x": np.ones((1, 4)), "h": np.full((1, 4), 2.0), "c": np.full((1, 4), 3.0)})
    assert {name: float(array[0, 0]) for name, array in made.items()} == {"y": 4.0, "h_next": 2.0, "c_next": 2.5}


def test_a_variable_of_which_a_part_is_assigned_is_a_state(tmp_path):
    import tensorflow as tf

    def step(module, x):
        module.ring.scatter_nd_update([[module.i % 3]], x)
        module.i.assign_add(1)
        module.last[0].assign(module.last[1] + x[0])
        tf.debugging.assert_equal(tf.shape(x)[0], 1)
        return {"y": tf.reduce_sum(module.ring, 0) + tf.math.round(module.last[0])}

    start = {"ring": np.zeros((3, 4), np.float32), "i": 0, "last": np.zeros((2, 4), np.float32)}
    path = saved_module(tmp_path, step, {"x": (1, 4)}, **start)
    found = describe(path)
    assert {pair.before for pair in found.state} == {"ring", "i", "last"}
    held = {"ring": np.ones((3, 4)), "i": np.array(4), "last": np.full((2, 4), 5.0)}
    made = oracle_of(path).run({"x": np.full((1, 4), 0.5), **held})
    assert made["ring_next"][:, 0].tolist() == [1.0, 0.5, 1.0]
    assert made["last_next"][:, 0].tolist() == [5.5, 5.0]
    assert int(made["i_next"]) == 5


def test_a_state_of_bytes_is_as_large_as_it_is(tmp_path):
    import tensorflow as tf

    def step(module, x):
        module.heard.assign(tf.concat([module.heard[:, 1:], tf.cast(x > 0, tf.int8)], 1))
        return {"y": x * tf.cast(module.heard[:, :1], tf.float32)}

    path = saved_module(tmp_path, step, {"x": (1, 1)}, heard=np.zeros((1, 100_000), np.int8))
    assert [(array.name, array.dtype) for array in describe(path).of_role("state_in")] == [("heard", "int8")]


def test_variables_that_a_call_changes_are_states(folder):
    _, found, _ = described(folder, "step")
    assert [(pair.before, pair.after, pair.found) for pair in found.state] == [("h", "h_next", "traced")]
    assert [(a.name, a.role, a.shape) for a in found.arrays] == [
        ("x", "input", (1, 3)),
        ("h", "state_in", (1, 4)),
        ("y", "output", (1, 4)),
        ("h_next", "state_out", (1, 4)),
    ]
    assert (found.format, found.weight_bytes, found.questions) == ("savedmodel", 4 * (7 * 4 + 4), ())
    assert found.external == ("variables/variables.data-00000-of-00001", "variables/variables.index")


def test_axes_of_open_sizes_are_asked(folder):
    _, found, _ = described(folder, "loop")
    assert [question.key for question in found.questions] == ["time", "batch"]
    assert not found.state
    assert [note.partition(",")[0] for note in found.notes] == ["No state was found: While begins anew in each call"]


def test_its_states_are_checked(folder):
    path, found, section = described(folder, "step")
    assert check_state(oracle_of(path), found, section).ok


@pytest.mark.parametrize(("name", "shape"), [("step", (1, 3)), ("loop", (3, 2, 3))])
def test_roundings_are_those_of_the_arithmetic(folder, name, shape):
    path, found, _ = described(folder, name)
    given = {"x": np.ones(shape), **{state.before: np.ones((1, 4)) for state in found.state}}
    exact, noisy = (
        oracle_of(path).in_arithmetic(a).run(given) for a in (Arithmetic(), RandomRounding("float32", 0, 0))
    )
    for output, array in exact.items():
        assert array.dtype == np.float64
        assert 1e-9 < np.abs(noisy[output] - array).max() < 1e-5


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("name", "route", "state"),
    [
        ("step", "graph", "stateful"),
        ("step", "graph", "stitched"),
        ("step", "xla", "stateful"),
        ("loop", "graph", "none"),
    ],
)
def test_a_stream_is_the_oracles(folder, tmp_path, name, route, state):
    path, found, section = described(folder, name)
    network = network_of(path, section, found)
    chunk, batch = (STEPS, 2) if state == "none" else (1, 1)
    x, start = draw_inputs(network, STEPS, batch, 0), draw_state(network, batch, 0)
    expected = run_reference(network, Weights(), x, start)
    request = Request(route, network, Weights(), Strategy("given", state, chunk), batch, Precision.of("float32"))
    program = TensorflowBackend().build(request, tmp_path)
    session, other = program.open(), program.open()
    session.set_state(start)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, atol=1e-6)
    for held, array in session.get_state().items():
        np.testing.assert_allclose(array, expected.final[held], atol=1e-6)
    other.set_state(start)
    bound = other.bind([{"x": x[first : first + chunk]} for first in range(0, STEPS, chunk)])
    for first in range(0, STEPS, chunk):
        bound()
        np.testing.assert_allclose(bound.output()["y"], expected.y[first : first + chunk], atol=1e-6)
    assert (program.artifact.lowered, program.artifact.origin) == ("given", "imported")


@pytest.mark.proof
@pytest.mark.parametrize("state", ["stateful", *for_proof("stitched")])
def test_iree_compiles_it_with_its_state(folder, tmp_path, state):
    runtime = pytest.importorskip("rnnbench.backends.iree")
    path, found, section = described(folder, "step")
    network = network_of(path, section, found)
    x, start = draw_inputs(network, STEPS, 1, 0), draw_state(network, 1, 0)
    expected = run_reference(network, Weights(), x, start)
    request = Request("tensorflow", network, Weights(), Strategy("given", state, 1), 1, Precision.of("float32"))
    assert runtime.IreeBackend().support(request).level == "emulated"
    session = runtime.IreeBackend().build(request, tmp_path).open()
    session.set_state(start)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, atol=1e-6)
    np.testing.assert_allclose(session.get_state()["h"], expected.final["h"], atol=1e-6)


def test_iree_says_why_it_cannot_compile_one(folder, tmp_path):
    """A loop over any number of steps: the sizes of its lists are not known."""
    runtime = pytest.importorskip("rnnbench.backends.iree")
    path, found, section = described(folder, "loop")
    network = network_of(path, section, found)
    request = Request("tensorflow", network, Weights(), Strategy("given", "none", 2), 2, Precision.of("float32"))
    with pytest.raises(BuildError, match=r"TensorFlow's passes failed: .*unknown tensor list element shape"):
        runtime.IreeBackend().build(request, tmp_path)


def test_iree_names_the_operation_that_tensorflows_passes_leave(tmp_path):
    """The compiler would end with SIGSEGV (docs/upstream/iree-unknown-operation.md)."""
    runtime = pytest.importorskip("rnnbench.backends.iree")

    def step(module, x):
        module.last[0].assign(x[0])
        return {"y": module.last + 0.0}

    path = saved_module(tmp_path, step, {"x": (1, 4)}, last=np.zeros((2, 4), np.float32))
    found = describe(path)
    network = network_of(path, section_of(found, path.name), found)
    request = Request("tensorflow", network, Weights(), Strategy("given", "stitched", 1), 1, Precision.of("float32"))
    with pytest.raises(BuildError, match=r"passes leave .*tf\.ResourceStridedSliceAssign.* as it is.*tensor_scatter"):
        runtime.IreeBackend().build(request, tmp_path / "cache")


def changed(change):
    def write(folder):
        from tensorflow.core.protobuf import saved_model_pb2

        path = folder / "saved_model.pb"
        model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
        change(model.meta_graphs[0])
        path.write_bytes(model.SerializeToString())

    return write


def with_operation(op):
    def change(meta):
        for function in meta.graph_def.library.function:
            for node in function.node_def:
                node.op = op if node.op == "Tanh" else node.op

    return changed(change)


def needs_a_table(meta):
    for node in meta.object_graph_def.nodes:
        if node.WhichOneof("kind") == "variable":
            node.resource.device = ""


def calls_itself(meta):
    for function in meta.graph_def.library.function:
        for node in function.node_def:
            if "f" in node.attr:
                node.attr["f"].func.name = function.signature.name


def calls_twice(meta):
    """Each of 40 functions calls the next one twice."""
    functions = meta.graph_def.library.function
    node = next(node for function in functions for node in function.node_def if "f" in node.attr)
    called = [f"twice_{number}" for number in range(41)]
    node.attr["f"].func.name = called[0]
    del node.input[:]
    functions.add().signature.name = called[-1]
    for name, inner in itertools.pairwise(called):
        function = functions.add()
        function.signature.name = name
        for place in range(2):
            function.node_def.add(name=f"call_{place}", op="PartitionedCall").attr["f"].func.name = inner


def linked(folder):
    (folder / "variables" / "variables.index").unlink()
    (folder / "variables" / "variables.index").symlink_to("/etc/passwd")


def enlarged(folder):
    os.truncate(folder / "variables" / "variables.data-00000-of-00001", 1 << 36)


def swapped(folder):
    file = folder / "variables" / "variables.data-00000-of-00001"
    data = file.read_bytes()
    half = len(data) // 2
    file.write_bytes(data[half:] + data[:half])


def cut(folder):
    file = folder / "variables" / "variables.index"
    file.write_bytes(file.read_bytes()[:-9])


def names_another_object(meta):
    functions = meta.object_graph_def.concrete_functions
    for name in functions:
        for place in range(len(functions[name].bound_inputs)):
            functions[name].bound_inputs[place] = 10**6


def gives_less(meta):
    for node in meta.graph_def.node:
        if "f" in node.attr and node.input:
            node.input.pop()


def gives_another_result(meta):
    for info in meta.signature_def["serving_default"].outputs.values():
        info.name = f"{info.name.partition(':')[0]}:7"


REFUSED = {
    "objects": (changed(names_another_object), "names the object 1000000, and there are"),
    "arguments": (changed(gives_less), "arguments to the function"),
    "results": (changed(gives_another_result), "is result 7 of the function"),
    "swapped": (swapped, "cannot be read from the files of variables/: they are damaged, or of another model"),
    "cut": (cut, "its variables cannot be read from the files of variables/: they are damaged"),
    "enlarged": (enlarged, "its checkpoint has 68,719,47"),
    "reads files": (with_operation("ReadFile"), "ReadFile is not among those that are read; write that part"),
    "cell": (
        with_operation("LSTMBlockCell"),
        "LSTMBlockCell is not among those that are read; write that part in other",
    ),
    "draws": (with_operation("StatelessRandomUniformV2"), "build the network without dropout in its recurrent layers"),
    "prints": (with_operation("PrintV2"), "those that are read; save the network without tf.print"),
    "transforms": (with_operation("RFFT"), "those that are read; export the network between the Fourier transforms"),
    "looks up": (with_operation("LookupTableFindV2"), "those that are read; write the table's values as a tensor"),
    "table": (changed(needs_a_table), "needs a table or an asset beside it"),
    "recursion": (changed(calls_itself), "its functions call each other more than"),
    "twice": (changed(calls_twice), "a call of it runs more than 100,000 operations"),
    "no input": (
        changed(lambda meta: meta.signature_def["serving_default"].inputs.clear()),
        "its signature has no inputs or no outputs",
    ),
    "no signature": (changed(lambda meta: meta.signature_def.clear()), "it has the signatures none"),
    "version 1": (changed(lambda meta: meta.ClearField("object_graph_def")), "no SavedModel of TensorFlow 2"),
    "linked": (linked, "is a symbolic link, and those are not followed; copy the model"),
    "no variables": (lambda folder: shutil.rmtree(folder / "variables"), "the folder variables beside it is missing"),
    "another": (lambda folder: (folder / "saved_model.pb").write_bytes(b"\xff" * 50), "it is no SavedModel"),
    "empty": (lambda folder: (folder / "saved_model.pb").write_bytes(b""), "it is empty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_a_sentence(tmp_path, folder, name):
    change, told = REFUSED[name]
    copy = shutil.copytree(folder / "step", tmp_path / "copy")
    change(copy)
    with pytest.raises(ModelFileError) as caught:
        describe(copy / "saved_model.pb")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_only_signature_may_have_any_name(tmp_path, folder):
    def renamed(*names):
        copy = shutil.copytree(folder / "step", tmp_path / names[0])
        changed(lambda meta: rename(meta.signature_def, names))(copy)
        return copy / "saved_model.pb"

    def rename(signatures, names):
        for name in names:
            signatures[name].CopyFrom(signatures["serving_default"])
        del signatures["serving_default"]

    assert describe(renamed("step")).arrays == describe(folder / "step" / "saved_model.pb").arrays
    with pytest.raises(ModelFileError, match="signatures once, reset; one that is called serving_default is read"):
        describe(renamed("reset", "once"))


def test_a_folder_is_told_which_file_to_give(folder):
    with pytest.raises(ModelFileError, match=r"the folder of a SavedModel; give the file saved_model.pb in it"):
        describe(folder / "step")


@pytest.mark.parametrize("name", ["saved_model.pb", "variables/variables.index"])
def test_damaged_bytes_never_raise_anything_else(tmp_path, folder, name):
    copy, draw, refused = shutil.copytree(folder / "step", tmp_path / "copy"), random.Random(0), 0
    good = (copy / name).read_bytes()
    for _ in range(20):
        data = bytearray(good)
        for _ in range(8):
            data[draw.randrange(len(data))] = draw.randrange(256)
        (copy / name).write_bytes(data)
        try:
            describe(copy / "saved_model.pb")
        except ModelFileError:
            refused += 1
    assert refused >= 2


def saved_step(folder, call, held=None, **shapes):
    """A model of one function, with inputs of these names."""
    import tensorflow as tf

    module = tf.Module()
    module.held = held
    specs = [tf.TensorSpec(shape, tf.float32, name) for name, shape in shapes.items()]
    module.call = tf.function(call, input_signature=specs, autograph=False)
    tf.saved_model.save(module, str(folder), signatures=module.call.get_concrete_function())
    return folder / "saved_model.pb"


def test_sequences_are_turned_in_float64(tmp_path):
    import tensorflow as tf

    turned = saved_step(tmp_path, lambda x: {"y": tf.reverse_sequence(x, [2, 3], seq_axis=1, batch_axis=0)}, x=(2, 3))
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(oracle_of(turned).run({"x": x})["y"], [[1, 0, 2], [5, 4, 3]])


@pytest.mark.parametrize("is_crossed", [True, False])
def test_states_whose_names_are_the_wrong_way_round_are_asked_for(tmp_path, is_crossed):
    """Each next value is computed from its own state, within a function, and the names say the other one."""
    import tensorflow as tf

    inner = tf.function(lambda x, a, b: (tf.concat([a[:, 1:], x], 1), tf.tanh(b) + x), autograph=False)

    def call(x, h1, h2):
        first, second = inner(x, h1, h2)
        names = ("h2_out", "h1_out") if is_crossed else ("h1_out", "h2_out")
        return {"y": tf.reduce_sum(first + second, 1), **dict(zip(names, (first, second), strict=True))}

    found = describe(saved_step(tmp_path, call, x=(1, 1), h1=(1, 4), h2=(1, 4)))
    assert {pair.before: pair.after for pair in found.state} == ({} if is_crossed else {"h1": "h1_out", "h2": "h2_out"})
    asked = {question.array: question.text for question in found.questions if question.key == "state"}
    assert asked.keys() == ({"h1", "h2"} if is_crossed else set())
    assert not is_crossed or "is its next value h1_out, as the names say, or h2_out?" in asked["h1"]


@pytest.mark.parametrize("kind", ["computed", "moved", "with x"])
def test_an_output_that_is_computed_from_an_input_alone_is_asked_for(tmp_path, kind):
    """As an embedding, which has a shape of its own."""
    import tensorflow as tf

    kept = tf.Variable(tf.zeros((1, 7)), name="kept")

    def call(x, profile):
        made = {"computed": tf.tanh, "moved": tf.identity, "with x": lambda array: array + kept}[kind](profile)
        if kind == "with x":
            kept.assign(kept * x[:, :1])
        return {"y": tf.reduce_sum(x, 1) + tf.reduce_max(profile), "emb": made}

    found = describe(saved_step(tmp_path, call, kept, x=(1, 3), profile=(1, 7)))
    assert ("profile" in {pair.before for pair in found.state}) is (kind != "computed")
    asked = [question.text for question in found.questions if question.array == "profile"]
    assert bool(asked) is (kind == "computed")
    assert kind != "with x" or set(found.depends["kept_next"]) == {"x", "kept"}
