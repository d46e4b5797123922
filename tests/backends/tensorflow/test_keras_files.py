"""`.keras` files: what is in them, what they give in float64 and on TensorFlow, and what is refused."""

from __future__ import annotations

import io
import json
import random
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from quick_tests import for_proof

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.tensorflow import TensorflowBackend
from rnnbench.cases import Precision, Strategy
from rnnbench.model_files import ModelFileError, UserInputs, check_state, describe, network_of, oracle_of, section_of
from rnnbench.rnn import Arithmetic, RandomRounding, Weights, draw_inputs, draw_state, run_reference

STEPS = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`stateful`: an LSTM that keeps its state; `passed`: one whose state is passed; `whole`: both directions.

    `masked`: a mask, in layers whose names TensorFlow cannot have.
    """
    from rnnbench.backends.tensorflow.process import prepare_process

    prepare_process(1)
    import keras
    from keras import layers

    keras.utils.set_random_seed(0)
    folder = tmp_path_factory.mktemp("keras")
    stateful = [keras.Input(batch_shape=(1, None, 3)), layers.LSTM(4, stateful=True, return_sequences=True)]
    keras.Sequential([*stateful, layers.Dense(2)], name="net").save(folder / "stateful.keras")
    x, h, c = keras.Input((None, 3), name="x"), keras.Input((4,), name="h"), keras.Input((4,), name="c")
    y, *after = layers.LSTM(4, return_sequences=True, return_state=True, name="lstm")(x, initial_state=[h, c])
    named = {"y": layers.LayerNormalization()(y), "h_new": after[0], "c_new": after[1]}
    keras.Model([x, h, c], named).save(folder / "passed.keras")
    both = layers.Bidirectional(layers.GRU(4, return_sequences=True))
    keras.Sequential([keras.Input((None, 3)), layers.Conv1D(3, 2, padding="causal"), both]).save(folder / "whole.keras")
    x = keras.Input((None, 3), name="the input")
    cell = layers.GRU(4, return_sequences=True, dropout=0.3, name="die Zelle, \u5c64")  # It has a seed, not a weight.
    masked = cell(layers.Masking(name="mask & more")(x))
    keras.Model(x, masked, name="[the] net").save(folder / "masked.keras")
    return folder


@pytest.fixture(scope="module")
def content(folder):
    """The entries of the stateful file by name."""
    with zipfile.ZipFile(folder / "stateful.keras") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def described(path):
    description = describe(path)
    return description, network_of(path, section_of(description, path.name), description)


def test_variables_of_stateful_layers_are_states(folder):
    found, network = described(folder / "stateful.keras")
    pairs = [(pair.before, pair.after, pair.found) for pair in found.state]
    assert pairs == [("lstm_h", "lstm_h_next", "traced"), ("lstm_c", "lstm_c_next", "traced")]
    x, *states = found.of_role("input", "state_in")
    assert (x.shape, x.time, x.batch) == ((1, "steps", 3), 1, 0)
    assert [state.shape for state in states] == [(1, 4)] * 2
    assert (found.format, found.operators, found.questions) == ("keras", {"LSTM": 1, "Dense": 1}, ())
    assert found.weight_bytes == 4 * (3 * 16 + 4 * 16 + 16 + 4 * 2 + 2)
    assert found.producer.startswith("keras 3")
    assert (network.rows, network.steps) == (1, None)


def test_states_that_a_model_takes_and_gives_are_followed_through_its_layers(folder):
    found, _ = described(folder / "passed.keras")
    assert {(pair.before, pair.after, pair.found) for pair in found.state} == {
        ("h", "h_new", "traced"),
        ("c", "c_new", "traced"),
    }
    assert not found.notes


def states_in_layers():
    """Models whose states take other ways than an argument `initial_state` of one layer, by name."""
    from keras import Input, Model, Sequential, layers, ops

    def ends(*names):
        return [Input((None, 3), name="x"), *(Input((4,), name=name) for name in names)]

    def lstm(**more):
        return layers.LSTM(4, return_sequences=True, return_state=True, **more)

    given = ends("h", "c")
    yield "positional", Model(given, list(lstm(name="lstm")(given[0], given[1:]))), {"h": "lstm_1", "c": "lstm_2"}
    given = ends("h", "c")
    y, h, c = lstm()(given[0], initial_state=given[1:])
    yield "same", Model(dict(zip("xhc", given, strict=True)), {"y": y, "h": h, "c": c}), {"h": "h_next", "c": "c_next"}
    x, packed = Input((None, 3), name="x"), Input((2, 4), name="packed")
    y, h, c = lstm()(x, initial_state=[packed[:, 0], packed[:, 1]])
    yield "packed", Model([x, packed], [y, ops.stack([h, c], 1)]), {"packed": "stack"}
    inner, given = ends("h"), ends("h")
    gru = layers.GRU(4, return_sequences=True, return_state=True)
    y, h = Model(inner, list(gru(inner[0], initial_state=inner[1])), name="inner")(given)
    yield "nested", Model(given, [layers.Dense(2)(y), h]), {"h": "inner"}
    x, *given = Input((3,), name="x"), Input((4,), name="h"), Input((4,), name="c")
    y, (h, c) = layers.LSTMCell(4, name="cell")(x, given)
    yield "cell", Model([x, *given], [layers.Dense(2)(y), h, c]), {"h": "cell", "c": "cell_1"}
    given = ends("f", "b")
    both = layers.Bidirectional(layers.GRU(4, return_sequences=True, return_state=True), name="both")
    yield "both", Model(given, list(both(given[0], initial_state=given[1:]))), {"f": "both_1", "b": "both_2"}
    cells = layers.RNN([layers.LSTMCell(4), layers.GRUCell(4)], stateful=True, return_sequences=True, name="rnn")
    pairs = {f"rnn_{place}": f"rnn_{place}_next" for place in range(3)}
    yield "cells", Sequential([Input(batch_shape=(1, None, 3)), cells]), pairs


def test_states_are_followed_whatever_way_they_take(folder, tmp_path):
    for name, model, pairs in states_in_layers():
        model.save(tmp_path / f"{name}.keras")
        found = describe(tmp_path / f"{name}.keras")
        assert {pair.before: pair.after for pair in found.state} == pairs, name
        assert {pair.found for pair in found.state} == {"traced"}, name
        assert not found.notes, name


def test_a_layer_with_lora_has_the_kernel_that_keras_saves(folder, tmp_path):
    import keras

    model = keras.Sequential(
        [keras.Input((None, 3)), keras.layers.Dense(4), keras.layers.GRU(2, return_sequences=True)]
    )
    dense = model.layers[0]
    dense.enable_lora(2)
    for weight in (dense.lora_kernel_a, dense.lora_kernel_b):
        weight.assign(keras.random.normal(weight.shape))
    model.save(tmp_path / "lora.keras")
    x = np.random.default_rng(0).standard_normal((1, 4, 3)).astype("float32")
    found = describe(tmp_path / "lora.keras")
    given, made = (found.of_role(role)[0].name for role in ("input", "output"))
    assert oracle_of(tmp_path / "lora.keras").run({given: x})[made] == pytest.approx(np.asarray(model(x)), abs=1e-5)


def test_constants_between_layers_are_read(folder, tmp_path):
    """As the places that are added to what each step is given: Keras has them in the layers, by name a NumPy array."""
    import keras
    from keras import layers, ops

    x = keras.Input(batch_shape=(1, None, 3), name="x")
    y = layers.GRU(4, stateful=True, return_sequences=True, name="gru")(x + np.array([1.5, 2, 3], np.float32))
    model, path = keras.Model(x, y * ops.convert_to_tensor([[[2.0, 3, 4, 5]]])), tmp_path / "constants.keras"
    model.save(path)
    given = np.random.default_rng(0).standard_normal((1, 2, 3))
    made = oracle_of(path).run({"x": given, "gru_h": np.zeros((1, 4))})
    np.testing.assert_allclose(next(iter(made.values())), np.asarray(model(given)), atol=1e-6)


def test_tokens_in_floats_are_told_with_their_range(folder, tmp_path):
    import keras
    from keras import layers

    embedding = layers.Embedding(50, 3, name="words")
    layer = layers.GRU(4, stateful=True, return_sequences=True)
    path = tmp_path / "tokens.keras"
    keras.Sequential([keras.Input(batch_shape=(1, None), name="tokens"), embedding, layer]).save(path)
    found = describe(path)
    assert "--set 'ranges.tokens=[0, 49]'" in found.notes[0]
    section = replace(section_of(found, path.name), ranges={"tokens": (0, 49)})
    assert check_state(oracle_of(path), found, section).ok
    network = network_of(path, section, found, UserInputs(ranges=section.ranges))
    x = draw_inputs(network, 300, 1, 0)
    assert set(x.ravel()) == set(range(50))
    assert not network.takes_any_number


def test_an_output_of_another_number_of_steps_is_told(folder, tmp_path):
    """TimeDistributed makes as many steps as there are rows (docs/upstream/keras-time-distributed-steps.md)."""
    import keras
    from keras import layers

    path = tmp_path / "each.keras"
    layer = layers.GRU(4, stateful=True, return_sequences=True)
    each = layers.TimeDistributed(layers.Dense(2), name="each")
    keras.Sequential([keras.Input(batch_shape=(1, None, 3)), layer, each]).save(path)
    found = describe(path)
    with pytest.raises(ModelFileError, match="each has 1 steps in a call of 4"):
        check_state(oracle_of(path), found, section_of(found, path.name))


def test_a_layer_that_begins_anew_in_each_call_is_said(folder):
    found, network = described(folder / "whole.keras")
    assert not found.state
    assert "GRU states start from the same value in every call" in found.notes[0]
    assert not network.states


@pytest.mark.first(1)
@pytest.mark.parametrize("name", ["stateful", "passed"])
def test_its_states_are_checked(folder, name):
    path = folder / f"{name}.keras"
    found, _ = described(path)
    check = check_state(oracle_of(path), found, section_of(found, path.name))
    assert check.ok
    assert check.halves is not None


def test_its_weights_have_the_names_of_keras(folder):
    found = {name: array.shape for name, array in oracle_of(folder / "stateful.keras").weights()}
    assert found["lstm/lstm_cell/kernel"] == (3, 16)


@pytest.mark.first(1)
@pytest.mark.parametrize("name", ["stateful", "passed", "whole", "masked"])
def test_roundings_are_those_of_the_arithmetic(folder, name):
    path = folder / f"{name}.keras"
    found, oracle = describe(path), oracle_of(path)
    sizes, draw = {"batch": 2, "steps": 3}, np.random.default_rng(0)
    given = {
        a.name: draw.standard_normal([sizes.get(s, s) for s in a.shape]) for a in found.of_role("input", "state_in")
    }
    exact, noisy = (oracle.in_arithmetic(each).run(given) for each in (Arithmetic(), RandomRounding("float32", 0, 0)))
    for output, array in exact.items():
        assert array.dtype == np.float64
        assert 1e-9 < np.abs(noisy[output] - array).max() < 1e-5


def test_a_masked_step_keeps_the_state(folder):
    x, made = np.random.default_rng(0).standard_normal((1, 5, 3)), oracle_of(folder / "masked.keras")
    x[:, 2] = 0
    (y,) = made.run({"the input": x}).values()
    np.testing.assert_array_equal(y[:, 2], y[:, 1])
    assert (y[:, 3] != y[:, 2]).any()


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("name", "route", "state"),
    [
        ("stateful", "keras-xla", "stitched"),
        ("passed", "keras", "stateful"),
        ("masked", "keras", "none"),
        *for_proof(("stateful", "keras", "stateful"), ("passed", "keras", "stitched"), ("whole", "keras", "none")),
    ],
)
def test_a_stream_is_the_oracles(folder, tmp_path, name, route, state):
    _, network = described(folder / f"{name}.keras")
    chunk, batch = (STEPS, 2) if state == "none" else (2, network.rows or 2)
    x, start = draw_inputs(network, STEPS, batch, 0), draw_state(network, batch, 0)
    expected = run_reference(network, Weights(), x, start)
    request = Request(route, network, Weights(), Strategy("given", state, chunk), batch, Precision.of("float32"))
    program = TensorflowBackend().build(request, tmp_path)
    session = program.open()
    session.set_state(start)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, atol=1e-6)
    for held, array in session.get_state().items():
        np.testing.assert_allclose(array, expected.final[held], atol=1e-6)
    session.set_state(start)
    bound = session.bind([{"x": x[:chunk]}])
    bound()
    np.testing.assert_allclose(bound.output()["y"], expected.y[:chunk], atol=1e-6)
    assert (program.artifact.lowered, program.artifact.origin) == ("given", "imported")


def test_a_route_that_does_not_read_it_says_which_does(folder, tmp_path):
    _, network = described(folder / "whole.keras")
    request = Request("graph", network, Weights(), Strategy("given", "none", 2), 1, Precision.of("float32"))
    with pytest.raises(BuildError, match="use tensorflow:keras, tensorflow:keras-xla"):
        TensorflowBackend().build(request, tmp_path)


def packed(path, content):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def with_config(content, change):
    config = json.loads(content["config.json"])
    change(config, config["config"]["layers"][1])
    return {**content, "config.json": json.dumps(config)}


def with_weights(content, change):
    import h5py

    stored = io.BytesIO(content["model.weights.h5"])
    with h5py.File(stored, "r+") as file:
        change(h5py, file["layers/dense/vars"])
    return {**content, "model.weights.h5": stored.getvalue()}


def linked(h5py, group):
    del group["0"]
    group["0"] = h5py.ExternalLink("/etc/passwd", "/x")


def compressed(h5py, group):
    del group["0"]
    group.create_dataset("0", data=np.zeros((4, 2), "f4"), compression="gzip")


def outside(h5py, group):
    del group["0"]
    group.create_dataset("0", (4, 2), "f4", external=[("/etc/passwd", 0, 32)])


def reshaped(_, group):
    del group["1"]
    group["1"] = np.zeros(3, "f4")


def moved(_, group):
    group.parent.move("vars", "elsewhere")


def unending(h5py, group):
    group["again"] = group


REFUSED = {
    "lambda": (
        lambda c: with_config(c, lambda _, layer: layer.update(class_name="Lambda")),
        "not read; export the network",
    ),
    "reads files": (
        lambda c: with_config(c, lambda _, layer: layer.update(class_name="TFSMLayer")),
        "TFSMLayer of keras.layers, which is not among the layers that are read; export the network",
    ),
    "custom": (
        lambda c: with_config(c, lambda _, layer: layer.update(module="os", class_name="system")),
        "'system', a class or function of its maker's own, which is not in the file; export the network",
    ),
    "registered": (
        lambda c: with_config(c, lambda _, layer: layer.update(registered_name="a>LSTM")),
        "'LSTM', a class",
    ),
    "function": (
        lambda c: with_config(
            c,
            lambda _, layer: layer["config"].update(
                activation={"module": "builtins", "class_name": "function", "config": "eval", "registered_name": "eval"}
            ),
        ),
        "'function', a class or function",
    ),
    "float8": (lambda c: with_config(c, lambda _, layer: layer["config"].update(dtype="float8_e4m3fn")), "in float8"),
    "int8": (
        lambda c: with_config(
            c,
            lambda _, layer: layer["config"].update(
                dtype={"module": "keras.dtype_policies", "class_name": "QuantizedDTypePolicy", "config": {}}
            ),
        ),
        "a layer computes in QuantizedDTypePolicy",
    ),
    "no model": (
        lambda c: with_config(c, lambda config, _: config.update(class_name="Mine")),
        "not in the file; export the network",
    ),
    "giant": (lambda c: with_config(c, lambda _, layer: layer["config"].update(units=10**7)), "need more weights"),
    "huge": (lambda c: with_config(c, lambda _, layer: layer["config"].update(units=10**12)), "the size 1000000000000"),
    "other": (lambda c: with_config(c, lambda _, layer: layer["config"].update(units=3)), "cannot build its layers"),
    "other shape": (
        lambda c: with_weights(c, reshaped),
        "its weights of the layer 'dense' do not fit it: the file has the shape [3], where the layer needs [2]; it is",
    ),
    "text": (
        lambda c: with_config(c, lambda _, layer: layer["config"].update(units="5")),
        "Keras cannot build its layers: '<=' not supported between",
    ),
    "moved": (
        lambda c: with_weights(c, moved),
        "of the layer 'dense' do not fit it: the file has 0 of the 2 that it needs",
    ),
    "assets": (lambda c: {**c, "assets/words.txt": b"a"}, "'assets/words.txt' beside its layers"),
    "no weights": (lambda c: {name: data for name, data in c.items() if "h5" not in name}, "no model.weights.h5"),
    "linked": (lambda c: with_weights(c, linked), "is a link, which may lead to another file"),
    "compressed": (lambda c: with_weights(c, compressed), "is compressed or in another file"),
    "outside": (lambda c: with_weights(c, outside), "is compressed or in another file"),
    "unending": (lambda c: with_weights(c, unending), "groups in groups without an end"),
    "no json": (lambda c: {**c, "config.json": b"{"}, "its config.json is damaged: it is no JSON at line 1, column 2"),
    "keras 2": (
        lambda c: {**c, "metadata.json": b'{"keras_version": "2.15.0"}'},
        "Keras 2.15.0 wrote it, whose .keras files name layers and weights otherwise; load it there, and save it as",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_a_sentence(tmp_path, content, name):
    make, told = REFUSED[name]
    with pytest.raises(ModelFileError) as caught:
        describe(packed(tmp_path / "a.keras", make(content)))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


DAMAGED = [
    (("config",), None, "its model: 'config' is missing, where Keras writes an object"),
    (("module",), [], "'module' is [], where Keras writes a text"),
    (("config", "layers"), 7, "'layers' is 7, where Keras writes a list"),
    (("config", "layers", 1), 7, "layer 1: is 7, where Keras writes an object"),
    (("config", "layers", 1, "name"), None, "layer 1: 'name' is missing, where Keras writes a text"),
    (("config", "layers", -1, "inbound_nodes"), None, "'inbound_nodes' is missing, where Keras writes a list"),
    (("config", "layers", -1, "inbound_nodes"), [], "it has no inputs"),
    (("config", "layers", -1, "inbound_nodes", 0, "kwargs"), 7, "'kwargs' is 7, where Keras writes an object"),
    (("config", "output_layers"), [["q", 0, 0]], "'output_layers' names the layer 'q', which is not there"),
    (("config", "input_layers"), "q", "'input_layers' names no tensor of a layer"),
    (("config", "input_layers", 0, 1), 9, "'input_layers' names call 9 of its layer"),
]


@pytest.mark.parametrize(("place", "value", "told"), DAMAGED, ids=[told for _, _, told in DAMAGED])
def test_a_description_that_keras_does_not_write_is_told_with_its_place(tmp_path, folder, place, value, told):
    with zipfile.ZipFile(folder / "passed.keras") as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    config = part = json.loads(content["config.json"])
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    with pytest.raises(ModelFileError) as caught:
        describe(packed(tmp_path / "a.keras", {**content, "config.json": json.dumps(config).encode()}))
    assert told in str(caught.value)
    assert "Error" not in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "model.weights.h5", "the zip"])
def test_damaged_bytes_never_raise_anything_else(tmp_path, folder, content, name):
    draw, path, refused = random.Random(0), tmp_path / "a.keras", 0
    for _ in range(20):
        data = bytearray(content.get(name) or (folder / "stateful.keras").read_bytes())
        for _ in range(8):
            data[draw.randrange(len(data))] = draw.randrange(256)
        if name in content:
            packed(path, {**content, name: bytes(data)})
        else:
            path.write_bytes(data)
        try:
            describe(path)
        except ModelFileError:
            refused += 1
    assert refused >= 2


def test_an_output_that_is_computed_from_an_input_alone_is_asked_for(tmp_path):
    """As an embedding, which has a shape of its own."""
    import keras

    x, profile = keras.Input((3,), name="x", batch_size=1), keras.Input((7,), name="profile", batch_size=1)
    made = {"y": keras.layers.Dense(2)(x), "emb": keras.layers.Dense(7, activation="tanh")(profile)}
    keras.Model([x, profile], made).save(tmp_path / "profile.keras")
    found = describe(tmp_path / "profile.keras")
    assert found.state == ()
    asked = [question.text for question in found.questions if question.array == "profile"]
    assert asked[0].startswith("is emb its next value? It is computed from profile alone")
