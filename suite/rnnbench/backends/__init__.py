"""How a network is computed: the contract of a backend, and one package for each backend of this suite.

What other packages may use:

- `base`: the contract (`Backend`, `Program`, `Session`, `Bound`) and the values that they exchange.
- `registry`: finds backends by entry point, resolves the targets that a user names, and answers what is supported.
- `support_matrix`: which strategies every installed backend supports, for each kind of model.
- `fidelity`: a runtime's own tool that times an artifact.
- `shared`: what adapters are built on, here and in other distributions.

The remaining packages are the adapters: `numpy`, `iree`, `tvm`, `onnxruntime`, `openvino`, `torch`, `tensorflow`,
`litert` and `jax`. They are reached through the registry only. An adapter imports another one through that one's
public face alone: `torch.export`, `jax.stablehlo` and `tensorflow.traced_function`. `README.md` in this folder says how
to add a backend.
"""

__all__ = ["base", "fidelity", "registry", "shared", "support_matrix"]
