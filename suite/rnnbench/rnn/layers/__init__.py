"""Layers that networks are composed of, a file a kind: sizes and cost, the body over primitives, and the reference.

A kind is a frozen dataclass with the fields and methods of `LayerKind` in `base.py`. The body and the reference of a
kind share no code, so that a mistake in one shows.
"""

from rnnbench.rnn.layers.activation import ActivationLayer
from rnnbench.rnn.layers.base import LayerCost, LayerKind
from rnnbench.rnn.layers.columns import Columns
from rnnbench.rnn.layers.context import Context
from rnnbench.rnn.layers.dense import Dense
from rnnbench.rnn.layers.depthwise_time_convolution import DepthwiseTimeConvolution
from rnnbench.rnn.layers.frame_convolution import FrameConvolution
from rnnbench.rnn.layers.gated_linear_attention import GatedLinearAttention
from rnnbench.rnn.layers.instant_norm import InstantNorm
from rnnbench.rnn.layers.min_gru import MinGru
from rnnbench.rnn.layers.peephole_lstm import PeepholeLstm
from rnnbench.rnn.layers.product import Product
from rnnbench.rnn.layers.recurrent import Recurrent
from rnnbench.rnn.layers.root_mean_square_norm import RootMeanSquareNorm
from rnnbench.rnn.layers.spectrum import Spectrum
from rnnbench.rnn.layers.state_space_dual import StateSpaceDual
from rnnbench.rnn.layers.time_convolution import TimeConvolution
from rnnbench.rnn.layers.time_frequency_convolution import TimeFrequencyConvolution
