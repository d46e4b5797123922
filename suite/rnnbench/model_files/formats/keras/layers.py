"""Which layers of a `.keras` file are read, and the file's layers as they are built: in a dtype, without training.

Other classes are refused by name. A Lambda layer holds Python code, layers such as TFSMLayer and StringLookup read
other files, and a class of the user's own is not in the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError
from rnnbench.outside_text import safe_text

LAYERS = frozenset(
    (
        *("InputLayer", "Dense", "Embedding", "Identity", "Masking", "Rescaling", "Normalization"),
        *("LSTM", "GRU", "SimpleRNN", "RNN", "LSTMCell", "GRUCell", "SimpleRNNCell", "StackedRNNCells"),
        *("Bidirectional", "TimeDistributed", "ConvLSTM1D", "ConvLSTM2D"),
        *("Conv1DTranspose", "Conv2DTranspose", "EinsumDense", "UnitNormalization", "ActivityRegularization"),
        *("Conv1D", "Conv2D", "DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D"),
        *("MaxPooling1D", "MaxPooling2D", "AveragePooling1D", "AveragePooling2D"),
        *("GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalAveragePooling1D", "GlobalAveragePooling2D"),
        *("BatchNormalization", "LayerNormalization", "GroupNormalization", "RMSNormalization"),
        *("Activation", "ReLU", "LeakyReLU", "PReLU", "ELU", "Softmax"),
        *("Dropout", "SpatialDropout1D", "SpatialDropout2D", "GaussianDropout", "GaussianNoise", "AlphaDropout"),
        *("Flatten", "Reshape", "Permute", "RepeatVector"),
        *("ZeroPadding1D", "ZeroPadding2D", "Cropping1D", "Cropping2D", "UpSampling1D", "UpSampling2D"),
        *("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate", "Dot"),
        *("Attention", "AdditiveAttention", "MultiHeadAttention"),
    )
)
OPERATIONS = frozenset(
    (
        *("Add", "Subtract", "Multiply", "Divide", "TrueDivide", "Negative", "Absolute", "Power", "Square", "Sqrt"),
        *("Exp", "Log", "Sin", "Cos", "Tanh", "Sigmoid", "Relu", "LeakyRelu", "Silu", "Gelu", "Softplus", "Softmax"),
        *("Maximum", "Minimum", "Max", "Min", "Mean", "Sum", "Matmul", "Einsum"),
        *("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "Where"),
        *("LogicalAnd", "LogicalOr", "LogicalNot", "Any", "All"),
        *("Clip", "Round", "Floor", "Ceil", "Sign", "Rsqrt", "Log1p", "Expm1", "Reciprocal", "Mod"),
        *("FloorDivide", "Var", "Std"),
        *("Elu", "Selu", "Relu6", "Softsign", "HardSigmoid", "HardSilu", "LogSigmoid", "LogSoftmax", "Mish", "Celu"),
        *("Swapaxes", "Moveaxis", "Repeat", "Tile", "Roll", "Pad", "Take", "Cumsum", "Ravel", "Dot"),
        *("ZerosLike", "OnesLike"),
        *("Cast", "StopGradient", "Concatenate", "Stack", "Split", "GetItem", "Reshape", "Transpose"),
        *("Squeeze", "ExpandDims", "Flip"),
    )
)
"""Operations of `keras.ops`: between layers, such as `x + y` or `x[:, -1]`, and of the mask of a Masking layer."""
CELLS = frozenset(("LSTMCell", "GRUCell", "SimpleRNNCell"))
RECURRENT = {
    "LSTM": "LSTM",
    "GRU": "GRU",
    "SimpleRNN": "RNN",
    "RNN": "RNN",
    "ConvLSTM1D": "LSTM",
    "ConvLSTM2D": "LSTM",
    "LSTMCell": "LSTM",
    "GRUCell": "GRU",
    "SimpleRNNCell": "RNN",
}
"""Layers and cells with a state, by the names that recurrent operators have in the suite."""
MODELS = frozenset(("Sequential", "Functional"))
_MODULES_OF_MODELS = frozenset(("keras", "keras.models", "keras.src.models.functional", "keras.src.models.sequential"))
_MODULES_OF_OPERATIONS = frozenset(
    ("keras.src.ops.numpy", "keras.src.ops.nn", "keras.src.ops.math", "keras.src.ops.core")
)
_TENSOR = "__keras_tensor__"
_PLAIN = frozenset((_TENSOR, "__slice__", "__ellipsis__", "__tensor__", "__numpy__"))
"""What stands for a tensor, an index or an array of constants."""
_SCOPE = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
"""Names of scopes in TensorFlow, which traces each layer in one of its name."""
NARROW = frozenset(("float16", "bfloat16", "mixed_float16", "mixed_bfloat16"))
"""Policies of layers that compute in a narrower type than float32. Weights of the mixed ones are in float32."""
_DROPPED = ("compile_config", "lora_alpha", "lora_rank", "quantization_config", "shared_object_id")
"""For training (Keras saves the kernel with what LoRA adds), refused with the dtype, and a number that saves space."""
EXPORT = "export the network with the Keras that made it, as a SavedModel or to ONNX (tf2onnx)"
NO_MODEL = f"it is no model of layers (Sequential or Functional), so its program is not in the file; {EXPORT}"
LAMBDA = f"it has a Lambda layer, which is Python code; files with code are not read; {EXPORT}"
READ = "float64, float32, float16, bfloat16, mixed_float16 and mixed_bfloat16"
SAVE = (
    "build the network again under keras.config.set_dtype_policy('float32'), give it these weights (set_weights), and "
    "save it"
)
HARD_SIGMOID = "hard_sigmoid_of_keras_2"
"""clip(x/5 + 1/2, 0, 1), which a file of Keras 2 has. That of Keras 3 is clip(x/6 + 1/2, 0, 1)."""
Config = dict[str, Any]


def safe_config(config: object, dtype: str, initializer: Config) -> Config:
    """The layers to build: float32 in `dtype`, weights by `initializer`. Raises ModelFileError for what is not read."""
    if not isinstance(config, dict) or config.get("class_name") not in MODELS:
        raise ModelFileError(NO_MODEL)
    built: Config = _Cleaner(dtype, initializer, names_in_tensorflow(config)).cleaned(config)
    return built


def policies_of(config: object) -> set[str]:
    """The policies of types of all layers."""
    layers = (layer for layer in _layers(config) if layer.get("class_name") in LAYERS)
    return {str(_policy(layer["config"].get("dtype"))) for layer in layers}


def names_in_tensorflow(config: object) -> dict[str, str]:
    """New names of the layers whose names TensorFlow cannot have for a scope, such as those with spaces."""
    names = {str(layer["config"].get("name")) for layer in _layers(config)}
    unnamed = sorted(name for name in names if not _SCOPE.fullmatch(name))
    numbers = (number for number in count() if f"layer_{number}" not in names)
    return {name: f"layer_{next(numbers)}" for name in unnamed}


def _layers(config: object) -> Iterator[Config]:
    waiting = [config]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if isinstance(part.get("config"), dict) and part.get("class_name") != "InputLayer":
                yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def kinds_of(config: object) -> Counter[str]:
    """How many layers of each class there are, models inside models included."""
    return Counter(layer["class_name"] for layer in _layers(config) if layer.get("class_name") in LAYERS | OPERATIONS)


class _Cleaner:
    def __init__(self, dtype: str, initializer: Config, names: Mapping[str, str]) -> None:
        self._dtype, self._initializer, self._names = dtype, initializer, names

    def cleaned(self, value: Any) -> Any:
        if isinstance(value, list):
            cleaned = [self.cleaned(item) for item in value]
            is_tensor = len(value) == 3 and isinstance(value[0], str)
            return [self._names.get(value[0], value[0]), *cleaned[1:]] if is_tensor else cleaned
        if isinstance(value, int) and abs(value) > limits.ELEMENTS:
            raise ModelFileError(f"a layer has the size {safe_text(str(value), 40)}; that many elements are not read")
        if not isinstance(value, dict):
            return value
        if "class_name" in value:
            _require_read(value)
        if value.get("class_name") == _TENSOR and value.get("config", {}).get("dtype") in ("float16", "bfloat16"):
            kind = value["config"]["dtype"]  # What layers of a mixed policy give.
            others = {key: item for key, item in value["config"].items() if key != "dtype"}
            return {**value, "config": {**self.cleaned(others), "dtype": kind}}
        return {key: self._entry(key, item) for key, item in value.items() if key not in _DROPPED}

    def _entry(self, key: str, value: Any) -> Any:
        if key == "dtype":
            return self._typed(value)
        if key == "name" and isinstance(value, str):
            return self._names.get(value, value)
        if value == HARD_SIGMOID:
            return {"module": None, "class_name": "function", "config": value, "registered_name": value}
        if value is None or key.endswith(("_regularizer", "_constraint")):
            return None
        return self._initializer if key.endswith("_initializer") else self.cleaned(value)

    def _typed(self, value: Any) -> Any:
        name = _policy(value)
        if name in ("float32", "float64"):
            return "float64" if name == "float64" else self._dtype
        if name in NARROW:
            return value
        if value is None or (isinstance(value, str) and value.startswith(("int", "uint", "bool"))):
            return value
        raise ModelFileError(f"a layer computes in {safe_text(str(name), 40)}; {READ} are read; {SAVE}")


def _policy(dtype: Any) -> Any:
    """The name of a layer's policy of types."""
    if isinstance(dtype, dict):
        return dtype.get("config", {}).get("name") or dtype.get("class_name")
    return dtype


def _require_read(value: Mapping[str, Any]) -> None:
    """Raises ModelFileError unless the class is Keras' own, and on the list."""
    name, module, registered = (value.get(key) for key in ("class_name", "module", "registered_name"))
    if name in _PLAIN and module is None and registered is None:
        return
    if name in MODELS and module in _MODULES_OF_MODELS and registered in (None, name):
        return
    if name in OPERATIONS and module in _MODULES_OF_OPERATIONS and registered in (None, name):
        return
    if name in LAYERS and module == "keras.layers" and registered is None:
        return
    if name == "DTypePolicy" and module == "keras" and registered is None:
        return
    shown = safe_text(str(name), 60)
    if name == "Lambda":
        raise ModelFileError(LAMBDA)
    if module is not None and str(module).startswith("keras.") and registered in (None, name):
        shown_module = safe_text(str(module), 60)
        raise ModelFileError(f"it has {shown} of {shown_module}, which is not among the layers that are read; {EXPORT}")
    raise ModelFileError(
        f"it needs '{shown}', a class or function of its maker's own, which is not in the file; {EXPORT}"
    )
