"""PyTorch on the processor and on CUDA: eager, TorchScript, torch.compile and AOTInductor.

The package is named as its framework is. `backend` is the place to begin; `support` says what each route supports.

- `eager`: `fused` runs torch.nn's RNNs (`library`; rows of different lengths in `packed`, int8 in `quantised`), and
  `looped` the calls of layers' bodies that `recorder` keeps.
- `script`, `compile`, `aoti`: a module that torch traces, from `library`, or from `network` over `operators`.
  `traced_stream` has their streams. `inductor`, `inductor_code` and `toolchain` are for the last two.
- Users' files: `file_module` for the routes that trace, `file_program` for `eager`.
- For all: `stream` converts between NumPy's arrays and tensors, `store` keeps programs, `counting` says how time was
  lowered, and `device` where tensors are. `cuda`, `graph_stream` and `installed` are for CUDA.
- `export` is for adapters of other compilers: torch.nn's RNNs as functions that torch.export takes.
"""

from rnnbench.backends.torch.backend import TorchBackend

__all__ = ["TorchBackend"]
