"""TensorflowBackend: the installed versions, the supported requests, and how a request becomes a program."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from rnnbench.backends.base import (
    ACTIVATIONS,
    LENGTHS,
    Allocated,
    Artifact,
    Lack,
    Origin,
    Probe,
    Program,
    Request,
    Support,
)
from rnnbench.backends.shared import (
    CUDA,
    PROCESSOR_AND_CUDA,
    Abilities,
    installed_versions,
    library_loads,
    of_one_step,
    probe_packages,
    require_support,
    with_cuda,
)
from rnnbench.backends.tensorflow import saved
from rnnbench.backends.tensorflow.runtime import GPU, TensorflowProgram
from rnnbench.backends.tensorflow.support import (
    AUTHORS,
    IN_VARIABLES,
    READS,
    ROUTES,
    is_compiled,
    is_keras,
    unsupported,
    variables,
)
from rnnbench.rnn import FUSED

PACKAGES = ("tensorflow", "keras")
LIBRARIES = {
    "nvidia-cudnn-cu12": "libcudnn.so.9",
    "nvidia-cublas-cu12": "libcublas.so.12",
    "nvidia-cuda-runtime-cu12": "libcudart.so.12",
}
"""NVIDIA's libraries that `tensorflow[and-cuda]` brings, of which programs call the first two. A container may have
them without these packages."""
BUILT_FOR = 12
"""The major version of CUDA of these libraries."""
BUILT_AS = "tensorflow/python/platform/build_info.py"
"""The file that says whether a wheel was built with CUDA. Those for ARM are not."""
INSTALL_CUDA = "pip install 'tensorflow[and-cuda]'"
FLOAT32 = "tensor_float_32_execution=False"
NOT_REMAPPED = "optimizer.remapping=False"
COVERS = frozenset({ACTIVATIONS, LENGTHS})


class TensorflowBackend:
    name = "tensorflow"

    def probe(self) -> Probe:
        compilers = dict.fromkeys(ROUTES, "TensorFlow")
        probe = probe_packages(ROUTES, PACKAGES, "pip install 'rnnbench[tensorflow]'", compilers=compilers)
        versions = {**probe.versions, **installed_versions(tuple(LIBRARIES))}
        return replace(
            probe, versions=versions, devices=with_cuda(cuda_lack(versions), BUILT_FOR), authors=AUTHORS, reads=READS
        )

    def support(self, request: Request) -> Support:
        reason = unsupported(request)
        if reason:
            return Support("unsupported", reason)
        if request.file is not None and request.file.format == "savedmodel" and request.strategy.state != "none":
            return Support("emulated", IN_VARIABLES, environment=variables(request), covers=COVERS)
        return Support("native", environment=variables(request), covers=COVERS)

    def load(self) -> None:
        importlib.import_module("tensorflow")

    def allocated(self, device: str) -> Allocated | None:
        """Bytes of TensorFlow's allocator of the first GPU, by `tf.config.experimental.get_memory_info`."""
        if device != CUDA:
            return None
        import tensorflow as tf

        count = tf.config.experimental.get_memory_info(GPU)
        return Allocated(count["current"], count["peak"])

    def build(self, request: Request, cache: Path) -> Program:
        require_support(self, request, Abilities(PROCESSOR_AND_CUDA, AUTHORS, READS))
        jit = is_compiled(request.route)
        loaded = saved.load_or_build(request, cache, partial(_module, request, jit), jit)
        artifact = Artifact(
            **loaded.facts,
            origin=_origin(request),
            math="exact",
            flags=_flags(request),
            notes=_notes(request, loaded.function),
        )
        tail = partial(self.build, of_one_step(request), cache)
        return TensorflowProgram(request, artifact, loaded.files, loaded.cached, tail, loaded.model, loaded.function)


def cuda_lack(versions: Mapping[str, str]) -> Lack | None:
    """What the installed packages lack for CUDA; None where they have its libraries."""
    if PACKAGES[0] in versions and not _is_built_with_cuda():
        installed = f"the installed tensorflow {versions[PACKAGES[0]]}"
        return Lack(f"{installed} is built without CUDA, as wheels for ARM are", INSTALL_CUDA)
    for package, library in LIBRARIES.items():
        if package not in versions and not library_loads(library):
            return Lack(f"neither {package} is installed nor {library} found; TensorFlow needs it", INSTALL_CUDA)
    return None


def _is_built_with_cuda() -> bool:
    """What TensorFlow's own file says of its build; yes where it says nothing."""
    try:
        said = Path(str(distribution(PACKAGES[0]).locate_file(BUILT_AS))).read_text()
    except OSError:
        return True
    return re.search(r"'is_cuda_build', *False", said) is None


def _origin(request: Request) -> Origin:
    if request.file is not None:
        return "imported"
    return "library" if is_keras(request.route) or request.strategy.time == FUSED else "authored"


def _module(request: Request, jit: bool) -> Any:
    if request.file is not None:
        from rnnbench.backends.tensorflow.file_module import file_module

        return file_module(request, request.file, jit)
    if is_keras(request.route):
        from rnnbench.backends.tensorflow.keras_layers import library

        return library(request, jit)
    from rnnbench.backends.tensorflow.traced_function import authored

    return authored(request, request.strategy.copies, jit)


def _flags(request: Request) -> tuple[str, ...]:
    of_device = FLOAT32 if request.device == CUDA else NOT_REMAPPED
    set_by_suite = variables(request).items()
    return (*(f"{name}={value}" for name, value in set_by_suite if name != "KERAS_BACKEND"), of_device)


def _call_note(function: Any) -> str:
    from rnnbench.backends.tensorflow.executor import has_private_call

    if has_private_call(function):
        return "bound calls use TFE_Py_Execute, which is private to TensorFlow; public calls use the concrete function"
    return "bound calls use the concrete function, as public calls do: this TensorFlow has no TFE_Py_Execute as in 2.21"


def _form_note(request: Request) -> str:
    if request.device == CUDA and request.strategy.time == FUSED:
        return "the weights are joined into cuDNN's one array inside the call"
    where = "on the CPU every form of a layer" if request.device != CUDA else "a layer without cuDNN"
    return f"{where} is a While over its cell, or copies of the cell"


def _notes(request: Request, function: Any) -> tuple[str, ...]:
    notes = [_call_note(function)]
    if is_compiled(request.route):
        notes.append("XLA compiles once: the build fills its persistent cache, and a load reads it")
        notes.append("XLA always starts a pool of threads; with one requested thread they stay idle")
    else:
        notes.append("Grappler optimises the graph at load, and once more at the first public call")
    if request.file is not None:
        notes.append("the layers of the user's file, called as they are between operations that lay arrays out")
    elif is_keras(request.route):
        notes.append("Keras has the batch first: x and y are transposed inside the call")
        notes.append(_form_note(request))
    elif request.strategy.time == FUSED:
        notes.append("the operator multiplies x and h side by side by one matrix, one step after the other")
    elif not request.model.is_exact:
        notes.append("the input projection of all steps of a call is one product, outside any loop")
    return tuple(notes)
