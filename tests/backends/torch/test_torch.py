"""The torch backend: the kernels of its operators, how traced programs are lowered, and what the cache saves."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Lock, Thread
from typing import Any
from weakref import ReferenceType, ref

import numpy as np
import pytest
from quick_tests import for_proof
from waiting import PATIENCE_S, join

from rnnbench.backends.base import BuildError, Program, Request
from rnnbench.backends.torch import TorchBackend, aoti
from rnnbench.backends.torch.aoti import CHOSEN, MANY_ROWS, PACKED
from rnnbench.backends.torch.counting import body_copies, lowered
from rnnbench.backends.torch.inductor import network, tracing_settings
from rnnbench.backends.torch.inductor_code import calls, lowered_code
from rnnbench.backends.torch.library import uses_onednn
from rnnbench.backends.torch.network import example_inputs, module_to_trace
from rnnbench.backends.torch.operators import Operators
from rnnbench.backends.torch.recorder import Recorder, in_place
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn.network import Network
from rnnbench.rnn.networks.kws import KwsCrnn, KwsSvdf
from rnnbench.rnn.networks.mamba2 import Mamba2Block
from rnnbench.rnn.networks.rnnoise import RNNoise
from rnnbench.rnn.primitives import LayerBody
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.registry import families
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs, draw_weights

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.jit")

LSTM = Model(cell="lstm", input=5, hidden=16)
GRU = Model(cell="gru", input=5, hidden=16)
GRU_BEFORE = Model(cell="gru", input=4, hidden=33, reset_after=False)
COUNTER = Model(cell="counter", input=4, hidden=4)
RNNOISE = RNNoise(input=5, hidden=6)
EXCHANGED = {"bfloat16": "float32"}


def make_request(
    model: Network, route: str, time: str, state: str = "stitched", chunk: int = 4, dtype: str = "float32"
) -> Request:
    weights = draw_weights(model, 0, EXCHANGED.get(dtype, dtype))
    return Request(route, model, weights, Strategy(time, state, chunk), 1, Precision.of(dtype))  # type: ignore[arg-type]


def build(request: Request, cache: Path) -> Program:
    return TorchBackend().build(request, cache)


@pytest.fixture
def inductor(workshop: Any) -> Path:
    """Where the common suite builds what torch.compile makes: C++ headers are compiled there once."""
    cache: Path = workshop.inductor
    return cache


def test_the_stream_of_a_closed_session_is_the_next_ones_and_starts_from_zeros(tmp_path) -> None:
    """torch frees little of what it loads for a stream, so a thousand sessions must not load a thousand of them."""
    program: Any = build(make_request(LSTM, "eager", "looped"), tmp_path)
    loaded: list[Any] = []
    load = program._open_stream
    program._open_stream = lambda: loaded.append(load()) or loaded[-1]
    ring = [{"x": draw_inputs(LSTM, 4, 1, seed)} for seed in range(3)]
    first, other = program.open(), program.open()
    expected = [first.step(inputs)["y"] for inputs in ring]
    other.step(ring[0])
    for _ in range(3):
        first.close()
        first.close()
        first = program.open()
        bound = first.bind(ring)
        bound()
        np.testing.assert_array_equal(bound.output()["y"], expected[0])
    for inputs, y in zip(ring[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(other.step(inputs)["y"], y)
        np.testing.assert_array_equal(first.step(inputs)["y"], y)
    assert len(loaded) == 2


@pytest.mark.parametrize(
    ("model", "chunk", "dtype", "kernel"),
    [
        (LSTM, 1, "float32", "looped 1"),
        (LSTM, 7, "float32", "looped 1"),
        (LSTM, 8, "float32", "fused"),
        (LSTM, 8, "float64", "looped 1"),
        (LSTM.model_copy(update={"layers": 2}), 8, "float32", "fused"),
        (LSTM.model_copy(update={"projection": 3}), 8, "float32", "looped 1"),
        (GRU, 8, "float32", "looped 1"),
    ],
    ids=str,
)
def test_a_library_operator_names_its_kernels(model, chunk, dtype, kernel, tmp_path) -> None:
    artifact = build(make_request(model, "eager", "fused", chunk=chunk, dtype=dtype), tmp_path).artifact
    assert artifact.lowered == kernel
    assert ("mkldnn_rnn_layer" in artifact.operations["compiled"]) == (kernel == "fused")
    assert artifact.origin == "library"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.each_value
def test_onednn_is_asked_for_where_it_has_the_type(dtype, tmp_path) -> None:
    """Whether it has these depends on the processor."""
    artifact = build(make_request(LSTM, "eager", "fused", chunk=8, dtype=dtype), tmp_path).artifact
    assert ("mkldnn=on" in artifact.flags) == ("mkldnn_rnn_layer" in artifact.operations["compiled"])


@pytest.mark.parametrize(
    ("dtype", "device", "strides"),
    [("float32", "cpu", (3, 1)), ("float16", "cpu", (1, 2)), ("bfloat16", "cpu", (1, 2)), ("bfloat16", "meta", (3, 1))],
)
def test_matrices_of_narrow_numbers_lie_as_nn_linear_has_them(dtype, device, strides) -> None:
    """The products of torch take many times as long over the other layout, on a processor without such instructions."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    dtype, device = getattr(torch, dtype), torch.device(device)
    made = Recorder(dtype, device).constant(array), Operators(dtype, device).constant(array)
    assert [matrix.stride() for matrix in made] == [strides, strides]
    if device.type == "cpu":
        assert all(matrix.tolist() == array.tolist() for matrix in made)


@pytest.mark.parametrize(
    ("route", "hidden", "batch", "vectors", "steps"),
    [
        ("eager", 256, 1, "AVX2", 8),
        ("eager", 257, 1, "AVX2", 24),
        ("compile", 257, 1, "AVX512", 8),
        ("compile", 257, 2, "AVX2", 4),
        ("compile", 16, 2, "AVX2", 8),
        ("eager", 16, 2, "AVX512", 4),
    ],
)
def test_onednn_begins_at_the_steps_from_which_it_is_faster(
    monkeypatch: pytest.MonkeyPatch, route: str, hidden: int, batch: int, vectors: str, steps: int
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: vectors)
    model = Model(cell="lstm", input=5, hidden=hidden)
    requests = (replace(make_request(model, route, "fused", chunk=n), batch=batch) for n in (steps - 1, steps))
    assert [uses_onednn(request) for request in requests] == [False, True]


@pytest.mark.parametrize(
    ("model", "dtype", "ragged"),
    [
        (GRU, "float32", False),
        (LSTM, "float64", False),
        (LSTM, "int8_dynamic", False),
        (GRU, "float32", True),
        (LSTM, "float32", True),
    ],
    ids=str,
)
def test_kernels_of_an_operator_that_loops_are_those_of_its_body(model, dtype, ragged, tmp_path) -> None:
    """Those that it runs grow with the chunk, which would contradict `looped 1`."""
    few, many = (
        build(
            replace(make_request(model, "eager", "fused", "none", chunk, dtype), batch=3, ragged=ragged), tmp_path
        ).artifact
        for chunk in (5, 40)
    )
    assert few.lowered == many.lowered == "looped 1"
    assert few.operations == many.operations
    assert few.operations["compiled"]


def test_onednn_is_on_again_after_a_call_without_it(tmp_path) -> None:
    session = build(make_request(LSTM, "eager", "fused", chunk=1), tmp_path).open()
    x = draw_inputs(LSTM, 1, 1, 0)
    session.step({"x": x})
    session.bind([{"x": x}])()
    assert torch.backends.mkldnn.enabled


def test_a_backwards_rnn_is_the_forward_one_with_x_and_y_flipped(tmp_path) -> None:
    model = GRU.model_copy(update={"direction": "reverse"})
    request = make_request(model, "eager", "fused", "none")
    assert TorchBackend().support(request).level == "emulated"
    x = draw_inputs(model, 4, 1, 0)
    y = build(request, tmp_path).open().step({"x": x})["y"]
    np.testing.assert_allclose(y, run_reference(model, request.weights, x).y, atol=1e-6)


def test_a_scripted_loop_is_unrolled_by_the_executor(tmp_path) -> None:
    artifact = build(make_request(LSTM, "script", "looped"), tmp_path).artifact
    assert artifact.lowered == "looped 1 + looped 1 of 8"
    assert artifact.operations["input"]["prim::Loop"] == 1


@pytest.mark.parametrize("model", [LSTM, GRU, COUNTER], ids=lambda model: model.cell)
def test_a_scripted_loop_over_copies_has_them_in_each_pass(model, tmp_path) -> None:
    lowered = build(make_request(model, "script", "unrolled:2"), tmp_path).artifact.lowered
    assert "looped 1 of 2" in lowered.split(" + "), "the executor adds a loop over 16 copies where it unrolls this one"


def of_the_common_suite(model: Model, route: str, time: str, chunk: int) -> Request:
    """A request that the common suite makes: its program is built once for both."""
    return replace(make_request(model, route, time, chunk=chunk), weights=draw_weights(model, 1))


def test_a_compiled_loop_over_copies_has_them_in_each_pass(inductor) -> None:
    request = of_the_common_suite(LSTM.model_copy(update={"hidden": 17}), "compile", "unrolled:2", 4)
    artifact = build(request, inductor).artifact
    assert artifact.lowered == "looped 1 of 2"
    assert "the input projection of a chunk is one product before its loop" in artifact.notes


@pytest.mark.proof
@pytest.mark.parametrize(("chunk", "kernel"), [(8, "fused"), *for_proof((4, "unrolled 4"))])
def test_a_compiled_library_rnn_is_onednns_kernel_or_written_out(chunk, kernel, inductor) -> None:
    recursion_limit = sys.getrecursionlimit()
    libraries = set(inductor.rglob("*.so"))
    artifact = build(make_request(LSTM, "compile", "fused", chunk=chunk), inductor).artifact
    assert set(inductor.rglob("*.so")) > libraries, "a process that loads the program needs its machine code"
    assert artifact.lowered == kernel
    assert artifact.origin == "library"
    assert not torch._dynamo.config.allow_rnn
    assert torch.backends.mkldnn.enabled
    assert sys.getrecursionlimit() == recursion_limit


@pytest.mark.parametrize("model", [LSTM, GRU, COUNTER], ids=lambda model: model.cell)
def test_a_trace_has_a_copy_of_the_cell_for_each_step(model, tmp_path) -> None:
    assert build(make_request(model, "script", "unrolled"), tmp_path).artifact.lowered == "unrolled 4"


@pytest.fixture
def fuser_of_gpus() -> Iterator[None]:
    """TorchScript's fuser, which is on for GPUs alone. On the processor, torch has an interpreter for what it fuses."""
    settings = torch._C
    fuses, needs_llvm = settings._jit_can_fuse_on_cpu(), settings._jit_get_te_must_use_llvm_cpu()
    settings._jit_override_can_fuse_on_cpu(True)
    settings._jit_set_te_must_use_llvm_cpu(False)
    yield
    settings._jit_override_can_fuse_on_cpu(fuses)
    settings._jit_set_te_must_use_llvm_cpu(needs_llvm)


@pytest.mark.usefixtures("fuser_of_gpus")
@pytest.mark.parametrize(("time", "lowered"), [("unrolled", "unrolled 4"), ("looped", "looped 1 + looped 1 of 8")])
def test_copies_are_found_within_fused_groups_too(time, lowered, tmp_path) -> None:
    artifact = build(make_request(LSTM, "script", time), tmp_path).artifact
    assert artifact.operations["compiled"]["prim::TensorExprGroup"]
    assert artifact.lowered == lowered


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float16", 2e-3), ("bfloat16", 2e-2)])
@pytest.mark.parametrize(("route", "time"), [("eager", "fused"), ("eager", "looped"), ("script", "unrolled")])
@pytest.mark.each_value
def test_a_model_runs_in_other_precisions(route, time, dtype, tolerance, tmp_path) -> None:
    request = make_request(LSTM, route, time, "stateful", dtype=dtype)
    exchanged = EXCHANGED.get(dtype, dtype)
    x = draw_inputs(LSTM, 8, 1, 0, exchanged)
    y = build(request, tmp_path).open().step({"x": x})["y"]
    assert y.dtype == exchanged
    np.testing.assert_allclose(y, run_reference(LSTM, request.weights, x).y, atol=tolerance)


@pytest.mark.parametrize(
    "request_",
    [
        of_the_common_suite(LSTM.model_copy(update={"hidden": 17}), "compile", "unrolled:2", 4),
        *for_proof(
            of_the_common_suite(GRU.model_copy(update={"hidden": 17}), "aoti", "fused", 2),
            replace(of_the_common_suite(GRU_BEFORE, "compile", "unrolled", 2), batch=3),
        ),
    ],
    ids=["loop", "aoti", "compile"],
)
def test_a_returned_state_begins_where_one_that_is_set_does(request_, inductor) -> None:
    """As a view of y's last row, it would begin within 16 bytes. The last digit of MKL's products depends on that."""
    program: Any = build(request_, inductor)
    x = np.ones((request_.strategy.chunk, request_.batch, request_.model.input), np.float32)
    with closing(program.open()) as session:
        session.step({"x": x})
        assert session._stream.state["h"].data_ptr() % 16 == 0
        bound = session.bind([{"x": x}] * 2)
        for _ in range(2):
            bound()
            assert session._stream.state["h"].data_ptr() % 16 == 0


def test_sessions_leave_the_callers_thread_as_it_was(tmp_path) -> None:
    session = build(make_request(LSTM, "eager", "looped"), tmp_path).open()
    session.step({"x": draw_inputs(LSTM, 4, 1, 0)})
    assert not torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("model", "route", "time", "reason"),
    [
        (LSTM, "eager", "unrolled", "no program in which to unroll"),
        (COUNTER, "eager", "fused", "no module for the counter"),
        (GRU.model_copy(update={"reset_after": False}), "eager", "fused", "after the recurrent product"),
        (LSTM.model_copy(update={"cell_clip": 1.0}), "eager", "fused", "has no clip"),
        (LSTM, "script", "fused", "the same operator as in torch:eager"),
    ],
)
def test_an_unsupported_request_has_a_reason(model, route, time, reason) -> None:
    support = TorchBackend().support(make_request(model, route, time))
    assert support.level == "unsupported"
    assert reason in support.reason


def test_copies_are_counted_by_an_operation_of_the_body() -> None:
    assert body_copies(LSTM, {"tanh": 8, "sigmoid": 12, "mm": 5}) == 4
    assert body_copies(LSTM.model_copy(update={"activation": "relu"}), {"relu": 8, "clamp": 12}) == 4
    assert body_copies(GRU, {"tanh": 4, "sigmoid": 8}) == 4
    assert body_copies(COUNTER, {"add": 4}) == 4
    assert body_copies(RNNOISE, {"tanh": 10, "sigmoid": 14}) == 10, "five layers with a state, and two heads without"
    assert lowered([], 4) == "unrolled 4"
    assert lowered([1, 1], 0) == "looped 2"
    assert lowered([8, 1], 2) == "looped 1 + looped 1 of 8 + unrolled 2"


def test_copies_in_generated_code_are_those_in_its_loops_and_those_outside() -> None:
    product = "aoti_torch_cpu_addmm_out(a, b);\n"
    loop = "while (1) {\n if (done) { break; }\n" + 2 * product + "}\n"
    by_two, unrolled = make_request(LSTM, "aoti", "unrolled:2"), make_request(LSTM, "aoti", "unrolled")
    assert lowered_code(by_two, product + loop) == "looped 1 of 2"
    assert lowered_code(by_two, product + loop + product) == "looped 1 of 2 + unrolled 1"
    assert lowered_code(unrolled, product + 4 * product) == "unrolled 4"
    assert lowered_code(unrolled, "aoti_torch_cpu_mkldnn_rnn_layer(a, b);") == "fused"


def test_a_product_of_packed_weights_counts_as_one_wherever_inductor_makes_it() -> None:
    template = "void cpp_fused_add_0(X, W) {\n        cpp_fused_add_0_micro_gemm<true>(X, W);\n}\n"
    kernels = 4 * "    cpp_fused_add_0(x, w);\n    cpp_fused_tanh_1(x);\n"
    projected = "aoti_torch_cpu__linear_pointwise(x, w);\n"
    code = template + projected + kernels
    assert calls(code) == {"_linear_pointwise": 1, "kernel": 4, "micro_gemm": 4}
    assert lowered_code(make_request(LSTM, "aoti", "unrolled"), code) == "unrolled 4"


def test_weights_are_packed_where_no_call_writes_into_the_program_s_buffers() -> None:
    stitched = make_request(LSTM, "aoti", "unrolled", state="stitched")
    assert aoti._settings(stitched) == (PACKED, CHOSEN, {})
    assert aoti._settings(replace(stitched, batch=MANY_ROWS)) == (CHOSEN, {}), "the build times both products"
    assert aoti._settings(make_request(LSTM, "aoti", "unrolled", state="stateful")) == ({},)
    assert aoti._settings(replace(stitched, precision=Precision.of("float64"))) == ({},)
    assert aoti._settings(replace(stitched, device="cuda")) == ({},)


def test_the_first_settings_that_compile_are_those_of_the_program(tmp_path: Path, monkeypatch: Any) -> None:
    """Where none of them does, the error is that of the last ones, which are Inductor's own."""
    tried: list[Any] = []

    def compile_and_package(exported: str, *, package_path: str, inductor_configs: dict[str, Any]) -> None:
        tried.append(dict(inductor_configs))
        if exported == "broken" or inductor_configs.get("max_autotune_gemm_backends") == "CPP":
            raise RuntimeError(f"no choices exist with {inductor_configs}")

    monkeypatch.setattr(torch._inductor, "aoti_compile_and_package", compile_and_package)
    settings = (PACKED, CHOSEN, {})
    assert aoti._package("a product without a template", tmp_path / "one.pt2", settings) == CHOSEN
    assert tried == [dict(PACKED), dict(CHOSEN)]
    with pytest.raises(RuntimeError, match=r"exist with \{\}"):
        aoti._package("broken", tmp_path / "one.pt2", settings)


@pytest.mark.parametrize(("name", "layers"), [("gla", 1), ("mamba2", 2), ("mingru", 3)])
def test_steps_without_products_are_copies_where_no_loop_goes_over_them(name, layers) -> None:
    loop = "while (1) {\n if (done) { break; }\n}\n"
    linear = families()[name](hidden=12)
    assert lowered_code(make_request(linear, "compile", "unrolled", chunk=1), "") == f"unrolled {layers}"
    assert lowered_code(make_request(linear, "compile", "unrolled"), "") == f"unrolled {4 * layers}"
    assert lowered_code(make_request(linear, "compile", "looped"), layers * loop) == f"looped {layers}"


@pytest.mark.parametrize("name", ["gla", *for_proof("mamba2")])
def test_sizes_of_a_linear_recurrence_are_numbers_to_the_tracer(name) -> None:
    """A function of NumPy would make a tensor of them, and a size that is known in a call alone."""
    request = make_request(families()[name](hidden=12), "compile", "unrolled", chunk=1)
    with tracing_settings(request):
        exported = torch.export.export(module_to_trace(request, network(request)), example_inputs(request), strict=True)
    values = [value for node in exported.graph.nodes if isinstance(value := node.meta.get("val"), torch.Tensor)]
    assert values
    assert {type(size) for value in values for size in value.shape} == {int}


def test_products_that_inductor_writes_out_are_not_expected_in_its_code() -> None:
    product = "aoti_torch_cpu_addmm_out(a, b);\n"
    loop = "while (1) {\n if (done) { break; }\n" + 2 * product + "}\n"
    none = "while (1) {\n if (done) { break; }\n}\n"
    request = make_request(RNNOISE, "aoti", "unrolled:2")
    assert lowered_code(request, 5 * product + 2 * none + 3 * loop) == "looped 5 of 2"
    unrolled = make_request(RNNOISE, "aoti", "unrolled")
    assert lowered_code(unrolled, 5 * product + 3 * 4 * product) == "unrolled 20"
    one_step = make_request(RNNOISE, "aoti", "unrolled", chunk=1)
    assert lowered_code(one_step, 4 * product + 3 * product) == "unrolled 5", "and the head of one value"


class Delay(LayerBody[Any]):
    """y is the input of two steps before; and a sum, whose second part is read after the first has its next value."""

    def __init__(self, ops: Any) -> None:
        self.ops = ops

    def advance(self, projected: Any, state: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        ops, (last, before, total) = self.ops, state
        grown = ops.add(total, ops.mul(before, projected))
        half = ops.columns(grown, 0, 1)
        return ops.concat([before, half, ops.columns(total, 0, 1)]), (projected, last, grown)


def test_state_that_others_still_read_is_not_overwritten() -> None:
    recorder, state = Recorder(torch.float32), torch.zeros(3, 2, 2).unbind()
    current = torch.zeros(2, 2)
    y, new = Delay(recorder).advance(current, state)
    calls, y = in_place(recorder.take(), state, new, y)
    expected = [np.zeros((2, 2), np.float32)] * 3
    for step in range(5):
        x = np.full((2, 2), step + 1, np.float32)
        current.copy_(torch.from_numpy(x))
        for call in calls:
            call.call()()
        last, before, total = expected
        grown = total + before * x
        np.testing.assert_array_equal(y, np.concatenate([before, grown[:, :1], total[:, :1]], axis=1))
        expected = [x, last, grown]
        np.testing.assert_array_equal(torch.stack(state), expected)


def test_one_tensor_that_is_two_states_and_y_is_computed_once() -> None:
    recorder, state = Recorder(torch.float32), (torch.full((1, 2), 2.0), torch.full((1, 2), 3.0))
    product = recorder.mul(*state)
    calls, y = in_place(recorder.take(), state, (product, product), product)
    for call in calls:
        call.call()()
    assert [tensor.tolist() for tensor in (*state, y)] == 3 * [[[6.0, 6.0]]]


@pytest.mark.parametrize(("route", "time"), [("eager", "looped"), ("script", "unrolled")])
def test_a_convolution_over_time_and_frequency_is_one_product(tmp_path, route, time) -> None:
    """Slices and a product for each of the 12 frequencies of both took twice as long."""
    model = KwsCrnn(input=9, filters=3, hidden=6)
    program = build(make_request(model, route, time, chunk=1), tmp_path)
    assert sum(program.artifact.operations["compiled"].get(name, 0) for name in ("mm", "addmm")) == 7
    x = draw_inputs(model, 8, 1, 0)
    expected = run_reference(model, program.request.weights, x).y
    np.testing.assert_allclose(program.open().step({"x": x})["y"], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "name", "number"),
    [(KwsSvdf(input=5, hidden=6), "sum", 6), (Mamba2Block(input=5, hidden=6, heads=2, keys=4), "matmul", 1)],
)
def test_what_one_call_computes_is_not_many_calls(tmp_path, model, name, number) -> None:
    """A sum of taps, and a row by the matrices of heads: more calls took 1.1 and 1.3 times as long."""
    program = build(make_request(model, "eager", "looped", chunk=1), tmp_path)
    assert program.artifact.operations["compiled"][name] == number
    x = draw_inputs(model, 8, 1, 0)
    expected = run_reference(model, program.request.weights, x).y
    np.testing.assert_allclose(program.open().step({"x": x})["y"], expected, atol=1e-6)


def test_a_network_of_other_layers_has_copies_for_each_layer_with_a_state(tmp_path) -> None:
    """The common suite has loops."""
    request = make_request(RNNOISE, "script", "unrolled", "stateful")
    program = build(request, tmp_path)
    assert program.artifact.lowered == "unrolled 20"
    x = draw_inputs(RNNOISE, 8, 1, 0)
    session = program.open()
    expected = run_reference(RNNOISE, request.weights, x)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, atol=1e-6)
    assert session.get_state().keys() == expected.final.keys()


OTHER_PROCESS = """
import os, sys
from pathlib import Path
from test_torch import COUNTER, build, make_request
import torch._dynamo.utils as dynamo

def show():
    before = set(Path(sys.argv[1]).rglob("*.so"))
    program = build(make_request(COUNTER, "compile", "unrolled"), Path(sys.argv[1]))
    libraries = set(Path(sys.argv[1]).rglob("*.so")) - before
    print(program.cached, program.artifact.lowered, dict(dynamo.counters["inductor"]), len(libraries), flush=True)

child = os.fork()
if child == 0:
    show()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
show()
os._exit(0)
"""


@pytest.mark.proof
def test_a_compiled_program_is_built_in_a_forked_child_and_loaded_by_another_process_without_compiling(
    inductor,
) -> None:
    """As in a worker: its child builds, and it loads."""
    command = [sys.executable, "-c", OTHER_PROCESS, str(inductor)]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parent,
        env={**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    first, second = (line.split() for line in done.stdout.splitlines())
    assert first[:3] == ["False", "unrolled", "4"]
    assert second == ["True", "unrolled", "4", "{}", "0"]


def test_a_long_error_keeps_both_of_its_ends() -> None:
    """torch.export gives its reason first, a C++ compiler gives it last."""
    from rnnbench.backends.torch.inductor import build_error

    assert str(build_error("it", ValueError("short"))) == "it failed: ValueError: short"
    message = str(build_error("it", ValueError("the first reason" + "." * 5000 + "the last reason")))
    assert message.startswith("it failed: ValueError: the first reason.")
    assert message.endswith(".the last reason")
    assert "\n…\n" in message
    assert len(message) < 1500


def test_a_thread_does_not_switch_onednn_on_while_another_runs_without_it(tmp_path: Path) -> None:
    """The first thread's call starts a second one inside. The second call must wait until the first has returned."""
    request = make_request(Model(cell="rnn", input=5, hidden=16), "eager", "fused", "none")
    with closing(build(request, tmp_path)) as program:
        stream = program.open()._stream  # type: ignore[attr-defined]
        assert not stream._as_it_is
        onednn_states = []

        def call(x: Any) -> tuple[Any, Any]:
            if not onednn_states:
                onednn_states.append("first")
                other.start()
                other.join(0.5)
            onednn_states.append(torch._C._get_mkldnn_enabled())
            return x, x

        other = Thread(target=stream._run, args=(call, torch.zeros(4, 1, 16)))
        stream._run(call, torch.zeros(4, 1, 16))
        join(other)
    assert onednn_states == ["first", False, False]
    assert torch._C._get_mkldnn_enabled()


def test_a_call_with_onednn_waits_for_one_without_it(tmp_path: Path) -> None:
    """A call of a chunk in one thread, and in another thread the call of one step that runs the rest of another call.

    Without the switch the chunk would be computed by a loop, with other last digits.
    """
    with closing(build(make_request(LSTM, "eager", "fused", chunk=8), tmp_path)) as program:
        whole, one_step = program.open()._stream, program.tail().open()._stream  # type: ignore[attr-defined]
        assert whole._as_it_is
        assert not one_step._as_it_is
        onednn_states = []

        def of_a_chunk(x: Any) -> tuple[Any, Any, Any]:
            onednn_states.append(torch._C._get_mkldnn_enabled())
            return x, x, x

        def of_one_step(x: Any) -> tuple[Any, Any, Any]:
            other.start()
            other.join(0.5)
            onednn_states.append(torch._C._get_mkldnn_enabled())
            return x, x, x

        other = Thread(target=whole._run, args=(of_a_chunk, torch.zeros(8, 1, 16)))
        one_step._run(of_one_step, torch.zeros(1, 1, 16))
        join(other)
    assert onednn_states == [False, True]


def test_a_stream_may_be_collected_while_a_call_without_onednn_takes_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python collects garbage where objects are allocated: here after one allocation more each time."""
    from rnnbench.backends.torch import fused

    streams: set[ReferenceType[Any]] = set()
    monkeypatch.setattr(fused, "WITH_ONEDNN", streams)
    held = [Lock() for _ in range(30)]
    streams.update(ref(lock, streams.discard) for lock in held)
    thresholds = gc.get_threshold()
    try:
        for further in range(10):
            gc.collect()
            gc.disable()
            circle = [Lock()]
            circle.append(circle)  # type: ignore[arg-type]
            streams.add(ref(circle[0], streams.discard))
            del circle
            gc.enable()
            gc.set_threshold(gc.get_count()[0] + further)
            for lock in fused._taken_locks():
                lock.release()
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()


def test_calls_with_onednn_run_beside_each_other(tmp_path: Path) -> None:
    """And a call without it waits for both."""
    with closing(build(make_request(LSTM, "eager", "fused", chunk=8), tmp_path)) as program:
        streams = [program.open()._stream for _ in range(2)]  # type: ignore[attr-defined]
        one_step = program.tail().open()._stream  # type: ignore[attr-defined]
        both, onednn_states = Barrier(2), []

        def of_a_chunk(x: Any) -> tuple[Any, Any, Any]:
            if both.wait(timeout=PATIENCE_S) == 0:
                third.start()
                third.join(0.5)
            both.wait(timeout=PATIENCE_S)
            onednn_states.append(torch._C._get_mkldnn_enabled())
            return x, x, x

        def of_one_step(x: Any) -> tuple[Any, Any, Any]:
            onednn_states.append(torch._C._get_mkldnn_enabled())
            return x, x, x

        third = Thread(target=one_step._run, args=(of_one_step, torch.zeros(1, 1, 16)))
        others = [Thread(target=stream._run, args=(of_a_chunk, torch.zeros(8, 1, 16))) for stream in streams]
        for other in others:
            other.start()
        join(*others)
        join(third)
    assert onednn_states == [True, True, False]


def test_every_build_of_a_process_leaves_out_the_guards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    filters = []

    def takes_the_filter(program: Any, *, options: dict[str, Any], **others: Any) -> Any:
        filters.append(options.pop("guard_filter_fn", None))  # as torch.compile does
        raise RuntimeError("that is enough")

    monkeypatch.setattr(torch, "compile", takes_the_filter)
    for number in range(2):
        with pytest.raises(BuildError, match="that is enough"):
            build(make_request(LSTM, "compile", "looped"), tmp_path / str(number))
    assert filters == [torch.compiler.skip_all_guards_unsafe] * 2
