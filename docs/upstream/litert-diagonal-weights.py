# /// script
# dependencies = ["ai-edge-litert==2.3.0", "flatbuffers==25.12.19", "numpy"]
# ///
"""LiteRT reads diagonal recurrent weights in int8 as float32, and four times as many bytes as there are.

UNIDIRECTIONAL_SEQUENCE_LSTM has the diagonals of its recurrent weights alone (diagonal_recurrent_tensors), and then the
same weights as matrices, which are zero beside their diagonals. The results must be nearly equal. In float32 they are.
"""

import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

STEPS, INPUT, HIDDEN = 4, 2, 8


def results(kind, diagonal):
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

    def weights(values):
        if kind == "float32":
            return tensor(*values.shape, values=np.float32(values / 127))
        number = tensor(*values.shape, values=np.int8(values))
        made = graph.tensors[number]
        made.type, made.quantization = schema.TensorType.INT8, schema.QuantizationParametersT()
        made.quantization.scale, made.quantization.zeroPoint = [1 / 127], [0]
        return number

    x, y = tensor(1, STEPS, INPUT), tensor(1, STEPS, HIDDEN)
    of_x = [weights(draw.integers(-127, 128, (HIDDEN, INPUT))) for _ in range(4)]
    diagonals = [draw.integers(-127, 128, HIDDEN) for _ in range(4)]
    of_h = [weights(each if diagonal else np.diag(each)) for each in diagonals]
    biases = [tensor(HIDDEN, values=np.zeros(HIDDEN, np.float32)) for _ in range(4)]
    states = [tensor(1, HIDDEN, is_variable=True) for _ in range(2)]
    code, operator, options = schema.OperatorCodeT(), schema.OperatorT(), schema.UnidirectionalSequenceLSTMOptionsT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_LSTM
    code.version, operator.opcodeIndex = 4, 0
    operator.inputs, operator.outputs = [x, *of_x, *of_h, -1, -1, -1, *biases, -1, -1, *states, *[-1] * 4], [y]
    operator.builtinOptionsType = schema.BuiltinOptions.UnidirectionalSequenceLSTMOptions
    operator.builtinOptions = options
    options.fusedActivationFunction = schema.ActivationFunctionType.TANH
    options.diagonalRecurrentTensors = diagonal
    graph.operators, graph.inputs, graph.outputs = [operator], [x], [y]
    model.operatorCodes, model.subgraphs = [code], [graph]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    interpreter = Interpreter(model_content=bytes(builder.Output()))
    interpreter.allocate_tensors()
    interpreter.set_tensor(x, draw.standard_normal((1, STEPS, INPUT)).astype(np.float32))
    interpreter.invoke()
    return interpreter.get_tensor(y)[0]


differences = {}
for kind in ("float32", "int8"):
    difference = np.abs(results(kind, True) - results(kind, False)).max()
    differences[kind] = float(np.nan_to_num(difference, nan=np.inf))
    print(f"{kind} weights: expected nearly equal results, found results that differ by {difference:.3f}")
assert differences["float32"] < 1e-6
sys.exit(int(differences["int8"] > 0.05))
