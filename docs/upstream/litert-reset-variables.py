# /// script
# dependencies = ["tensorflow==2.21.0", "ai-edge-litert==2.3.0", "numpy"]
# ///
"""LiteRT's reset_all_variables() leaves the variables of a converted tf.Module as they are.

The module counts its calls in a tf.Variable that begins with 0.
"""

import sys

import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter


class Counter(tf.Module):
    def __init__(self):
        super().__init__()
        self.calls = tf.Variable(tf.zeros(1))

    @tf.function(input_signature=[tf.TensorSpec([1], tf.float32)])
    def step(self, x):
        return {"y": x + self.calls.assign_add(tf.ones(1))}


module = Counter()
converter = tf.lite.TFLiteConverter.from_concrete_functions([module.step.get_concrete_function()], module)
converter.experimental_enable_resource_variables = True
interpreter = Interpreter(model_content=converter.convert())
interpreter.allocate_tensors()


def call():
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.zeros(1, np.float32))
    interpreter.invoke()
    return float(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0])


before = [call(), call()]
interpreter.reset_all_variables()
after = call()
assert before == [1, 2], before
print(f"the first call after reset_all_variables(): expected 1, found {after:.0f}")
sys.exit(int(after != 1))
