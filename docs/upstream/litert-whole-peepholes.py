# /// script
# dependencies = ["ai-edge-litert==2.3.0", "flatbuffers==25.12.19", "numpy"]
# ///
"""LiteRT's LSTM in int8 gives as many cells a peephole as it has outputs, and the others none.

UNIDIRECTIONAL_SEQUENCE_LSTM with 4 cells has a peephole of one cell alone, of each in turn. Each must change the
results. With a projection to 2 outputs, the peepholes of the last 2 cells change nothing.
"""

import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

STEPS, INPUT, CELLS = 6, 3, 4


def results(outputs, cell):
    """y in int8 of a network with `outputs`, whose cell number `cell` alone has peepholes; None: no cell."""
    draw = np.random.default_rng(0)
    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.buffers, graph.tensors = 3, [schema.BufferT()], []

    def tensor(kind, scale, *shape, values=None, zero=0, is_variable=False):
        made, found = schema.TensorT(), schema.QuantizationParametersT()
        found.scale, found.zeroPoint = [scale], [zero]
        made.shape, made.type, made.buffer = list(shape), getattr(schema.TensorType, kind.upper()), 0
        made.quantization, made.isVariable = found, is_variable
        if values is not None:
            model.buffers.append(schema.BufferT())
            model.buffers[-1].data = np.frombuffer(values.astype(kind).tobytes(), np.uint8)
            made.buffer = len(model.buffers) - 1
        graph.tensors.append(made)
        return len(graph.tensors) - 1

    def weights(rows, columns):
        return tensor("int8", 0.8 / 127, rows, columns, values=draw.integers(-127, 128, (rows, columns)))

    def peephole():
        values = np.zeros(CELLS)
        values[[] if cell is None else cell] = 30000
        return tensor("int16", 4 / 32767, CELLS, values=values)

    x, y = tensor("int8", 4 / 127, 1, STEPS, INPUT), tensor("int8", 1 / 120, 1, STEPS, outputs)
    of_x, of_h = ([weights(CELLS, size) for _ in range(4)] for size in (INPUT, outputs))
    step = 0.8 / 127 * 4 / 127
    biases = [tensor("int32", step, CELLS, values=np.full(CELLS, round(0.5 / step))) for _ in range(4)]
    peepholes = [peephole() for _ in range(3)]
    projection = [-1, -1] if outputs == CELLS else [weights(outputs, CELLS), -1]
    h = tensor("int8", 1 / 120, 1, outputs, is_variable=True)
    c = tensor("int16", 2.0**-12, 1, CELLS, is_variable=True)
    inside = [*(tensor("int16", 2.0**-12, 1) for _ in range(4)), tensor("int8", 1 / 120, 1, CELLS)]
    code, operator, options = schema.OperatorCodeT(), schema.OperatorT(), schema.UnidirectionalSequenceLSTMOptionsT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_LSTM
    code.version, operator.opcodeIndex = 3, 0
    operator.inputs = [x, *of_x, *of_h, *peepholes, *biases, *projection, h, c, *[-1] * 4]
    operator.outputs, operator.intermediates = [y], inside
    operator.builtinOptionsType = schema.BuiltinOptions.UnidirectionalSequenceLSTMOptions
    operator.builtinOptions = options
    options.fusedActivationFunction = schema.ActivationFunctionType.TANH
    graph.operators, graph.inputs, graph.outputs = [operator], [x], [y]
    model.operatorCodes, model.subgraphs = [code], [graph]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    interpreter = Interpreter(model_content=bytes(builder.Output()))
    interpreter.allocate_tensors()
    interpreter.set_tensor(x, draw.integers(-100, 101, (1, STEPS, INPUT)).astype(np.int8))
    interpreter.invoke()
    return interpreter.get_tensor(y)[0].astype(int)


without_effect = {}
for outputs in (CELLS, 2):
    plain = results(outputs, None)
    changes = [int(np.abs(results(outputs, cell) - plain).max()) for cell in range(CELLS)]
    without_effect[outputs] = changes.count(0)
    print(f"{CELLS} cells, {outputs} outputs: the peephole of each cell alone changes y by {changes} steps")
assert not without_effect[CELLS]
print(f"expected that each changes y; with 2 outputs, {without_effect[2]} change nothing")
sys.exit(int(without_effect[2] > 0))
