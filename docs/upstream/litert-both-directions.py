# /// script
# dependencies = ["ai-edge-litert==2.3.0", "flatbuffers==25.12.19", "numpy"]
# ///
"""LiteRT's RNN of both directions gives other results in one order of axes than in the other.

BIDIRECTIONAL_SEQUENCE_RNN has one row. With time_major x is [4, 1, 2], and without it is [1, 4, 2]: the same numbers in
the same order in memory. So the results must be equal. They are for float32 weights without an auxiliary input.
"""

import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

STEPS, INPUT, HIDDEN = 4, 2, 3
FORMS = {  # int8 weights, size of the auxiliary input, whether it has weights
    "float32 weights": (False, 0, False),
    "int8 weights": (True, 0, False),
    "an auxiliary input with weights": (False, 3, True),
    "an auxiliary input for the backward direction": (False, INPUT, False),
}


def results(time_major, whole, beside, weighted):
    draw = np.random.default_rng(0)
    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.buffers, graph.tensors = 3, [schema.BufferT()], []

    def tensor(*shape, values=None, is_variable=False):
        made = schema.TensorT()
        made.shape, made.type, made.buffer, made.isVariable = list(shape), schema.TensorType.FLOAT32, 0, is_variable
        if values is not None:
            model.buffers.append(schema.BufferT())
            model.buffers[-1].data = np.frombuffer(values.tobytes(), np.uint8)
            made.buffer = len(model.buffers) - 1
        graph.tensors.append(made)
        return len(graph.tensors) - 1

    def weights(*shape):
        values = draw.integers(-127, 128, shape)
        if not whole:
            return tensor(*shape, values=np.float32(values / 127))
        number = tensor(*shape, values=np.int8(values))
        made = graph.tensors[number]
        made.type, made.quantization = schema.TensorType.INT8, schema.QuantizationParametersT()
        made.quantization.scale, made.quantization.zeroPoint = [1 / 127], [0]
        return number

    def direction():
        bias = tensor(HIDDEN, values=np.zeros(HIDDEN, np.float32))
        return [weights(HIDDEN, INPUT), weights(HIDDEN, HIDDEN), bias, tensor(1, HIDDEN, is_variable=True)]

    lead = (STEPS, 1) if time_major else (1, STEPS)
    x, y = tensor(*lead, INPUT), [tensor(*lead, HIDDEN) for _ in range(2)]
    own = [*direction(), *direction()]
    aside = tensor(*lead, beside) if beside else -1
    of_aside = [weights(HIDDEN, beside) if weighted else -1 for _ in range(2)]
    code, operator, options = schema.OperatorCodeT(), schema.OperatorT(), schema.BidirectionalSequenceRNNOptionsT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.BIDIRECTIONAL_SEQUENCE_RNN
    code.version, operator.opcodeIndex = 1, 0
    operator.inputs, operator.outputs = [x, *own, aside, *of_aside], y
    operator.builtinOptionsType = schema.BuiltinOptions.BidirectionalSequenceRNNOptions
    operator.builtinOptions = options
    options.fusedActivationFunction, options.timeMajor = schema.ActivationFunctionType.TANH, time_major
    graph.operators, graph.inputs, graph.outputs = [operator], [x, aside] if beside else [x], y
    model.operatorCodes, model.subgraphs = [code], [graph]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    interpreter = Interpreter(model_content=bytes(builder.Output()))
    interpreter.allocate_tensors()
    for number in graph.inputs:
        interpreter.set_tensor(number, draw.standard_normal(graph.tensors[number].shape).astype(np.float32))
    interpreter.invoke()
    return [interpreter.get_tensor(number).reshape(STEPS, HIDDEN) for number in y]


differences = {}
for name, form in FORMS.items():
    pairs = zip(results(True, *form), results(False, *form), strict=True)
    differences[name] = max(float(np.abs(first - second).max()) for first, second in pairs)
    print(f"{name}: expected equal results in both orders, found results that differ by {differences[name]:.3f}")
assert differences.pop("float32 weights") < 1e-6
sys.exit(int(max(differences.values()) > 1e-6))
