# /// script
# dependencies = ["ai-edge-litert==2.3.0", "flatbuffers==25.12.19", "numpy"]
# ///
"""LiteRT reads and writes the int8 state of an SVDF as int16, and so beyond its end.

TFLite Micro takes SVDF with a state and weights of time in int8, and its converters write them. Here each filter adds
up its last 64 inputs, which are 1. Three calls give 1, 2 and 3, with a state in int16. With one in int8, LiteRT
prepares the operator without a word. It gives something else, or its process is ended by a signal.
"""

import subprocess
import sys

PROGRAM = """
import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

FILTERS, MEMORY, KIND = 512, 64, sys.argv[1]
model, graph = schema.ModelT(), schema.SubGraphT()
model.version, model.buffers, graph.tensors = 3, [schema.BufferT()], []


def tensor(shape, kind, scale, values=None, zero=0):
    made = schema.TensorT()
    made.shape, made.type, made.buffer = list(shape), getattr(schema.TensorType, kind.upper()), 0
    made.quantization = schema.QuantizationParametersT()
    made.quantization.scale, made.quantization.zeroPoint = np.float32([scale]), np.int64([zero])
    if values is not None:
        model.buffers.append(schema.BufferT())
        model.buffers[-1].data = np.full(shape, values, kind).reshape(-1).view(np.uint8)
        made.buffer = len(model.buffers) - 1
    graph.tensors.append(made)
    return len(graph.tensors) - 1


x, y = tensor([1, 1], "int8", 1 / 64), tensor([1, FILTERS], "int8", 1 / 8, zero=-128)
feature = tensor([FILTERS, 1], "int8", 1 / 127, 127)
time = tensor([FILTERS, MEMORY], KIND, 1 / 127, 127)
state = tensor([1, FILTERS * MEMORY], KIND, 1 / 64)
graph.tensors[state].isVariable = True
code, operator = schema.OperatorCodeT(), schema.OperatorT()
code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.SVDF
code.version, operator.opcodeIndex = 3, 0
operator.inputs, operator.outputs = [x, feature, time, -1, state], [y]
operator.builtinOptionsType, operator.builtinOptions = schema.BuiltinOptions.SVDFOptions, schema.SVDFOptionsT()
operator.builtinOptions.rank = 1
operator.builtinOptions.fusedActivationFunction = schema.ActivationFunctionType.RELU
graph.operators, graph.inputs, graph.outputs = [operator], [x], [y]
model.operatorCodes, model.subgraphs = [code], [graph]
builder = flatbuffers.Builder()
builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
interpreter = Interpreter(model_content=bytes(builder.Output()))
try:
    interpreter.allocate_tensors()
except (RuntimeError, ValueError) as error:
    sys.exit(f"refused: {error}")
found = []
for _ in range(3):
    interpreter.set_tensor(x, np.int8([[64]]))
    interpreter.invoke()
    found.append(np.unique((interpreter.get_tensor(y) + 128.0) / 8).tolist())
print(found)
"""


def outcome(kind):
    done = subprocess.run([sys.executable, "-c", PROGRAM, kind], capture_output=True, text=True)
    if done.returncode < 0:
        return f"ended by signal {-done.returncode}"
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


EXPECTED = "[[1.0], [2.0], [3.0]]"
assert outcome("int16") == EXPECTED, outcome("int16")
found = outcome("int8")
print(f"a state in int8: expected {EXPECTED}, or that it is refused; found {found}")
sys.exit(int(found != EXPECTED and not found.startswith("refused")))
