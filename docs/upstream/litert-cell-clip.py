# /// script
# dependencies = ["tensorflow==2.21.0", "ai-edge-litert==2.3.0", "numpy"]
# ///
"""TensorFlow's converter limits the cell state of the fused LSTM to 10, which nobody asked for.

All gates are open. 20 steps add 1 to the cell state and 15 steps take 1 from it: 5 is left, and y is tanh 5 = 1. With
a limit of 10 it is tanh -5 = -1.
"""

import sys

import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

STEPS = [1] * 20 + [-1] * 15


def replaced(x, h, c, kernel, recurrent_kernel, bias):
    """The converter puts UNIDIRECTIONAL_SEQUENCE_LSTM in its place."""
    return h, tf.zeros((x.shape[0], *h.shape)), h, c, tf.constant(0.0)


def program(x):
    zeros, kernel = tf.zeros((1, 1)), tf.constant([[0.0, 0, 100, 0]])  # gates in the order i f g o
    arguments = [x, zeros, zeros, kernel, tf.zeros((1, 4)), tf.constant([100.0, 100, 0, 100])]
    lstm = tf.function(
        replaced,
        [tf.TensorSpec(each.shape, each.dtype) for each in arguments],
        autograph=False,
        experimental_attributes={
            "api_implements": "lstm_reproduction",
            "time_major": True,
            "go_backwards": False,
            "api_preferred_device": "CPU",
        },
    )
    return lstm(*arguments)[1]


module = tf.Module()
module.run = tf.function(program, [tf.TensorSpec((len(STEPS), 1, 1), tf.float32)], autograph=False)
converter = tf.lite.TFLiteConverter.from_concrete_functions([module.run.get_concrete_function()], module)
interpreter = Interpreter(model_content=converter.convert())
interpreter.allocate_tensors()
operators = {node["op_name"] for node in interpreter._get_ops_details()}
assert "UNIDIRECTIONAL_SEQUENCE_LSTM" in operators, operators
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.float32(STEPS).reshape(-1, 1, 1))
interpreter.invoke()
y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).ravel()[-1]
print(f"last y: expected 1, found {y:.3f}")
sys.exit(int(abs(y - 1) > 0.01))
