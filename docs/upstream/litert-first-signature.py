# /// script
# dependencies = ["tensorflow==2.21.0", "ai-edge-litert==2.3.0", "numpy"]
# ///
"""LiteRT's invoke() runs the signature that comes first by name, and not the one that was converted first.

A model has the signatures `step` and `get_state`, in this order. invoke() is called as the documentation shows it.
"""

import sys
import tempfile

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

    @tf.function(input_signature=[tf.TensorSpec([1], tf.float32)])
    def get_state(self, x):
        return {"y": x + self.calls}


module = Counter()
with tempfile.TemporaryDirectory() as folder:
    tf.saved_model.save(module, folder, {"step": module.step, "get_state": module.get_state})
    converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=["step", "get_state"])
    converter.experimental_enable_resource_variables = True
    interpreter = Interpreter(model_content=converter.convert())
interpreter.allocate_tensors()
for _ in range(2):
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.zeros(1, np.float32))
    interpreter.invoke()
y = float(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0])
print(f"signatures: {list(interpreter.get_signature_list())}; after two calls: expected 2, found {y:.0f}")
sys.exit(int(y != 2))
