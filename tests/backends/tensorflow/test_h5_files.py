"""`.h5` files of Keras 1 to 3: they are read as the `.keras` file of the same network, and what Keras 2 means stays."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rnnbench.backends.base import Request
from rnnbench.backends.tensorflow import TensorflowBackend
from rnnbench.cases import Precision, Strategy
from rnnbench.model_files import ModelFileError, check_state, describe, network_of, oracle_of, section_of
from rnnbench.model_files.formats.keras.older import in_keras_3
from rnnbench.rnn import Weights, draw_inputs, draw_state, run_reference

UNITS, WIDTH = 4, 3


@pytest.fixture(scope="module")
def keras():
    from rnnbench.backends.tensorflow.process import prepare_process

    prepare_process(1)
    import keras

    yield keras
    keras.utils.clear_session()  # Names of layers are counted from the beginning again.


def networks(keras):
    """Networks of Keras 3 by name."""
    layers = keras.layers
    stateful = [keras.Input(batch_shape=(1, None, WIDTH)), layers.LSTM(UNITS, stateful=True, return_sequences=True)]
    yield "stateful", keras.Sequential([*stateful, layers.BatchNormalization(), layers.Dense(2, activation="relu")])
    both = layers.Bidirectional(layers.GRU(UNITS, return_sequences=True), name="both ways")
    yield "both", keras.Sequential([keras.Input((None, WIDTH)), layers.Masking(), both, layers.Dropout(0.5)])
    x, h, c = (keras.Input(size, name=name) for size, name in (((None, WIDTH), "x"), ((UNITS,), "h"), ((UNITS,), "c")))
    lstm = layers.LSTM(UNITS, return_sequences=True, return_state=True, name="lstm")
    yield "passed", keras.Model([x, h, c], list(lstm(x, initial_state=[h, c])))
    inner = keras.Sequential([keras.Input((None, WIDTH)), layers.Dense(WIDTH), layers.Dense(WIDTH)], name="inner")
    x = keras.Input((None, WIDTH), name="x")
    yield "nested", keras.Model(x, layers.RNN([layers.LSTMCell(UNITS), layers.GRUCell(2)])(inner(x)))


def drawn(path, seed=0):
    sizes, draw = {"batch": 2, "steps": 3}, np.random.default_rng(seed)
    ends = describe(path).of_role("input", "state_in")
    return {array.name: draw.standard_normal([sizes.get(size, size) or 3 for size in array.shape]) for array in ends}


@pytest.mark.proof
def test_what_keras_3_writes_is_the_network_of_the_keras_file(keras, tmp_path):
    keras.utils.set_random_seed(0)
    for name, model in networks(keras):
        for weight in model.weights:
            weight.assign(keras.random.uniform(weight.shape))
        suffixes = (".keras", ".h5", *([".hdf5"] if name == "stateful" else []))
        paths = [tmp_path / f"{name}{suffix}" for suffix in suffixes]
        for path in paths:
            model.save(path)
        first, *others = (oracle_of(path).run(drawn(paths[0])) for path in paths)
        for other in others:
            assert first.keys() == other.keys()
            for output, array in first.items():
                np.testing.assert_array_equal(array, other[output], err_msg=name)
        kept, old = describe(paths[0]), describe(paths[1])
        assert (kept.state, kept.operators, kept.weight_bytes) == (old.state, old.operators, old.weight_bytes)


def stored(path, config, weights, version="2.15.0"):
    """A file as Keras 2 writes it. `weights`: those of each layer by their names."""
    import h5py

    with h5py.File(path, "w") as file:
        file.attrs["model_config"], file.attrs["keras_version"] = json.dumps(config), version
        group = file.create_group("model_weights")
        group.attrs["layer_names"] = [name.encode() for name in weights]
        for name, arrays in weights.items():
            layer = group.create_group(name)
            layer.attrs["weight_names"] = [f"{name}/cell/{each}:0" for each in arrays]
            for each, value in arrays.items():
                layer[f"{name}/cell/{each}:0"] = value.astype(np.float32)
    return path


def gates(kind):
    """The weights of a layer with this number of gates."""
    draw, columns = np.random.default_rng(0), UNITS * {"LSTM": 4, "GRU": 3}[kind]
    shapes = {"kernel": (WIDTH, columns), "recurrent_kernel": (UNITS, columns), "bias": (columns,)}
    return {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def layer(kind, **more):
    """The part of a layer in a file of Keras 2."""
    initializer = {"class_name": "GlorotUniform", "config": {"seed": None}}
    config = {"name": kind.lower(), "trainable": True, "units": UNITS, "activation": "tanh", "use_bias": True}
    config |= {"return_sequences": True, "recurrent_activation": "sigmoid", "kernel_initializer": initializer}
    return {"class_name": kind, "config": config | {"dtype": "float32", "implementation": 1} | more}


def first(kind, **more):
    return layer(kind, batch_input_shape=[None, None, WIDTH], **more)


def sequential(*layers):
    return {"class_name": "Sequential", "config": {"name": "net", "layers": [*layers]}}


def hard_sigmoid(x):
    return np.clip(0.2 * x + 0.5, 0, 1)


def lstm_of_keras_2(weights, x):
    """With hard sigmoids, from zeros: the default of Keras before 2.3."""
    h = c = np.zeros((len(x), UNITS))
    made = []
    for step in x.swapaxes(0, 1):
        i, f, g, o = np.split(step @ weights["kernel"] + h @ weights["recurrent_kernel"] + weights["bias"], 4, axis=-1)
        c = hard_sigmoid(f) * c + hard_sigmoid(i) * np.tanh(g)
        h = hard_sigmoid(o) * np.tanh(c)
        made.append(h)
    return np.stack(made, 1)


def gru_of_keras_2(weights, x):
    """The reset gate scales the state before the product: the only form of Keras before 2.1.5."""
    h, made = np.zeros((len(x), UNITS)), []
    (w_z, w_r, w_h), (r_z, r_r, r_h), (b_z, b_r, b_h) = (np.split(each, 3, axis=-1) for each in weights.values())
    for step in x.swapaxes(0, 1):
        z, r = hard_sigmoid(step @ w_z + h @ r_z + b_z), hard_sigmoid(step @ w_r + h @ r_r + b_r)
        h = z * h + (1 - z) * np.tanh(step @ w_h + (r * h) @ r_h + b_h)
        made.append(h)
    return np.stack(made, 1)


@pytest.mark.first(1)
@pytest.mark.parametrize(("kind", "expected"), [("LSTM", lstm_of_keras_2), ("GRU", gru_of_keras_2)])
def test_a_hard_sigmoid_and_a_gru_are_those_of_keras_2(keras, tmp_path, kind, expected):
    weights = gates(kind)
    config = first(kind, recurrent_activation="hard_sigmoid")
    del config["config"]["dtype"]
    config = {"class_name": "Sequential", "config": [config]}
    path = stored(tmp_path / "old.h5", config, {kind.lower(): weights}, "2.1.3")
    x = np.random.default_rng(1).standard_normal((2, 5, WIDTH)) * 2
    found = describe(path)
    (y,) = oracle_of(path).run({found.of_role("input")[0].name: x}).values()
    np.testing.assert_allclose(y, expected(weights, x), atol=1e-12)
    assert (found.producer, found.operators[kind]) == ("keras 2.1.3", 1)


@pytest.mark.proof
def test_a_stream_of_a_layer_of_keras_2_is_the_oracles(keras, tmp_path):
    """Keras 3 itself refuses it: `Unrecognized keyword arguments passed to LSTM: {'time_major': False}`."""
    stateful = layer("LSTM", batch_input_shape=[1, None, WIDTH], stateful=True, time_major=False)
    path = stored(tmp_path / "old.h5", sequential(stateful), {"lstm": gates("LSTM")})
    found = describe(path)
    section = section_of(found, path.name)
    assert check_state(oracle_of(path), found, section).ok
    network = network_of(path, section, found)
    x, start = draw_inputs(network, 6, 1, 0), draw_state(network, 1, 0)
    expected = run_reference(network, Weights(), x, start)
    request = Request("keras", network, Weights(), Strategy("given", "stateful", 2), 1, Precision.of("float32"))
    session = TensorflowBackend().build(request, tmp_path).open()
    session.set_state(start)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, atol=1e-6)


def test_a_file_of_tensorflow_2_11_may_be_called_keras(keras, tmp_path):
    path = stored(tmp_path / "net.keras", sequential(first("LSTM", time_major=False)), {"lstm": gates("LSTM")})
    assert describe(path).operators == {"LSTM": 1}


def connected(name, kind, nodes, **config):
    return {**layer(kind, name=name, **config), "name": name, "inbound_nodes": nodes}


def given(name, *shape):
    config = {"batch_input_shape": [None, *shape], "dtype": "float32", "sparse": False, "ragged": False, "name": name}
    return {"class_name": "InputLayer", "config": config, "name": name, "inbound_nodes": []}


def of_layers(layers, inputs, outputs, kind="Functional", name="net"):
    ends = [[[name, call, 0] for name, call in side] for side in (inputs, outputs)]
    config = {"name": name, "layers": layers, "input_layers": ends[0], "output_layers": ends[1]}
    return {"class_name": kind, "config": config}


@pytest.mark.parametrize("kind", ["Functional", "Model"])
def test_states_of_keras_2_are_followed_though_they_are_inputs_of_the_layer(keras, tmp_path, kind):
    nodes = [[["x", 0, 0, {}], ["h", 0, 0, {}], ["c", 0, 0, {}]]]
    lstm = connected("lstm", "LSTM", nodes, return_state=True, time_major=False)
    ends = [given("x", None, WIDTH), given("h", UNITS), given("c", UNITS)]
    config = of_layers([*ends, lstm], [(name, 0) for name in "xhc"], [("lstm", 0)], kind)
    config["config"]["output_layers"] = [["lstm", 0, place] for place in range(3)]
    path = stored(tmp_path / "old.h5", config, {"lstm": gates("LSTM")})
    assert {pair.before: pair.after for pair in describe(path).state} == {"h": "lstm_1", "c": "lstm_2"}


@pytest.mark.first(1)
@pytest.mark.parametrize("begin", [0, 1])
@pytest.mark.parametrize("kind", ["Functional", "Sequential"])
def test_a_model_in_a_model_of_keras_2_has_its_own_weights_and_calls(keras, tmp_path, kind, begin):
    """Keras 2 counts the calls of a model in a model from 1, and before 2.4 from 0. Its second call is an output."""
    inner = sequential(layer("LSTM", batch_input_shape=[None, None, WIDTH]))
    inner["config"]["name"] = "inner"
    if kind == "Functional":
        layers = [given("inside", None, WIDTH), connected("lstm", "LSTM", [[["inside", 0, 0, {}]]])]
        inner = of_layers(layers, [("inside", 0)], [("lstm", 0)], name="inner")
    nested = {**inner, "name": "inner", "inbound_nodes": [[["x", 0, 0, {}]], [["other", 0, 0, {}]]]}
    last = connected("gru", "GRU", [[["inner", begin, 0, {}]]], reset_after=False)
    ends = [given("x", None, WIDTH), given("other", None, WIDTH)]
    config = of_layers([*ends, nested, last], [("x", 0), ("other", 0)], [("gru", 0), ("inner", begin + 1)])
    weights = {"inner": gates("LSTM"), "gru": gates("GRU") | {"kernel": np.ones((UNITS, 3 * UNITS))}}
    with pytest.raises(ModelFileError, match="its weights of 'inner' do not fit the layer"):
        describe(stored(tmp_path / "other.h5", config, weights))
    path = stored(tmp_path / "old.h5", config, weights)
    renamed(path, "inner", "lstm")
    x, other = np.random.default_rng(1).standard_normal((2, 2, 5, WIDTH))
    alone = stored(tmp_path / "alone.h5", sequential(first("LSTM")), {"lstm": gates("LSTM")})
    rest = sequential(layer("GRU", batch_input_shape=[None, None, UNITS], reset_after=False))
    rest = stored(tmp_path / "rest.h5", rest, {"gru": weights["gru"]})
    made = oracle_of(path).run({"x": x, "other": other})
    np.testing.assert_allclose(made["gru"], of_one(rest, of_one(alone, x)), atol=1e-12)
    np.testing.assert_allclose(made["inner"], of_one(alone, other), atol=1e-12)


def of_one(path, x):
    """What a network of one input and one output gives."""
    (y,) = oracle_of(path).run({describe(path).of_role("input")[0].name: x}).values()
    return y


def renamed(path, group, layer_name):
    """Gives the weights of a model in a model the name of its layer, as Keras 2 does."""
    import h5py

    with h5py.File(path, "r+") as file:
        weights = file["model_weights"][group]
        weights.move(group, layer_name)
        names = [str(name).replace(f"{group}/", f"{layer_name}/") for name in weights.attrs["weight_names"]]
        weights.attrs["weight_names"] = names


OLD = {
    "SpatialDropout1D": ({"rate": 0.1, "noise_shape": None, "trainable": True}, {"rate": 0.1}),
    "BatchNormalization": ({"axis": [2], "epsilon": 0.001}, {"axis": 2, "epsilon": 0.001}),
    "MultiHeadAttention": ({"num_heads": 2, "query_shape": [1], "key_shape": [1]}, {"num_heads": 2}),
    "GRUCell": ({"units": 4, "implementation": 2}, {"units": 4, "reset_after": False}),
    "LSTM": ({"units": 4, "dtype": {"class_name": "Policy", "config": {"name": "float64"}}}, {"units": 4}),
}


@pytest.mark.parametrize("kind", OLD)
def test_what_keras_3_has_no_word_for_is_left_out(kind):
    given, expected = OLD[kind]
    layers = sequential({"class_name": kind, "config": given})
    (old,) = in_keras_3(layers, "2.15.0")["config"]["layers"]
    assert old["config"] == {"dtype": "float64" if kind == "LSTM" else "float32", **expected}
    (new,) = in_keras_3(layers, "3.10.0")["config"]["layers"]
    assert new["config"].keys() == given.keys()


def lambda_layer():
    return {"class_name": "Lambda", "config": {"name": "f", "function": ["4wEAAAA=", None, None]}}


REFUSED = {
    "code": ([first("LSTM"), lambda_layer()], "Python code; files with code are not read; export the network"),
    "cudnn": ([first("CuDNNLSTM")], "it has CuDNNLSTM of Keras 2, which Keras 3 does not have; export the network"),
    "operation": ([first("LSTM"), layer("TFOpLambda")], "it has TFOpLambda of Keras 2"),
    "own": ([first("LSTM"), layer("Mine")], "'Mine', which is not among the layers that are read, or a class of its"),
    "time first": (
        [first("LSTM", time_major=True)],
        "it has LSTM with time_major or constants, which Keras 3",
    ),
    "function": ([first("LSTM", activation="mine")], "Keras cannot build its layers"),
    "huge": ([first("LSTM", units=10**12)], "the size 1000000000000"),
    "giant": ([first("LSTM", units=10**7)], "need more weights"),
    "units": ([first("LSTM", units=3)], "its weights of 'lstm' do not fit the layer: it has lstm/cell/kernel [3, 16]"),
    "more layers": ([first("LSTM"), layer("LSTM", name="second")], "it has no weights of its layer 'second'"),
    "another": ([first("LSTM", name="other")], "it has weights of 'lstm', which is no layer of its network"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_a_sentence(keras, tmp_path, name):
    layers, told = REFUSED[name]
    with pytest.raises(ModelFileError) as caught:
        describe(stored(tmp_path / "a.h5", sequential(*layers), {"lstm": gates("LSTM")}))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["GetItem", "Add"])
def test_an_operation_between_layers_is_told_where_keras_3_wrote_it(kind):
    """It writes no module, so that `x + y` is called as the layer Add is, which takes one list."""
    operation = {"class_name": kind, "config": {"name": "operation"}}
    with pytest.raises(ModelFileError, match=f"it has {kind}, an operation between layers, .*model.save"):
        in_keras_3(sequential(first("LSTM"), operation), "3.15.1")
    added = {"class_name": "Add", "config": {"name": "added", "trainable": True, "dtype": "float32"}}
    assert in_keras_3(sequential(first("LSTM"), added), "3.15.1")["config"]["layers"][-1]["class_name"] == "Add"


def test_a_file_of_weights_alone_is_told_so(keras, tmp_path):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_group("lstm")["kernel"] = np.zeros(3)
    with pytest.raises(ModelFileError, match=r"a file of save_weights has weights alone: .* model\.save"):
        describe(tmp_path / "a.h5")


def test_a_link_to_another_file_is_refused(keras, tmp_path):
    import h5py

    path = stored(tmp_path / "a.h5", sequential(first("LSTM")), {"lstm": gates("LSTM")})
    with h5py.File(path, "r+") as file:
        file["model_weights/lstm/elsewhere"] = h5py.ExternalLink("/etc/passwd", "/x")
    with pytest.raises(ModelFileError, match="is a link, which may lead to another file"):
        describe(path)


def test_bytes_that_are_wrong_are_a_sentence(keras, tmp_path):
    good = stored(tmp_path / "a.h5", sequential(first("LSTM")), {"lstm": gates("LSTM")}).read_bytes()
    draw, refused = np.random.default_rng(0), 0
    for _ in range(20):
        data = bytearray(good)
        for place in draw.integers(8, len(data), 24):
            data[place] = draw.integers(256)
        (tmp_path / "b.h5").write_bytes(data)
        try:
            describe(tmp_path / "b.h5")
        except ModelFileError:
            refused += 1
    assert refused >= 2
