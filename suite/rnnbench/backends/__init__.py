"""How a network is computed: the contract of a backend, and one package for each backend of this suite.

What other packages may use:

- `base`: the contract (`Backend`, `Program`, `Session`, `Bound`) and the values that they exchange.
- `answers`: what an adapter returns, validated where it enters.
- `program_identity`: all that decides a program: request, packages, processor, compilers.
- `program_store`: the suite's account of built programs: their files, digests and sizes.
- `registry`: finds backends by entry point.
- `sources`: the files that decide which programs a backend makes, and their digest.
- `package_content`: what is in an installed package, as a digest.
- `unchanged`: whether sources and packages have changed since these digests were made.
- `explanation`: what a program offers, and the stages that it went through; an adapter may have a module of that name.
- `timing_tool`: a runtime's own tool to time an artifact; an adapter may have a module of that name.
- `shared`: what adapters are built on, here and in other distributions.

The remaining packages are the adapters: `numpy`, `iree`, `tvm`, `onnxruntime`, `openvino`, `torch`, `tensorflow`,
`litert` and `jax`. They are reached through the registry alone, and in processes of their own: `rnnbench.plan` asks
them. An adapter imports of another one only the modules that are made for that: `torch.export`, `jax.stablehlo`,
`tensorflow.traced_function` and `tensorflow.ml_program`. `README.md` in this folder says how to add a backend.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.backends.answers import AdapterError, BackendError, check_probe, check_program, check_support
    from rnnbench.backends.base import (
        Allocated,
        Arrays,
        Artifact,
        Backend,
        Bound,
        BuildError,
        CountsAllocations,
        InStream,
        PreparesBuilds,
        Probe,
        Program,
        Request,
        Session,
        Support,
        TakesStream,
        request_of,
    )
    from rnnbench.backends.explanation import Explanation, IrStage, Unreadable
    from rnnbench.backends.package_content import installed_files, package_digest
    from rnnbench.backends.program_identity import machine_facts, program_key
    from rnnbench.backends.program_store import Look, ProgramStore
    from rnnbench.backends.registry import entry_of, explanation_for, find, names, tool_for
    from rnnbench.backends.sources import digest_of, is_own, sources_digest, suite_digest
    from rnnbench.backends.timing_tool import NoToolError, Statistic, Tool
    from rnnbench.backends.unchanged import SeenFiles, seen_first, seen_now

__getattr__, __all__ = lazy_names(__name__, __file__)
