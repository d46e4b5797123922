"""Route `tensorflow`: a SavedModel, lowered by TensorFlow's own passes to StableHLO. Its variables are globals.

IREE compiles StableHLO with `ml_program.global`, if globals come before the functions that use them.
"""

from __future__ import annotations

import re

from rnnbench.backends.base import Request
from rnnbench.backends.iree.imported import Imported
from rnnbench.backends.tensorflow.ml_program import COPY, ml_program

_GLOBAL = re.compile(r"^ *ml_program\.global .*\n", re.MULTILINE)
_HEAD = re.compile(r"^module\b.*\{.*\n", re.MULTILINE)
_COPY = re.compile(rf'loc\("[^"]*\b{COPY}(\d+)/[^"]*"\)')
_NODE = re.compile(r'loc\("(?!copy \d)[^"]*"\)')


def import_module(request: Request) -> Imported:
    """The locations of the copies of the cell are taken from TensorFlow's names of nodes.

    The other names have numbers that TensorFlow counts in each process. They are left out, so that equal requests have
    equal text.
    """
    module = ml_program(request)
    text = _NODE.sub("loc(unknown)", _COPY.sub(r'loc("copy \1")', module.text))
    head = "module @rnn {\n" + "".join(_GLOBAL.findall(text))
    text = _HEAD.sub(lambda _: head, _GLOBAL.sub("", text), count=1)
    return Imported(text, module.x, module.state)
