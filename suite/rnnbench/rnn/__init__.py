"""Recurrent networks: what is computed, without any framework.

A `Model` specifies a network. `draw_weights`, `draw_inputs`, `draw_lengths` and `draw_state` draw its numbers from a
seed, and `run_reference` computes what it gives, in float64. `Network.body` has the equations of each layer over
`Primitives`, for backends that author programs. `call_cost` says what a call must read and do. `DTYPES` has the number
formats, with their precision, and `in_int8` the bytes of weights that were drawn for int8.

A name is imported when it is first used, so that `Model` alone does not import NumPy.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.rnn.arithmetic import Arithmetic, RandomRounding
    from rnnbench.rnn.compound import CompoundNetwork, LoopPrimitives, Part, Stream, joined
    from rnnbench.rnn.cost import Cost, Reading, call_cost
    from rnnbench.rnn.dtypes import DTYPES, Dtype, from_bits, nearest, rounded
    from rnnbench.rnn.einsum import aligned, contraction, permutation
    from rnnbench.rnn.graph import run_graph, state_by_array, state_by_layer
    from rnnbench.rnn.int8 import INT8_FORMS, Activations
    from rnnbench.rnn.linear import together
    from rnnbench.rnn.needed_primitives import primitives_of
    from rnnbench.rnn.network import (
        AnyNetwork,
        LayerSpec,
        Network,
        Size,
        WeightSpec,
        X,
    )
    from rnnbench.rnn.primitives import (
        LAYER_PRIMITIVES,
        LIBRARY_OPERATORS,
        LINEAR_PRIMITIVES,
        AttentionSizes,
        CausalKernel,
        LayerBody,
        MorePrimitives,
        Primitives,
        WindowSizes,
        WithOperators,
    )
    from rnnbench.rnn.products import on_cores
    from rnnbench.rnn.quantised import Int8, Range, in_int8
    from rnnbench.rnn.reference import Trajectory, run_in, run_reference
    from rnnbench.rnn.registry import broken_families, families, network_of
    from rnnbench.rnn.spec import GATES, Cell, Direction, Model
    from rnnbench.rnn.times import FUSED, PARALLEL, runs_together
    from rnnbench.rnn.weights import Layer, Weights, draw_inputs, draw_lengths, draw_state, draw_weights

__getattr__, __all__ = lazy_names(__name__, __file__)
