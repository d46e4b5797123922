"""What adapters share. No module here is a backend, and none imports a framework before it is called.

- `refusals`: what is refused of every backend alike, for `plan.supports` and for an adapter's `build`.
- `packages`: a probe, from the metadata of the packages that a backend needs.
- `sessions`: programs and sessions of one chunk size. They check arrays, cut calls into chunks and run the rest.
- `build_cache`: built programs on disk, found again by a second build.
- `compound`: the programs of a compound network's parts, joined by its loop in the host.
- `cuda`: the NVIDIA GPU that a probe declares, and the environment that workers need on it and beside it.
- `int8`: what adapters say of programs with int8 weights.
- `lowered_form`: the words for what a program became (`looped 2 of 4`).
- `file_layout`: the arrays of a user's model file, over a framework's operations.
- `onnx_graphs`: a package of its own, with ONNX graphs of every model and strategy.

`rnnbench/backends/README.md` shows a whole backend built on these names.
"""

from rnnbench.backends.shared.build_cache import Stored, load_or_build, program_folder
from rnnbench.backends.shared.compound import CompoundProgram, JoiningBackend, joined_explanation, requests_of_parts
from rnnbench.backends.shared.cuda import (
    CUDA,
    ENVIRONMENT,
    NO_GPU,
    NVIDIA_LIBRARIES,
    PROCESSOR_AND_CUDA,
    gpu_to_compile_for,
    library_loads,
    too_many_threads,
    with_cuda,
)
from rnnbench.backends.shared.file_layout import ArrayOps, from_file, native_shapes, to_file
from rnnbench.backends.shared.int8 import VNNI, cut_matrix, int8_notes, int8_operations, overflows
from rnnbench.backends.shared.lowered_form import describe_lowered
from rnnbench.backends.shared.packages import installed_versions, probe_packages
from rnnbench.backends.shared.refusals import Abilities, covered, refusal, require_support, support_of
from rnnbench.backends.shared.sessions import (
    STORED_AS,
    AlternatingSession,
    ChunkedProgram,
    ChunkedSession,
    SynchronousBound,
    of_one_step,
    rnn_signature,
)
