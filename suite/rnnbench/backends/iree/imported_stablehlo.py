"""Route `stablehlo`: the function that JAX would compile, as StableHLO text that IREE compiles instead; or a user's.

IREE's parser takes JAX's text as it is. TensorFlow's text (`experimental_get_compiler_ir(stage="stablehlo")`) works for
a module of tensors, but that of a Keras layer contains `mhlo.copy`, which is not StableHLO.
"""

from __future__ import annotations

import re

from rnnbench.backends.base import Request
from rnnbench.backends.iree.imported import Imported
from rnnbench.backends.iree.stablehlo_file import file_module
from rnnbench.backends.jax.stablehlo import COPY, stablehlo

_ALIAS = re.compile(rf'^(#loc\d+) = loc\("[^"]*\b{COPY}(\d+)\b[^"]*".*\)$', re.MULTILINE)


def import_module(request: Request) -> Imported:
    """The locations of the copies of the cell are taken from JAX's names of them.

    Raises ModelFileError for a file that cannot be read.
    """
    if request.file is not None:
        return file_module(request, request.file)
    module = stablehlo(request)
    text = re.sub(r"^module @\w+", "module @rnn", module.text, count=1, flags=re.MULTILINE)
    text = text.replace("func.func public @main(", "func.func public @step(", 1)
    return Imported(_ALIAS.sub(r'\1 = loc("copy \2")', text), module.x, module.state)
