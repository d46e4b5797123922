"""A fake of CUDA graphs on the processor: the operations of a call, run again over the very tensors of the recording.

As a CUDA graph does, a replay runs no Python of the program, reads and writes memory where the recording did, and takes
no arguments. Other than CUDA, which only notes it, the recording call is carried out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rnnbench.backends.torch.cuda import WARM_CALLS, Recorded
from rnnbench.backends.torch.fused import WITHOUT_ONEDNN


class _Noted(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.operations.append((func, args, kwargs or {}, result))
        return result

    def replay(self) -> None:
        for func, args, kwargs, result in self.operations:
            again = func(*args, **kwargs)
            for old, new in zip(tree_leaves(result), tree_leaves(again), strict=True):
                if isinstance(old, Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)


class FakeGraphs:
    """Records calls as `CudaGraphs` does."""

    def __call__(self, call: Callable[[], Tensor]) -> Recorded:
        for _ in range(WARM_CALLS):
            call()
        with _Noted() as noted:
            result = call()

        def replay() -> None:
            # On the processor an operator's kernel depends on the switch of oneDNN, which another thread may turn.
            with WITHOUT_ONEDNN, torch._C._InferenceMode(True):  # type: ignore[attr-defined]
                noted.replay()

        return Recorded(replay, result)
