"""What Keras says of layers that it cannot build, or of weights that do not fit them, in one short sentence.

Keras' own messages have the whole description of a layer before what is wrong with it.
"""

from __future__ import annotations

import re

from rnnbench.model_files.tensorflow_program import error_line
from rnnbench.outside_text import safe_text

_INNER = "Exception encountered: "
"""Before the error of a layer in a model, and of a model in a model."""
_UNLOADED = re.compile(
    r"could not be loaded\. Example error message for object <\w+ name=(.*?), built=\w+>:\s*(.*)", re.S
)
_SHAPES = re.compile(r"variable\.shape=\(([\d, ]*)\), Received: value\.shape=\(([\d, ]*)\)")
_COUNTS = re.compile(r"expected (\d+) variables, but received (\d+)")
_DAMAGED = "it is damaged or edited; save the network again"


def in_short(error: Exception) -> str:
    """What is wrong with the layers or the weights of a file."""
    message = str(error)
    if unloaded := _UNLOADED.search(message):
        return (
            f"its weights of the layer '{safe_text(unloaded[1], 80)}' do not fit it{_misfit(unloaded[2])}; {_DAMAGED}"
        )
    if _INNER in message:
        message = safe_text(message.rpartition(_INNER)[2], 200)
        return f"Keras cannot build its layers: {message}"
    return f"Keras cannot build its layers: {error_line(error)}"


def _misfit(reason: str) -> str:
    if shapes := _SHAPES.search(reason):
        needed, there = (f"[{shape.rstrip(', ')}]" for shape in shapes.groups())
        return f": the file has the shape {there}, where the layer needs {needed}"
    if counts := _COUNTS.search(reason):
        return f": the file has {counts[2]} of the {counts[1]} that it needs"
    return ""
