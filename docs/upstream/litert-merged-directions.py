# /// script
# dependencies = ["ai-edge-litert==2.3.0", "flatbuffers==25.12.19", "numpy"]
# ///
"""LiteRT's LSTM of both directions mixes up the rows of its state, where it gives one result and rows come first.

BIDIRECTIONAL_SEQUENCE_LSTM with merge_outputs, and without time_major, gets two equal rows and zeros as its state. Its
results are equal in the first call. In the second call, with zeros again, they are not.
"""

import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

ROWS, STEPS, INPUT, HIDDEN = 2, 4, 3, 4
draw = np.random.default_rng(0)
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


def weight(*shape):
    return tensor(*shape, values=draw.standard_normal(shape))


def direction():
    of_x, of_h = ([weight(HIDDEN, size) for _ in range(4)] for size in (INPUT, HIDDEN))
    return [*of_x, *of_h, -1, -1, -1, *[weight(HIDDEN) for _ in range(4)], -1, -1]


x, y = tensor(ROWS, STEPS, INPUT), tensor(ROWS, STEPS, 2 * HIDDEN)
own = [*direction(), *direction()]
states = [tensor(ROWS, HIDDEN, is_variable=True) for _ in range(4)]
code, operator = schema.OperatorCodeT(), schema.OperatorT()
code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.BIDIRECTIONAL_SEQUENCE_LSTM
code.version, operator.opcodeIndex = 3, 0
operator.inputs, operator.outputs = [x, *own, *states, *[-1] * 9], [y]
operator.builtinOptionsType = schema.BuiltinOptions.BidirectionalSequenceLSTMOptions
operator.builtinOptions = schema.BidirectionalSequenceLSTMOptionsT()
operator.builtinOptions.fusedActivationFunction = schema.ActivationFunctionType.TANH
operator.builtinOptions.mergeOutputs, operator.builtinOptions.timeMajor = True, False
graph.operators, graph.inputs, graph.outputs = [operator], [x, *states], [y]
model.operatorCodes, model.subgraphs = [code], [graph]
builder = flatbuffers.Builder()
builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
interpreter = Interpreter(model_content=bytes(builder.Output()))
interpreter.allocate_tensors()
equal = np.repeat(np.random.default_rng(1).standard_normal((1, STEPS, INPUT)), ROWS, 0).astype(np.float32)
for call in ("first", "second"):
    interpreter.set_tensor(x, equal)
    for state in states:
        interpreter.set_tensor(state, np.zeros((ROWS, HIDDEN), np.float32))
    interpreter.invoke()
    first, second = interpreter.get_tensor(y)
    difference = float(np.abs(first - second).max())
    print(f"{call} call: expected equal rows, found rows that differ by {difference:.3f}")
sys.exit(int(difference > 1e-6))
