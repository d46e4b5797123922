# /// script
# dependencies = ["keras==3.15.1", "tensorflow==2.21.0", "numpy"]
# ///
"""Keras clears the wrong outputs of an unrolled layer that runs backwards with a mask.

A row of 2 valid steps in a call of 4. The layer gives back x. The loop gives 0 0 1 1, in the order in which the steps
are run. Found with 3.15: the unrolled layer gives other outputs.
"""

import sys

import keras
import numpy as np

x, mask = np.ones((1, 4, 1), np.float32), np.array([[True, True, False, False]])


def outputs(unroll):
    layer = keras.layers.SimpleRNN(
        1,
        activation="linear",
        use_bias=False,
        kernel_initializer="ones",
        recurrent_initializer="zeros",
        return_sequences=True,
        go_backwards=True,
        zero_output_for_mask=True,
        unroll=unroll,
    )
    return np.ravel(layer(x, mask=mask))


loop, unrolled = outputs(unroll=False), outputs(unroll=True)
print("loop", loop, "unrolled", unrolled)
sys.exit(not np.array_equal(loop, unrolled))
