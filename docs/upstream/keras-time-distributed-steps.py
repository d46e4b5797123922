# /// script
# dependencies = ["keras==3.15.1", "tensorflow==2.21.0"]
# ///
"""Keras' TimeDistributed makes as many steps as there are rows, where the number of steps is open.

A Dense layer for each step of x [2, steps, 3]. In a tf.function with an open number of steps, y has 2 of 5 steps.
"""

import os
import sys

os.environ.update(KERAS_BACKEND="tensorflow", CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")
import keras
import tensorflow as tf

ROWS, STEPS = 2, 5
layer = keras.layers.TimeDistributed(keras.layers.Dense(4))
model = keras.Sequential([keras.Input(batch_shape=(ROWS, None, 3)), layer])
traced = tf.function(model, input_signature=[tf.TensorSpec((ROWS, None, 3))], autograph=False)
x = tf.ones((ROWS, STEPS, 3))
expected, found = model(x).shape[1], traced(x).shape[1]
print(f"{STEPS} steps, {ROWS} rows: called directly y has {expected} steps, and in a tf.function {found}")
sys.exit(int(expected == STEPS != found))
