"""Primitives of `MorePrimitives` that some networks need and stacks of cells do not, in sets by what needs them.

An adapter declares the ones that its routes have (`Probe.authors`).
"""

from __future__ import annotations

LINEAR_PRIMITIVES = frozenset({"cumsum", "einsum", "exp", "log_sigmoid", "reshape", "rows", "stacked"})
"""Only layers whose state is linear in itself need these."""
LAYER_PRIMITIVES = LINEAR_PRIMITIVES | {"columns", "concat", "div", "mean", "sqrt"}
"""With these a route has every layer. `while`, the loop around the parts of a compound network, is apart."""
LIBRARY_OPERATORS = frozenset({"causal_convolution", "linear_attention"})
"""Operators of a library for all steps of a layer. Time `fused` needs them."""
