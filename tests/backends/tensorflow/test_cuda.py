"""TensorFlow on CUDA, as far as it shows without a GPU: a program's device, Keras' choice of cuDNN, what is refused."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from device_programs import CUDNN_TOLERANCE, TOLERANCE, built_as_the_reference
from quick_tests import for_proof
from waiting import PATIENCE_S

from rnnbench.backends.base import BuildError, Lack, Request
from rnnbench.backends.tensorflow import TensorflowBackend, backend
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.weights import draw_inputs

pytest.importorskip("tensorflow")

BACKEND = TensorflowBackend()
PRETENDED = 6
"""Units of programs that are built as for a GPU. XLA keeps code of one name for each device, and the suite reads the
first: a worker has one device, and these tests have two."""

SECOND_DEVICE = """
import pickle, sys
from pathlib import Path
from types import SimpleNamespace
import tensorflow as tf

requests, folder, x = pickle.loads(sys.stdin.buffer.read())
processor = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * 2)

from rnnbench.backends.tensorflow import TensorflowBackend
from rnnbench.backends.tensorflow.executor import has_private_call
from rnnbench.backends.tensorflow.process import prepare_process

def streamed(request):
    program = TensorflowBackend().build(request, Path(folder))
    program.device = "CPU:1"
    session = program.open()
    bound = session.bind([{"x": part} for part in (x[:4], x[4:])])
    y = session.step({"x": x})["y"]
    session.reset()
    bound(), bound()
    bound.sync()
    assert has_private_call(program.function)
    assert "SyncDevice" in str(bound.sync)
    arrays = [*bound._outputs, *getattr(session, "state", ()), *getattr(session, "variables", ())]
    return {array.device.rpartition("device:")[2] for array in arrays}, y, bound.output()["y"]

prepare_process(1)
with tf.device("CPU:1"):
    answers = [streamed(request) for request in requests]

program = TensorflowBackend().build(requests[0], Path(folder))
program.device = "CPU:1"
session = program.open()
given = {array.device.rpartition("device:")[2] for array in (session.placed(x[:4]), *session.state)}
product = tf.function(lambda x: x @ x, jit_compile=True, autograph=False)
sys.stdout.buffer.write(pickle.dumps((answers, given, product(tf.ones((2, 2))).numpy()[0, 0])))
"""


def in_a_process(script: str, given: object, variables: dict[str, str]) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=pickle.dumps(given),
        capture_output=True,
        env={**os.environ, **variables},
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return pickle.loads(done.stdout)


@pytest.mark.proof
def test_a_stream_is_on_the_device_of_its_process_and_xla_knows_the_flags_of_a_worker_on_cuda(
    ask, tmp_path: Path
) -> None:
    """The processor as two devices: the second one is what TensorFlow uses, as it uses a GPU where there is one.

    In a process with the variables of a worker on CUDA. XLA ends a process for a flag that it does not know.
    """
    requests = [ask("graph", state=state) for state in ("stitched", "stateful")]
    x = draw_inputs(requests[0].model, 8, 1, seed=1)
    variables = {**BACKEND.support(on_cuda(ask("xla"))).environment, "CUDA_VISIBLE_DEVICES": "-1"}
    expected = run_reference(requests[0].model, requests[0].weights, x).y
    streams, given, product = in_a_process(SECOND_DEVICE, (requests, str(tmp_path), x), variables)
    assert given == {"CPU:1"}, "x of bound calls and the state, wherever TensorFlow puts new tensors"
    assert len(streams) == len(requests)
    for places, y, last in streams:
        assert places == {"CPU:1"}
        np.testing.assert_allclose(y, expected, atol=2e-6)
        np.testing.assert_allclose(last, expected[4:], atol=2e-6)
    assert product == 2


def on_cuda(request: Request) -> Request:
    return replace(request, device="cuda")


@pytest.mark.first(1)
@pytest.mark.parametrize("state", ["none", "stitched", "stateful"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_fused_layer_of_keras_is_one_operator_of_cudnn(ask, monkeypatch, cell: str, state: str) -> None:
    """Keras is told that there is a GPU, and traces for it. The graph is not run."""
    from rnnbench.backends.tensorflow import lowered
    from rnnbench.backends.tensorflow.keras_layers import library
    from rnnbench.backends.tensorflow.process import prepare_process

    prepare_process(1)
    chooser = importlib.import_module("keras.src.backend.tensorflow.rnn")
    monkeypatch.setattr(chooser, "_is_gpu_available", lambda: True)
    request = on_cuda(ask("keras", time="fused", state=state, cell=cell, layers=2))
    (function,) = library(request, jit=False).step._list_all_concrete_functions()
    graph = function.graph.as_graph_def()
    operators = [node.op for node in graph.node]
    assert operators.count("CudnnRNNV3") == 2
    assert not {"While", "StatelessWhile"} & set(operators)
    assert lowered.lowered(graph, lowered.KERAS, "fused") == "fused"


def test_a_fused_layer_on_cuda_is_cudnns_or_none(ask) -> None:
    """Here is no GPU: on the processor Keras would make a loop of it."""
    from rnnbench.backends.tensorflow.keras_layers import library

    with pytest.raises(ValueError, match="use_cudnn=True"):
        library(on_cuda(ask("keras", time="fused")), jit=False)


def test_the_partitions_of_a_graph_are_read_as_one(build) -> None:
    """As where loops count their passes on the processor, and all else is on a GPU."""
    from rnnbench.backends.tensorflow import lowered, saved

    whole = saved.executed_graph(build("graph").files)
    halves = [type(whole)(), type(whole)()]
    for number, node in enumerate(whole.node):
        halves[number % 2].node.append(node)
    joined = saved.joined(halves)
    assert lowered.operations(joined) == lowered.operations(whole)
    assert lowered.lowered(joined, lowered.AUTHORED, "looped") == "looped 1"


def test_arithmetic_that_is_left_to_the_processor_is_refused(ask, build) -> None:
    """TensorFlow places an operator that a GPU has no kernel for on the processor, and says nothing."""
    from rnnbench.backends.tensorflow import saved

    executed = saved.executed_graph(build("graph").files)
    request, left = on_cuda(ask("graph")), {"LoopCond", "Less", "AddV2"}
    for node in executed.node:
        where = "CPU" if node.op in left else "GPU"
        node.device = f"/job:localhost/replica:0/task:0/device:{where}:0"
    saved._require_on_the_device(request, executed)
    product = next(node for node in executed.node if "MatMul" in node.op)
    product.device = product.device.replace("GPU", "CPU")
    with pytest.raises(BuildError, match=f"compute on the processor.*: {product.op}"):
        saved._require_on_the_device(request, executed)
    saved._require_on_the_device(ask("graph"), executed)


@pytest.fixture
def pretended_gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """TensorFlow says that it finds these GPUs, and computes on the processor."""
    import tensorflow as tf

    gpus, details = ["first"], {"device_name": "NVIDIA H100", "compute_capability": (9, 0)}
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _kind: gpus)
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda _device: details)
    yield gpus
    tf.config.experimental.enable_tensor_float_32_execution(True)


@pytest.mark.usefixtures("pretended_gpus")
def test_a_program_that_xla_compiles_for_the_processor_is_refused(ask, tmp_path: Path) -> None:
    """No graph tells where its operators are. Its results do."""
    with pytest.raises(BuildError, match=r"returned results from .*device:CPU:0"):
        BACKEND.build(on_cuda(ask("xla", hidden=PRETENDED)), tmp_path)


def test_results_in_a_gpus_memory_are_the_programs(ask) -> None:
    import tensorflow as tf

    from rnnbench.backends.tensorflow import saved

    request, there, here = on_cuda(ask("xla")), "/job:localhost/replica:0/task:0/device:GPU:0", "/device:CPU:0"
    y, count = SimpleNamespace(dtype=tf.float32, device=there), SimpleNamespace(dtype=tf.int32, device=here)
    saved._require_results_on_the_device(request, [y, count])
    saved._require_results_on_the_device(ask("xla"), [SimpleNamespace(dtype=tf.float32, device=here)])


def test_of_several_gpus_tensorflow_starts_the_first(monkeypatch, pretended_gpus: list[str]) -> None:
    """It would start the others too, and end where another user has left one of them no memory."""
    import tensorflow as tf

    from rnnbench.backends.tensorflow import process

    shown: list[tuple[list[str], str]] = []
    monkeypatch.setattr(tf.config, "set_visible_devices", lambda *named: shown.append(named))
    process._set_device(tf, "cuda")
    pretended_gpus.append("second")
    process._set_device(tf, "cuda")
    assert shown == [(["first"], "GPU")]


def field(number: int, data: bytes) -> bytes:
    """A field of bytes, as protocol buffers are written."""
    size, length = b"", len(data)
    while length > 127:
        size, length = size + bytes([length & 127 | 128]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + data


@pytest.mark.proof
def test_code_that_xla_compiled_through_pjrt_is_read_too(build, tmp_path: Path) -> None:
    """So it does for a GPU. The executable is then one message further within, beside other fields."""
    from rnnbench.backends.tensorflow import lowered, xla

    program = build("xla")
    (entry,) = (path for path in program.files.program if path.parent.name == "xla")
    read = xla.compiled(entry, lowered.AUTHORED, "looped")
    within = field(1, read.executable) + field(2, b"") + field(3, b"cuda")
    (tmp_path / "entry.pb").write_bytes(field(1, b"") + field(2, b"") + field(3, within))
    again = xla.compiled(tmp_path / "entry.pb", lowered.AUTHORED, "looped")
    assert (again.operations, again.lowered) == (read.operations, read.lowered)
    assert again.lowered == program.artifact.lowered


def test_where_the_code_for_a_gpu_has_no_hlo_xla_is_asked_again(build) -> None:
    """XLA may keep such code in a form that is no message. Here it is asked on the processor."""
    from rnnbench.backends.tensorflow import lowered, xla

    program = build("xla")
    again = xla.compiled_again(program.function, lowered.AUTHORED, "looped")
    assert again.lowered == program.artifact.lowered
    assert again.operations == program.artifact.operations["compiled"]


@pytest.mark.proof
@pytest.mark.usefixtures("pretended_gpus")
@pytest.mark.parametrize("route", ["xla", *for_proof("keras-xla")])
def test_a_build_for_a_gpu_goes_on_without_hlo_in_the_code(ask, monkeypatch, tmp_path: Path, route: str) -> None:
    from rnnbench.backends.tensorflow import saved, xla

    def no_hlo(*_: object) -> None:
        raise BuildError("has no HLO")

    monkeypatch.setattr(saved, "_require_results_on_the_device", lambda *_: None)
    monkeypatch.setattr(xla, "compiled", no_hlo)
    assert BACKEND.build(on_cuda(ask(route, hidden=PRETENDED)), tmp_path).artifact.lowered == "looped 1"
    with pytest.raises(BuildError, match="has no HLO"):
        BACKEND.build(ask(route, hidden=PRETENDED), tmp_path)


def test_code_of_xla_that_is_laid_out_in_another_way_is_a_reason(tmp_path: Path) -> None:
    from rnnbench.backends.tensorflow import xla

    (tmp_path / "entry.pb").write_bytes(b"")
    with pytest.raises(BuildError, match="has no HLO where"):
        xla.compiled(tmp_path / "entry.pb", "", "looped")


def test_a_build_that_would_compute_on_the_processor_fails(ask, tmp_path: Path) -> None:
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        pytest.skip("there is a GPU here")
    with pytest.raises(BuildError, match="would compute on the processor"):
        BACKEND.build(on_cuda(ask("graph")), tmp_path)


def test_xla_is_given_products_of_float32_that_stay_float32(ask, monkeypatch) -> None:
    """What a process on CUDA sets holds for XLA's own products, too. Here XLA is asked on the processor."""
    import tensorflow as tf

    from rnnbench.backends.tensorflow import process
    from rnnbench.backends.tensorflow.traced_function import authored

    def products(device: str) -> list[str]:
        process._set_device(tf, device)
        request = ask("xla")
        module = authored(request, request.strategy.copies, jit=True)
        (function,) = module.step._list_all_concrete_functions()
        zeros = [tf.zeros(spec.shape, spec.dtype) for spec in function.inputs[:3]]
        hlo = module.step.experimental_get_compiler_ir(*zeros)(stage="hlo")
        return [line for line in hlo.splitlines() if " dot(" in line]

    process.prepare_process(1)
    before = products("cpu")
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
    try:
        after = products("cuda")
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(True)
    precise = "operand_precision={highest,highest}"
    assert len(before) == len(after) == 2
    assert not any(precise in line for line in before)
    assert all(precise in line for line in after)


def test_a_worker_on_cuda_lets_memory_grow_and_computes_float32(ask) -> None:
    variables = BACKEND.support(on_cuda(ask("graph"))).environment
    assert variables["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    assert variables["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert variables["XLA_FLAGS"] == "--xla_gpu_enable_command_buffer="
    assert "CUDA_VISIBLE_DEVICES" not in variables
    flags = backend._flags(on_cuda(ask("graph")))
    assert {"tensor_float_32_execution=False", "NVIDIA_TF32_OVERRIDE=0"} < set(flags)


@pytest.mark.parametrize(
    ("time", "device", "said"),
    [
        ("fused", "cuda", "the weights are joined into cuDNN's one array inside the call"),
        ("looped", "cuda", "a layer without cuDNN is a While over its cell, or copies of the cell"),
        ("fused", "cpu", "on the CPU every form of a layer is a While over its cell, or copies of the cell"),
    ],
)
def test_a_program_of_keras_says_what_a_layer_is_on_its_device(ask, time: str, device: str, said: str) -> None:
    request = replace(ask("keras"), device=device)
    request = replace(request, strategy=replace(request.strategy, time=time))
    assert backend._form_note(request) == said


def test_a_worker_on_the_processor_sees_no_gpu(ask) -> None:
    assert BACKEND.support(ask("graph")).environment["CUDA_VISIBLE_DEVICES"] == "-1"


def test_a_program_is_for_a_kind_of_device_and_a_capability(ask, monkeypatch) -> None:
    import tensorflow as tf

    from rnnbench.backends.tensorflow import saved

    def key(request: Request, capability: tuple[int, int] = (9, 0)) -> str:
        details = {"device_name": "NVIDIA H100", "compute_capability": capability}
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
        monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda device: details)
        return saved._key(request)

    keys = [key(ask("graph")), key(on_cuda(ask("graph"))), key(on_cuda(ask("graph")), (10, 0))]
    assert len(set(keys)) == len(keys)
    assert key(on_cuda(ask("graph"))) == keys[1]


LIBRARIES = dict.fromkeys(backend.LIBRARIES, "12")


def test_what_is_missing_for_cuda_is_named(monkeypatch) -> None:
    monkeypatch.setattr(backend, "library_loads", lambda _: False)
    lack = backend.cuda_lack({name: version for name, version in LIBRARIES.items() if "cudnn" not in name})
    assert isinstance(lack, Lack)
    assert lack.reason.startswith("neither nvidia-cudnn-cu12 is installed nor libcudnn.so.9 found")
    assert lack.install == "pip install 'tensorflow[and-cuda]'"
    assert backend.cuda_lack(LIBRARIES) is None


@pytest.mark.parametrize(("built", "lacks"), [("True", False), ("False", True)])
def test_a_wheel_without_cuda_is_named(monkeypatch, tmp_path: Path, built: str, lacks: bool) -> None:
    """In the words of build_info.py of TensorFlow 2.21."""
    written = tmp_path / backend.BUILT_AS
    written.parent.mkdir(parents=True)
    written.write_text(f"build_info = collections.OrderedDict([('cuda_version', ''), ('is_cuda_build', {built})])\n")
    monkeypatch.setattr(backend, "distribution", lambda _name: SimpleNamespace(locate_file=tmp_path.joinpath))
    lack = backend.cuda_lack({"tensorflow": "2.21.0", **LIBRARIES})
    assert (lack is not None) == lacks
    assert lack is None or lack.reason == "the installed tensorflow 2.21.0 is built without CUDA, as wheels for ARM are"


def test_libraries_of_a_container_will_do(monkeypatch) -> None:
    monkeypatch.setattr(backend, "library_loads", lambda _: True)
    assert backend.cuda_lack({}) is None


@pytest.mark.parametrize(
    ("route", "changes", "reason"),
    [
        ("keras-xla", {"time": "fused"}, "XLA has no kernel for cuDNN's operator"),
        ("keras", {"time": "fused", "bias": False}, "biases and the standard activations"),
        ("keras", {"time": "fused", "activation": "relu"}, "biases and the standard activations"),
        ("keras", {"time": "fused", "cell": "gru", "reset_after": False}, "with reset_after alone"),
        ("graph", {"time": "fused"}, "on the route keras"),
    ],
)
def test_what_is_refused_on_cuda_says_why(ask, route: str, changes: dict[str, Any], reason: str) -> None:
    support = BACKEND.support(on_cuda(ask(route, **changes)))
    assert (support.level, reason in support.reason) == ("unsupported", True)


def test_threads_are_the_processors(ask) -> None:
    support = BACKEND.support(replace(on_cuda(ask("keras")), threads=2))
    assert (support.level, "one thread" in support.reason) == ("unsupported", True)


@pytest.mark.parametrize(
    ("route", "time", "lowered"),
    [("graph", "looped", "looped 1"), ("xla", "unrolled", "unrolled 4"), ("keras", "fused", "fused")],
)
def test_a_gpu_gives_what_the_reference_says(ask, tmp_path: Path, route: str, time: str, lowered: str) -> None:
    tolerance = CUDNN_TOLERANCE if time == "fused" else TOLERANCE
    assert built_as_the_reference(BACKEND, on_cuda(ask(route, time=time)), tmp_path, tolerance).lowered == lowered
