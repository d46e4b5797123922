"""SavedModels and `.keras` files whose arrays are not float32."""

from __future__ import annotations

import os
from functools import cache

import numpy as np
import pytest
import typed_streams as typed
from quick_tests import for_proof

from rnnbench.backends import find
from rnnbench.backends.tensorflow import TensorflowBackend
from rnnbench.model_files import ModelFileError, describe, oracle_of
from rnnbench.rnn import Arithmetic, RandomRounding

SAVED_MODELS = {
    **{name: (name, name) for name in ("float64", "bfloat16", "float16")},
    "counted": ("float32", "float32"),
    "mixed": ("float64", "float32"),
    "half": ("float32", "float16"),
}
"""By name: the type of x and of the state, and that of the product inside."""


@pytest.fixture(scope="module")
def saved_model(tmp_path_factory):
    """`saved_model(name)`: a cell with its state in variables, and a counter of steps beside it."""
    from rnnbench.backends.tensorflow.process import prepare_process

    prepare_process(1)
    import tensorflow as tf

    folder = tmp_path_factory.mktemp("types")

    @cache
    def saved(name):
        dtype, inside = (getattr(tf, each) for each in SAVED_MODELS[name])
        tf.saved_model.save(*_cell(tf, dtype, inside, folder / name))
        return folder / name / "saved_model.pb"

    return saved


@pytest.fixture(scope="module")
def keras_file(tmp_path_factory):
    """`keras_file(policy)`: a layer that keeps its state, in the types of a policy; `several`: a head in another."""
    from rnnbench.backends.tensorflow.process import prepare_process

    prepare_process(1)
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    import keras

    folder = tmp_path_factory.mktemp("types")

    @cache
    def saved(policy):
        keras.utils.set_random_seed(0)
        given = keras.Input((None, 3), batch_size=1)
        first, last = ("float32", "float64") if policy == "several" else (policy, policy)
        # TensorFlow has no orthogonal matrices in bfloat16.
        start = {"recurrent_initializer": "glorot_uniform"}
        made = keras.layers.GRU(4, stateful=True, return_sequences=True, dtype=first, **start)(given)
        keras.Model(given, keras.layers.Dense(2, dtype=last)(made)).save(folder / f"{policy}.keras")
        return folder / f"{policy}.keras"

    return saved


def _cell(tf, dtype, inside, path):
    module = tf.Module()
    module.weights = tf.Variable(np.random.default_rng(0).standard_normal((7, 4)) * 0.4, dtype=inside)
    module.h, module.count = tf.Variable(tf.zeros((1, 4), dtype), name="h"), tf.Variable(0, name="count")

    def step(x):
        product = tf.matmul(tf.cast(tf.concat([x, module.h], 1), inside), module.weights)
        h = module.h.assign(tf.cast(tf.sigmoid(product), dtype))
        return {"y": h / tf.cast(module.count.assign_add(1), dtype)}

    specs = [tf.TensorSpec((1, 3), dtype, "x")]
    module.call = tf.function(step, input_signature=specs, autograph=False)
    return module, str(path), module.call


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("on", "name", "state"),
    [
        ("tensorflow:graph", "float64", "stateful"),
        *(("tensorflow:graph", "counted", "stitched"), ("tensorflow:xla", "counted", "stateful")),
        *(("tensorflow:graph", "half", "stateful"), ("tensorflow:xla", "bfloat16", "stitched")),
        ("tensorflow:graph", "mixed", "stitched"),
        *for_proof(
            ("iree:tensorflow", "counted", "stitched"),
            *(("tensorflow:xla", "float64", "stitched"), ("tensorflow:xla", "float16", "stateful")),
            *(("iree:tensorflow", "counted", "stateful"), ("iree:tensorflow", "half", "stateful")),
            *(("tensorflow:graph", "bfloat16", "stateful"), ("tensorflow:xla", "half", "stitched")),
            ("tensorflow:graph", "float16", "stitched"),
        ),
    ],
)
def test_a_saved_model_of_other_types(saved_model, tmp_path, on, name, state):
    backend, route = on.split(":")
    adapter = find(backend)
    if lack := adapter.probe().lack(route):
        pytest.skip(f"{on} {lack.reason}; {lack.install}")
    request = typed.asked(saved_model(name), route, ("batch=0", "time=null"), state)
    assert request.model.types == {
        "int32",
        {"mixed": "float64", "half": "float32", "counted": "float32"}.get(name, name),
    }
    typed.assert_right(adapter, request, tmp_path)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("policy", "dtype", "state"),
    [
        ("mixed_float16", "float32", "stitched"),
        *for_proof(
            ("several", "float64", "stateful"),
            ("float64", "float64", "stateful"),
            ("float16", "float32", "stateful"),
            ("bfloat16", "float32", "stitched"),
        ),
    ],
)
def test_keras_layers_of_other_types(keras_file, tmp_path, policy, dtype, state):
    request = typed.asked(keras_file(policy), "keras", (), state)
    assert request.precision.uniform == dtype
    typed.assert_right(TensorflowBackend(), request, tmp_path)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("mixed", 1e-9, 1e-6), ("half", 1e-5, 5e-3), ("bfloat16", 1e-4, 5e-2), ("float16", 1e-5, 5e-3)],
)
def test_a_saved_model_of_several_types_is_rounded_where_the_file_rounds(saved_model, name, low, high):
    import tensorflow as tf

    path = saved_model(name)
    oracle, given = oracle_of(path), {"x": np.ones((1, 3)), "h": np.full((1, 4), 0.5), "count": np.array(6, np.int32)}
    exact = oracle.run(given)
    widest = "float64" if name == "mixed" else "float32"
    noisy = oracle.in_arithmetic(RandomRounding(widest, 0, 0)).run(given)
    assert exact["count_next"] == noisy["count_next"] == 7
    for output in ("y", "h_next"):
        assert low < np.abs(noisy[output] - exact[output]).max() < high
    module = tf.saved_model.load(str(path.parent))
    module.h.assign(tf.cast(given["h"], module.h.dtype))
    module.count.assign(6)
    theirs = module.call(tf.cast(given["x"], module.h.dtype))["y"]
    assert np.abs(tf.cast(theirs, tf.float64).numpy() - exact["y"]).max() < high


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("policy", "low", "high"),
    [
        *(("several", 1e-9, 1e-6), ("mixed_float16", 1e-5, 5e-3)),
        *for_proof(("mixed_bfloat16", 1e-4, 5e-2), ("float16", 1e-5, 5e-3), ("bfloat16", 1e-4, 5e-2)),
    ],
)
def test_keras_layers_of_several_types_are_rounded_where_they_round(keras_file, policy, low, high):
    import keras
    import tensorflow as tf

    path = keras_file(policy)
    found, oracle = describe(path), oracle_of(path)
    x, model = np.random.default_rng(0).standard_normal((1, 4, 3)), keras.models.load_model(path)
    given = {array.name: np.zeros((1, 4)) for array in found.of_role("state_in")}
    given |= {array.name: x for array in found.of_role("input")}
    (name,) = (array.name for array in found.of_role("output"))
    widest = "float64" if policy == "several" else "float32"
    exact, noisy = (oracle.in_arithmetic(a).run(given) for a in (Arithmetic(), RandomRounding(widest, 0, 0)))
    assert low < np.abs(noisy[name] - exact[name]).max() < high
    theirs = tf.cast(model(x), tf.float64).numpy()
    assert np.abs(theirs - exact[name]).max() < high


@pytest.mark.usefixtures("keras_file")
def test_keras_layers_of_other_types_are_refused_and_told_what_to_do(tmp_path):
    import keras

    given = keras.Input((None, 3), batch_size=1)
    model = keras.Model(given, keras.layers.Dense(2)(given))
    model.quantize("int8")
    model.save(tmp_path / "int8.keras")
    with pytest.raises(ModelFileError) as caught:
        describe(tmp_path / "int8.keras")
    assert "computes in QuantizedDTypePolicy; float64, float32, float16, bfloat16, mixed_float16 and " in str(
        caught.value
    )
    assert "set_dtype_policy('float32')" in str(caught.value)
