"""ONNX's Resize and Upsample in the forms that its reference does not have, and the sizes that their scales stand for.

Before version 11 the reference has Upsample with whole scales that are an input, and mode nearest. Later, it multiplies
a size by a scale of float32 in float64, so 0.7 of 10 elements are 6, where runtimes make 7.
Source: onnx/reference/ops/op_upsample.py and op_resize.py (onnx 1.23), and the texts of the operators. Places are as
ONNX Runtime has them (`asymmetric`), since the text does not say them before version 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rnnbench.model_files.errors import ModelFileError


def resampled(
    self: Any, x: np.ndarray, given: np.ndarray | None = None, *, scales: Sequence[float] = (), mode: str, **others: Any
) -> tuple[np.ndarray]:
    """Upsample, and Resize before version 11. In version 7 the scales are an attribute."""
    factors = _as_written(x.shape, scales if given is None else given)
    for axis, factor in enumerate(factors):
        size = x.shape[axis]
        if factor == 1:
            continue
        if mode == "nearest" and factor < 1:
            raise ModelFileError(
                f"{self.onnx_node.op_type} to fewer elements, of mode nearest: before version 11 the standard does not "
                "say which they are; export the network with opset 11 or later"
            )
        places = np.arange(int(size * factor)) / factor
        low = np.minimum(places.astype(int), size - 1)
        below = np.take(x, low, axis)
        if mode == "nearest":
            x = below
            continue
        part = (places - low).reshape(-1, *[1] * (x.ndim - 1 - axis))
        above = np.take(x, np.minimum(low + 1, size - 1), axis)
        x = (below * (1 - part) + above * part).astype(x.dtype)
    return (x,)


def resize_class(reference: Any) -> Any:
    """The reference's Resize, with scales as they were written."""

    def run(self: Any, x: Any, roi: Any = None, scales: Any = None, sizes: Any = None, **options: Any) -> Any:
        if scales is not None and sizes is None:
            axes = options.get("axes") or range(x.ndim)
            scales = np.array(_as_written([x.shape[axis] for axis in axes], scales))
        return reference._run(self, x, roi, scales, sizes, **options)

    return type("Resize", (reference,), {"op_domain": "", "_run": run})


def _as_written(sizes: Sequence[int], scales: Any) -> list[float]:
    return [_scale(size, np.float32(scale)) for size, scale in zip(sizes, scales, strict=True)]


def _scale(size: int, scale: np.float32) -> float:
    """The scale in float64 that gives as many elements as float32 does: the shortest number that is the scale there,
    0.7 and not 0.69999999, or the nearest one to it."""
    count, written = int(np.float32(size) * scale), float(str(scale))
    if int(size * written) == count:
        return written
    edge, further = (count / size, np.inf) if size * written < count else ((count + 1) / size, 0)
    return edge if int(size * edge) == count else float(np.nextafter(edge, further))
