"""PyTorch's LSTM of several layers with the weights of an RNN-T's program, in float64."""

from __future__ import annotations

from typing import Any

import pytest

from rnnbench.rnn import Weights


def lstm(weights: Weights, size: int, hidden: int, layers: int) -> Any:
    """With the weights of the layers lstm1, lstm2, …."""
    torch: Any = pytest.importorskip("torch")
    module = torch.nn.LSTM(size, hidden, layers, dtype=torch.float64)
    names = {f"lstm{layer + 1}_": f"_l{layer}" for layer in range(layers)}
    arrays = {
        f"{name.removeprefix(prefix)}{suffix}": torch.tensor(array)
        for prefix, suffix in names.items()
        for name, array in weights.arrays.items()
        if name.startswith(prefix)
    }
    module.load_state_dict(arrays)
    return module
