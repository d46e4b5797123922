"""What ONNX Runtime leaves to the processor of a graph that is for a GPU. It does so without a message.

Source: onnxruntime_session_options_config_keys.h; `InferenceSession.get_provider_graph_assignment_info` (1.24).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.shared import CUDA

RECORDED = "session.record_ep_graph_assignment_info"
PROCESSOR = "CPUExecutionProvider"
ARITHMETIC = {
    *("MatMul", "Gemm", "FusedMatMul", "FusedGemm", "LSTM", "GRU", "RNN", "LinearAttention", "CausalConvWithState"),
    *("Sigmoid", "HardSigmoid", "Tanh", "Relu", "Exp", "Sqrt"),
}
"""Operators that compute a network. Counting and the shapes of arrays may well be the processor's."""


def record_placement(options: Any, request: Request) -> None:
    """Have a session for a GPU remember where its nodes are."""
    if request.device == CUDA:
        options.add_session_config_entry(RECORDED, "1")


def placement_notes(session: Any, request: Request) -> Iterator[str]:
    """What a record says of nodes on the processor. Raises BuildError if they compute a network of the suite's.

    A user's file may have operators that CUDA's provider does not have.
    """
    left = on_the_processor(session) if request.device == CUDA else {}
    if request.file is None and (computing := sorted(ARITHMETIC & left.keys())):
        raise BuildError(
            f"ONNX Runtime would compute on the processor, and copy there and back: {', '.join(computing)}"
        )
    if left:
        counted = ", ".join(f"{count} {operator}" for operator, count in sorted(left.items()))
        yield f"The runtime runs these on the processor, and copies what they read and write: {counted}."


def on_the_processor(session: Any) -> Mapping[str, int]:
    """The number of each operator on the processor, of a session that remembers."""
    return Counter(
        node.op_type
        for part in session.get_provider_graph_assignment_info()
        if part.ep_name == PROCESSOR
        for node in part.get_nodes()
    )
