"""Model files: what is in them, without a backend. ONNX files are read.

    onnx_description  `describe`: what is in a file (`FileDescription`), with its states (`state_pairs`) and `axes`
    onnx_file         reads a file within `limits`: its bytes (`wire`), its tensors, ONNX's checker
    network           a file as a network of the suite: `FileNetwork`, with `file_arrays` and `calling`
    section           the section `model` of a case that runs it: `FileSection`
    oracle            what a file gives, in float64 or another arithmetic: `Oracle`
    state_check       whether its states are states: `check_state`

A file is hostile until it was read. `worker.describe_file` reads it in a process with limits of memory and time.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.model_files.calling import network_of
    from rnnbench.model_files.description import ArrayDescription, FileDescription, Question, StatePair, sized
    from rnnbench.model_files.errors import ModelFileError
    from rnnbench.model_files.file_arrays import FileArray
    from rnnbench.model_files.network import FileNetwork, read_whole
    from rnnbench.model_files.onnx_description import describe
    from rnnbench.model_files.oracle import Oracle
    from rnnbench.model_files.section import (
        FileSection,
        answered,
        keys_of,
        open_questions,
        section_of,
        section_yaml,
    )
    from rnnbench.model_files.state_check import EQUAL, StateCheck, check_state
    from rnnbench.model_files.tensors import graphs

_NAMES = {
    "onnx_description": ("describe",),
    "description": (
        "ArrayDescription",
        "FileDescription",
        "Question",
        "StatePair",
        "sized",
    ),
    "errors": ("ModelFileError",),
    "calling": ("network_of",),
    "file_arrays": ("FileArray",),
    "network": (
        "FileNetwork",
        "read_whole",
    ),
    "oracle": ("Oracle",),
    "section": (
        "FileSection",
        "answered",
        "keys_of",
        "open_questions",
        "section_of",
        "section_yaml",
    ),
    "state_check": (
        "EQUAL",
        "StateCheck",
        "check_state",
    ),
    "tensors": ("graphs",),
}
__all__ = [
    "EQUAL",
    "ArrayDescription",
    "FileArray",
    "FileDescription",
    "FileNetwork",
    "FileSection",
    "ModelFileError",
    "Oracle",
    "Question",
    "StateCheck",
    "StatePair",
    "answered",
    "check_state",
    "describe",
    "graphs",
    "keys_of",
    "network_of",
    "open_questions",
    "read_whole",
    "section_of",
    "section_yaml",
    "sized",
]
__getattr__ = lazy_names(__name__, _NAMES)
