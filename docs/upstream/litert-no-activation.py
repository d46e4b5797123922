# /// script
# dependencies = ["ai-edge-litert==2.3.0", "flatbuffers==25.12.19", "numpy"]
# ///
"""LiteRT's LSTM is wrong without an activation: h is not o · c.

UNIDIRECTIONAL_SEQUENCE_LSTM has fused_activation_function NONE. Its gates i, f and o are open, and x is what c grows
by: c is 1, 3 and 6, and h should be c. With TANH, h is the tanh of a sum of tanhs, and that is right.
"""

import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

X = [1, 2, 3]
ACTIVATIONS = {"TANH": np.tanh, "NONE": np.array}


def results(activation):
    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.buffers, graph.tensors = 3, [schema.BufferT()], []

    def tensor(*shape, values=None, is_variable=False):
        made = schema.TensorT()
        made.shape, made.type, made.buffer, made.isVariable = list(shape), schema.TensorType.FLOAT32, 0, is_variable
        if values is not None:
            model.buffers.append(schema.BufferT())
            model.buffers[-1].data = np.frombuffer(np.float32(values).tobytes(), np.uint8)
            made.buffer = len(model.buffers) - 1
        graph.tensors.append(made)
        return len(graph.tensors) - 1

    x, y = tensor(1, len(X), 1), tensor(1, len(X), 1)
    of_x = [tensor(1, 1, values=value) for value in (0, 0, 1, 0)]  # gates in the order i f c o
    of_h = [tensor(1, 1, values=0) for _ in range(4)]
    biases = [tensor(1, values=value) for value in (100, 100, 0, 100)]
    states = [tensor(1, 1, is_variable=True) for _ in range(2)]
    code, operator, options = schema.OperatorCodeT(), schema.OperatorT(), schema.UnidirectionalSequenceLSTMOptionsT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_LSTM
    code.version, operator.opcodeIndex = 1, 0
    operator.inputs, operator.outputs = [x, *of_x, *of_h, -1, -1, -1, *biases, -1, -1, *states, *[-1] * 4], [y]
    operator.builtinOptionsType = schema.BuiltinOptions.UnidirectionalSequenceLSTMOptions
    operator.builtinOptions = options
    options.fusedActivationFunction = getattr(schema.ActivationFunctionType, activation)
    graph.operators, graph.inputs, graph.outputs = [operator], [x], [y]
    model.operatorCodes, model.subgraphs = [code], [graph]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    interpreter = Interpreter(model_content=bytes(builder.Output()))
    interpreter.allocate_tensors()
    interpreter.set_tensor(x, np.float32(X).reshape(1, -1, 1))
    interpreter.invoke()
    return interpreter.get_tensor(y).ravel()


wrong = {}
for name, function in ACTIVATIONS.items():
    expected, found = function(np.cumsum(function(X))), results(name)
    print(f"{name}: expected h = {np.round(expected, 3)}, found {np.round(found, 3)}")
    wrong[name] = not np.allclose(found, expected, atol=1e-3)
assert not wrong["TANH"]
sys.exit(int(wrong["NONE"]))
