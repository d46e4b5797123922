"""Model files: what is in them, without a backend.

    reading             `describe`: what is in a file (`FileDescription`); `oracle_of`: what it gives, in float64
    formats/            a folder for each format: its `description`, its `file` read within `limits`, and its `oracle`
    describing          the description, from what a format tells: states (`state_pairs`), `axes`, roles and questions
    tensorflow_program  what the formats that TensorFlow computes share: their oracle, over `tensorflow_graph`
    network             a file as a network of the suite: `FileNetwork`, with `file_arrays` and `calling`
    network_file        the file of such a network, for those that run it: `unchanged_path`
    section             the section `model` of a case that runs it: `FileSection`
    traits              what it contains that compilers are known to get wrong: `TRAITS`
    state_check         whether its states are states (`StateCheck`), by the calls of `state_calls` (`check_state`)

A file is hostile until it was read. `worker.describe_file` reads it in a process with limits of memory and time.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.model_files.calling import UserInputs, network_of
    from rnnbench.model_files.describing import NO_STATE
    from rnnbench.model_files.description import ArrayDescription, FileDescription, Question, sized
    from rnnbench.model_files.errors import ModelFileError
    from rnnbench.model_files.file_arrays import FileArray
    from rnnbench.model_files.formats import FORMATS, is_named_as_model
    from rnnbench.model_files.formats.keras.program import KerasProgram
    from rnnbench.model_files.formats.onnx.tensors import all_nodes, graphs, opset_version, subgraphs
    from rnnbench.model_files.formats.pt2.program import Pt2Program
    from rnnbench.model_files.formats.savedmodel.program import SavedModelProgram
    from rnnbench.model_files.formats.stablehlo.file import read_stablehlo
    from rnnbench.model_files.formats.stablehlo.graph import StablehloFile
    from rnnbench.model_files.formats.tflite.called_graph import names_of_ends
    from rnnbench.model_files.formats.tflite.file import signature_name, states_in_place, tensor_names
    from rnnbench.model_files.formats.tflite.rewriting import changes_of, main_first, with_float_ends
    from rnnbench.model_files.network import FileNetwork
    from rnnbench.model_files.network_file import read_onnx_model, unchanged_path
    from rnnbench.model_files.reading import describe, oracle_of
    from rnnbench.model_files.section import (
        FileSection,
        answered,
        keys_of,
        open_questions,
        section_of,
        section_yaml,
        with_axes,
    )
    from rnnbench.model_files.state_calls import check_state
    from rnnbench.model_files.state_check import (
        CALLS_OF,
        LARGE,
        StateCheck,
        fault_of,
        open_sizes,
        with_made_sizes,
    )
    from rnnbench.model_files.tensorflow_program import TensorflowProgram
    from rnnbench.model_files.traits import TRAITS

__getattr__, __all__ = lazy_names(__name__, __file__)
