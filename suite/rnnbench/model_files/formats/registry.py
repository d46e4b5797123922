"""All formats, and which one a file has."""

from __future__ import annotations

import os
from pathlib import Path

from rnnbench.lazy import declared
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.format import Format
from rnnbench.outside_text import safe_text
from rnnbench.spelling import absent

SAVED_MODEL = "saved_model.pb"
_FROM_TORCH = "export the network to ONNX (torch.onnx.export) or to .pt2 (torch.export.save)"
_PICKLE = "a {} file may be a pickle, which can run any program when it is loaded, so it is not read; " + _FROM_TORCH
_TORCHSCRIPT = "TorchScript, as in a {} file, is a program with pickles, so it is not read; " + _FROM_TORCH
_COMPILED = "a {} file is made for one runtime; give the file that it was made of, such as the .onnx file"
_WEIGHTS = "a {} file has weights and no program; export the network itself, as to .onnx, .pt2 or .keras"
_PACKED = "a {} file is packed; unpack it, and give the model file in it"
_TEXT = (
    "a {} file has a network as text, which is not read; save it as bytes: onnx.save(model, 'net.onnx'), or "
    "tf.saved_model.save for TensorFlow"
)
_PADDLE = (
    "a {} file is PaddlePaddle's, which is not read; convert it to ONNX: paddle2onnx --model_dir FOLDER "
    "--model_filename NETWORK --params_filename WEIGHTS --save_file net.onnx"
)
_EXECUTORCH = "a {} file is made for ExecuTorch; give the .pt2 file that it was made of (torch.export.save)"
_BESIDE = "a {} file has weights of the file beside it; give that one, such as the .onnx file"
_TFLITE = "a TFLite file is called .tflite here, and not {}; give it that suffix"
_BYTES = (
    "a .bin file may be a pickle, which can run any program when it is loaded, or weights alone, so it is not read; "
    "give the file that has the network, or export it to ONNX or .pt2"
)
_JSON = (
    "a .json file with a network is TensorFlow.js's or PaddlePaddle's, which are not read; give the SavedModel or the "
    "file of Keras that it was made of, or make one: tensorflowjs_converter --input_format=tfjs_layers_model "
    "--output_format=keras. paddle2onnx converts PaddlePaddle's to ONNX"
)
_MLIR = (
    "StableHLO is read as text; print it as MLIR (exported.mlir_module() in JAX, or iree-opt), and call the file .mlir"
)
UNREAD = {
    **dict.fromkeys((".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt"), _PICKLE),
    ".bin": _BYTES,
    ".json": _JSON,
    **dict.fromkeys((".ts", ".torchscript", ".jit", ".ptl"), _TORCHSCRIPT),
    **dict.fromkeys((".pdmodel", ".pdiparams"), _PADDLE),
    ".pte": _EXECUTORCH,
    **dict.fromkeys((".ort", ".xml", ".engine", ".plan", ".trt", ".mlmodel", ".mlpackage", ".mlmodelc"), _COMPILED),
    **dict.fromkeys((".mnn", ".vmfb", ".param", ".blob", ".dlc", ".rknn", ".om", ".mindir", ".hef"), _COMPILED),
    **dict.fromkeys((".safetensors", ".gguf", ".npz", ".npy", ".msgpack", ".weights", ".params", ".index"), _WEIGHTS),
    ".data": _BESIDE,
    **dict.fromkeys((".pbtxt", ".textproto", ".onnxtxt", ".onnxjson"), _TEXT),
    **dict.fromkeys((".lite", ".tfl"), _TFLITE),
    **dict.fromkeys((".gz", ".zip", ".tar", ".tgz", ".bz2", ".xz", ".zst", ".7z"), _PACKED),
    **dict.fromkeys((".stablehlo", ".mlirbc"), _MLIR),
}
"""Files that are not read, by their suffix: why, and what to do."""

FORMATS: dict[str, Format] = {found.name: found for found in declared("rnnbench.model_files.formats", "FORMAT")}
"""Every format by its name."""


def format_of(path: Path) -> Format:
    """The format that a file's name says. Raises ModelFileError for a kind of file that is not read."""
    suffix = path.suffix.lower()
    if (path / SAVED_MODEL).is_file():
        raise ModelFileError(f"it is the folder of a SavedModel; give the file {SAVED_MODEL} in it")
    for format_ in FORMATS.values():
        if suffix in format_.suffixes:
            return format_
    if suffix in UNREAD:
        raise ModelFileError(UNREAD[suffix].format(suffix))
    suffixes = ", ".join(suffix for format_ in FORMATS.values() for suffix in format_.suffixes)
    if os.path.isdir(path):
        raise ModelFileError(f"it is a folder, and not that of a SavedModel; {suffixes} files are read")
    if not os.path.exists(path):
        raise ModelFileError(absent(path))
    told = f"the suffix '{safe_text(suffix, 20)}' is not known" if suffix else "its name has no suffix, such as .onnx"
    raise ModelFileError(f"{told}; {suffixes} files are read. Export the network to one of them")


def is_named_as_model(path: Path) -> bool:
    """Whether a file's name says that it is a network's, read or not. A `.json` file may be a case."""
    read = (suffix for format_ in FORMATS.values() for suffix in format_.suffixes)
    return path.suffix.lower() in {*read, *UNREAD} - {".json"}
