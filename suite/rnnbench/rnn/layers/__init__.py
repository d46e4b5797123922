"""Layers that networks are composed of, a file a kind: sizes and cost, the body over primitives, and the reference.

A kind is a frozen dataclass with the fields and methods of `Layer` in `base.py`. The body and the reference of a kind
share no code, so that a mistake in one shows.
"""

from rnnbench.rnn.layers.base import LayerKind, activated, activated_reference
from rnnbench.rnn.layers.dense import Dense
from rnnbench.rnn.layers.depthwise_time_convolution import DepthwiseTimeConvolution
from rnnbench.rnn.layers.peephole_lstm import PeepholeLstm
from rnnbench.rnn.layers.recurrent import Recurrent
from rnnbench.rnn.layers.time_convolution import TimeConvolution

__all__ = [
    "Dense",
    "DepthwiseTimeConvolution",
    "LayerKind",
    "PeepholeLstm",
    "Recurrent",
    "TimeConvolution",
    "activated",
    "activated_reference",
]
