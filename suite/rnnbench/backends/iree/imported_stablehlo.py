"""Route `stablehlo`: the function that JAX would compile, lowered to StableHLO and handed to IREE instead.

JAX's text is what IREE's parser takes as it is. TensorFlow's (`experimental_get_compiler_ir(stage="stablehlo")`) works
for a module of one's own, but a Keras layer's contains `mhlo.copy`, which is no StableHLO.
"""

from __future__ import annotations

import re

import jax

from rnnbench.backends.base import Request
from rnnbench.backends.iree.imported import Imported
from rnnbench.backends.jax.lowered import TAG
from rnnbench.backends.jax.network import network, state_size

_ALIAS = re.compile(rf'^(#loc\d+) = loc\("[^"]*\b{TAG}(\d+)\b[^"]*".*\)$', re.MULTILINE)


def import_module(request: Request) -> Imported:
    """The state is JAX's one flat array of h and c. The locations of copies are taken from JAX's names of them."""
    x = (request.strategy.chunk, request.batch, request.model.input)
    state = ((state_size(request),),) if request.strategy.state != "none" else ()
    # Lines of Python would be part of the program, and move with every edit.
    jax.config.update("jax_traceback_in_locations_limit", 0)
    arguments = [jax.ShapeDtypeStruct(shape, "float32") for shape in (x, *state)]
    text = jax.jit(network(request)).lower(*arguments).as_text(debug_info=True)
    text = re.sub(r"^module @\w+", "module @rnn", text, count=1, flags=re.MULTILINE)
    text = text.replace("func.func public @main(", "func.func public @step(", 1)
    return Imported(_ALIAS.sub(r'\1 = loc("copy \2")', text), x, state)
