# /// script
# dependencies = ["jax[cuda13]==0.11.2", "numpy"]
# [tool.rnnbench]
# tools = "nvidia-smi: a GPU of NVIDIA and its driver"
# ///
"""jax.experimental.rnn.lstm is silently wrong inside jit, where its input or output is transposed beside it.

Called with the same arrays, transposed outside of jit, it is right.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import rnn

BATCH, STEPS, INPUT, HIDDEN = 2, 4, 4, 6
SIZES = (INPUT, HIDDEN, 1, 0.0, False, jax.lax.Precision.HIGHEST)
draw = np.random.default_rng(0)
x = draw.normal(size=(STEPS, BATCH, INPUT)).astype(np.float32)
weights = draw.normal(size=rnn.get_num_params_in_lstm(INPUT, HIDDEN, 1, False)).astype(np.float32) * 0.3
zeros = jnp.zeros((1, BATCH, HIDDEN))
lengths = jnp.full(BATCH, STEPS, jnp.int32)


def lstm(x):
    """y [batch, steps, hidden] of x [batch, steps, input]."""
    return rnn.lstm(x, zeros, zeros, jnp.asarray(weights), lengths, *SIZES)[0]


@jax.jit
def with_steps_first(x):
    return lstm(x.transpose(1, 0, 2)).transpose(1, 0, 2)


def error(y):
    """The largest difference from JAX's own reference for this operator."""
    unpacked = rnn.unpack_lstm_weights(jnp.asarray(weights), INPUT, HIDDEN, 1, False)
    with jax.default_matmul_precision("highest"):
        expected = rnn.lstm_ref(x.transpose(1, 0, 2), zeros, zeros, *unpacked, lengths, *SIZES[:-1])[0]
    return float(np.abs(np.asarray(y) - np.asarray(expected).transpose(1, 0, 2)).max())


outside = error(np.asarray(jax.jit(lstm)(x.transpose(1, 0, 2))).transpose(1, 0, 2))
inside = error(with_steps_first(x))
print(f"largest error: transposed outside of jit {outside:.1e}, inside {inside:.1e}")
sys.exit(int(inside > 1e-3))
