"""`.pt2` files: what is in them, what they give in float64, and what is refused. No pickle is ever read."""

from __future__ import annotations

import json
import random
import zipfile

import numpy as np
import pytest
import torch
from pt2_modules import Ring, Streaming
from typed_streams import assert_as_the_oracle

from rnnbench.backends.base import Request
from rnnbench.backends.torch import TorchBackend
from rnnbench.cases import Precision, Strategy
from rnnbench.model_files import (
    FileSection,
    ModelFileError,
    Pt2Program,
    answered,
    check_state,
    describe,
    network_of,
    open_questions,
    oracle_of,
    section_of,
)
from rnnbench.rnn import Arithmetic, RandomRounding, Weights


class Stitched(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.LSTMCell(3, 4)

    def forward(self, x, h, c):
        h, c = self.cell(x, (h, c))
        return h * 2, h, c


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pt2")
    torch.manual_seed(0)
    zeros, batch = torch.zeros, torch.export.Dim("batch")
    torch.export.save(torch.export.export(Streaming().eval(), (zeros(1, 3),)), folder / "buffer.pt2")
    shapes = ({0: batch},) * 3
    program = torch.export.export(Stitched().eval(), (zeros(2, 3), zeros(2, 4), zeros(2, 4)), dynamic_shapes=shapes)
    torch.export.save(program, folder / "cell.pt2")
    return folder


def test_a_buffer_that_a_call_changes_is_a_state(folder):
    found = describe(folder / "buffer.pt2")
    assert [(pair.before, pair.after, pair.found) for pair in found.state] == [("h", "h_next", "traced")]
    assert [(a.name, a.role, a.shape) for a in found.arrays][:2] == [("x", "input", (1, 3)), ("h", "state_in", (1, 4))]
    assert found.producer.startswith("torch 2")
    assert check_state(oracle_of(folder / "buffer.pt2"), found, section_of(found, "buffer.pt2")).ok


class GivenStates(torch.nn.Module):
    """Two layers of an LSTM with states as arguments, and a cell, called for each step. The order of outputs is odd."""

    def __init__(self):
        super().__init__()
        self.lstm, self.cell = torch.nn.LSTM(3, 4, num_layers=2), torch.nn.LSTMCell(4, 4)

    def forward(self, x, h, c, first, second):
        y, (h, c) = self.lstm(x, (h, c))
        for step in y:
            first, second = self.cell(step, (first, second))
        return y * 2, c, h, second, first


def test_states_that_are_arguments_are_traced(tmp_path):
    """Names and shapes tell nothing here: two states of each shape, given in another order than taken."""
    zeros = torch.zeros
    given = zeros(2, 1, 3), zeros(2, 1, 4), zeros(2, 1, 4), zeros(1, 4), zeros(1, 4)
    torch.export.save(torch.export.export(GivenStates().eval(), given), tmp_path / "given.pt2")
    found = describe(tmp_path / "given.pt2")
    made = [array.name for array in found.arrays if array.role in ("output", "state_out")]
    after = dict(zip(("c", "h", "second", "first"), made[1:], strict=True))
    assert {pair.before: (pair.after, pair.found) for pair in found.state} == {
        name: (after[name], "traced") for name in ("h", "c", "first", "second")
    }
    assert not found.notes
    assert not found.questions


def test_states_that_an_export_has_merged_are_asked(tmp_path):
    """torch.export takes one tensor that is given twice for one value, which is c here, and h is not used."""

    class Merged(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(3, 4)

        def forward(self, x, h, c):
            y, (h, c) = self.lstm(x, (h, c))
            return y, h, c

    zeros = torch.zeros(1, 1, 4)
    torch.export.save(torch.export.export(Merged().eval(), (torch.zeros(2, 1, 3), zeros, zeros)), tmp_path / "one.pt2")
    found = describe(tmp_path / "one.pt2")
    asked = open_questions(section_of(found, "one.pt2"), found, set())
    assert [(one.array, one.key) for one in asked] == [("h", "state"), ("c", "state")]
    assert asked[0].text.startswith(
        "no operator takes it, and c has its shape. torch.export merges inputs that are one"
    )
    section = answered(section_of(found, "one.pt2"), found, ["constants.h=0", "state.c=getitem_2"])
    assert not open_questions(section, found, {"constants.h", "state.c"})


class Profiled(torch.nn.Module):
    def forward(self, x, profile):
        return x[:, :2] * 2, torch.tanh(profile)


def test_an_output_that_is_computed_from_an_input_alone_is_asked_for(tmp_path):
    """As an embedding of a voice's profile, which has a shape of its own."""
    given = torch.zeros(1, 3), torch.zeros(1, 7)
    torch.export.save(torch.export.export(Profiled().eval(), given), tmp_path / "profile.pt2")
    found = describe(tmp_path / "profile.pt2")
    assert found.state == ()
    asked = [question.text for question in found.questions if question.array == "profile"]
    assert "is tanh its next value? It is computed from profile alone" in asked[0]


def test_a_state_that_an_export_has_lost_is_told(tmp_path):
    class Forgets(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = torch.nn.GRU(3, 4)

        def forward(self, x):
            return self.gru(x)[0]

    torch.export.save(torch.export.export(Forgets().eval(), (torch.zeros(2, 1, 3),)), tmp_path / "lost.pt2")
    (told,) = describe(tmp_path / "lost.pt2").notes
    assert told.startswith(
        "1 of its GRU states start from the same value in every call, and their final values reach no"
    )


class InPlace(torch.nn.Module):
    """Streaming whose state is written by `write(h, value)`."""

    def __init__(self, write):
        super().__init__()
        self.cell, self.write = torch.nn.GRUCell(3, 4), write
        self.register_buffer("h", torch.zeros(1, 4))

    def forward(self, x):
        new = self.cell(x, self.h)
        self.write(self.h, new)
        return new * 2


def test_a_buffer_that_begins_elsewhere_than_at_zero_is_told(tmp_path):
    module = InPlace(torch.Tensor.copy_)
    module.h.fill_(0.5)
    torch.export.save(torch.export.export(module, (torch.zeros(1, 3),)), tmp_path / "started.pt2")
    (told,) = describe(tmp_path / "started.pt2").notes
    assert told.startswith("h begins in the file with values that are not zero")


WRITES = {
    "transposed": lambda h, new: h.T.copy_(new.T),
    "narrowed": lambda h, new: h.narrow(1, 0, 4).copy_(new),
    "flattened": lambda h, new: h.flatten().copy_(new[0]),
    "expanded": lambda h, new: h.expand(1, 4).copy_(new),
    "strided": lambda h, new: torch.as_strided(h, (4,), (1,)).copy_(new[0]),
    "same type": lambda h, new: h.to(torch.float32).copy_(new),
    "indexed": lambda h, new: h.index_put_((torch.tensor([0]),), new),
    "several": lambda h, new: torch._foreach_copy_([h], [new]),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_buffer_is_a_state_however_it_is_written(tmp_path, name):
    path, network = tmp_path / "written.pt2", InPlace(WRITES[name]).eval()
    torch.export.save(torch.export.export(network, (torch.zeros(1, 3),), strict=False), path)
    found = describe(path)
    assert [(pair.before, pair.after) for pair in found.state] == [("h", "h_next")]
    oracle, state = oracle_of(path), np.zeros((1, 4))
    for step in np.random.default_rng(0).standard_normal((3, 1, 3)).astype(np.float32):
        made = oracle.run({"x": step, "h": state})
        state = made["h_next"]
        np.testing.assert_allclose(made["mul"], network(torch.from_numpy(step)).detach().numpy(), atol=1e-6)


class WritesInput(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(3, 3)

    def forward(self, x, h):
        h.copy_(self.cell(x, h))
        return h * 2


class WritesParameter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(1, 3), requires_grad=False)

    def forward(self, x):
        self.w.copy_(torch.tanh(x + self.w))
        return self.w * 2


@pytest.mark.parametrize(("module", "inputs"), [(WritesInput, 2), (WritesParameter, 1)])
def test_a_state_in_an_input_or_a_parameter_is_refused(tmp_path, module, inputs):
    program = torch.export.export(module().eval(), (torch.zeros(1, 3),) * inputs, strict=False)
    torch.export.save(program, tmp_path / "lost.pt2")
    with pytest.raises(ModelFileError, match="in place, so a state may be in it"):
        describe(tmp_path / "lost.pt2")


@pytest.mark.parametrize(("kind", "key"), [("user_input", "user_input_name"), ("parameter", "parameter_name")])
def test_a_state_in_an_input_or_a_parameter_is_refused_after_run_decompositions(folder, tmp_path, kind, key):
    def change(graph):
        given = graph["signature"]["output_specs"][0]["user_output"]["arg"]["as_tensor"]
        graph["signature"]["output_specs"][0] = {f"{kind}_mutation": {"arg": given, key: "h"}}

    path = rewritten(folder / "cell.pt2", tmp_path / "lost.pt2", model(change))
    with pytest.raises(ModelFileError, match="'h' in place, so a state may be in it"):
        describe(path)


class GivesItsState(Streaming):
    def forward(self, x):
        self.h.copy_(self.cell(x, self.h))
        return self.h, self.h[:, :2], x


@pytest.mark.parametrize("decomposed", [False, True])
def test_outputs_have_memory_of_their_own(tmp_path, decomposed):
    program = torch.export.export(GivesItsState().eval(), (torch.zeros(1, 3),), strict=False)
    torch.export.save(program.run_decompositions() if decomposed else program, tmp_path / "given.pt2")
    called, given = Pt2Program(tmp_path / "given.pt2"), {"x": torch.ones(1, 3), "h": torch.zeros(1, 4)}
    with torch.no_grad():
        made = called(given)
    state = made.pop("h_next")
    for array in made.values():
        array.fill_(7.0)
    assert (given["x"] == 1).all()
    assert (state != 7).all()


class Windowed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(8))
        self.register_buffer("turned", torch.arange(6.0).reshape(2, 3).T)
        self.register_buffer("part", torch.arange(10.0)[4:8])

    def forward(self, x):
        return x * self.window, self.turned + 0.0, self.part * 2.0


def test_a_weight_may_be_a_part_of_what_is_stored(tmp_path):
    program = torch.export.export(Windowed(), (torch.zeros(1, 8),))
    torch.export.save(program, tmp_path / "window.pt2")
    oracle = oracle_of(tmp_path / "window.pt2")
    np.testing.assert_array_equal(dict(oracle.weights())["b_part"], [4, 5, 6, 7])
    made = oracle.run({"x": np.ones((1, 8))})
    for got, expected in zip(made.values(), Windowed()(torch.ones(1, 8)), strict=True):
        np.testing.assert_allclose(got, expected.numpy(), atol=1e-7)


def test_the_oracle_gives_what_torch_gives(folder):
    network = torch.export.load(folder / "buffer.pt2").module()  # of this test's own file
    x, oracle = np.random.default_rng(0).standard_normal((4, 1, 3)).astype(np.float32), oracle_of(folder / "buffer.pt2")
    state = np.zeros((1, 4))
    for step in x:
        made = oracle.run({"x": step, "h": state})
        state = made["h_next"]
        assert made["y" if "y" in made else next(iter(made))].dtype == np.float64
        expected = network(torch.from_numpy(step)).detach().numpy()
        np.testing.assert_allclose(made[next(iter(made))], expected, atol=1e-6)


def test_rows_in_another_order_are_checked(folder):
    """The check gives arrays that go backward in memory."""
    path = folder / "cell.pt2"
    found = describe(path)
    answers = ("time=null", "batch=0")
    section = answered(section_of(found, path.name), found, answers)
    assert section.batch == 0
    assert check_state(oracle_of(path), found, section).ok


def test_roundings_are_those_of_the_arithmetic(folder):
    given = {"x": np.ones((5, 3)), "h": np.zeros((5, 4)), "c": np.ones((5, 4))}
    oracle = oracle_of(folder / "cell.pt2")
    exact, noisy = oracle.run(given), oracle.in_arithmetic(RandomRounding("float32", 0, 0)).run(given)
    again = oracle.in_arithmetic(Arithmetic()).run(given)
    for name, array in exact.items():
        np.testing.assert_array_equal(again[name], array)
        assert 1e-9 < np.abs(noisy[name] - array).max() < 1e-5


@pytest.mark.parametrize(("name", "rows"), [("buffer", 1), ("cell", 3)])
def test_torch_runs_it_as_the_oracle(folder, tmp_path, name, rows):
    path = folder / f"{name}.pt2"
    description = describe(path)
    section = section_of(description, path.name)
    if name == "cell":
        assert {question.key for question in open_questions(section, description, set())} >= {"batch"}
        outputs = [array.name for array in description.arrays if array.role in ("output", "state_out")]
        section = FileSection(path.name, {"h": outputs[1], "c": outputs[2]}, batch=0)
    network = network_of(path, section, description)
    request = Request("eager", network, Weights(), Strategy("given", "stitched", 1), rows, Precision.of("float32"))
    assert_as_the_oracle(TorchBackend().build(request, tmp_path), request)


def rewritten(source, target, entries=(), **changes):
    """A copy of the file in which some entries, by the end of their names, have other content."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            content = old.read(entry)
            for end, change in dict(entries).items():
                if entry.filename.endswith(end):
                    content = change(content)
            new.writestr(entry.filename, content)
    return target


def in_json(change):
    def changed(content):
        value = json.loads(content)
        change(value)
        return json.dumps(value).encode()

    return changed


def weights(change):
    return {"model_weights_config.json": in_json(lambda value: change(value["config"]["cell.weight_ih"]))}


def calling(target):
    return model(lambda g: g["graph"]["nodes"][0].update(target=target))


def model(change):
    return {"model.json": in_json(lambda value: change(value["graph_module"]))}


WRONG = {
    "pickle": (weights(lambda w: w.update(use_pickle=True)), "is a pickle, which can run any program"),
    "outside": (weights(lambda w: w.update(path_name="../../etc/passwd")), "it is not read"),
    "size": (weights(lambda w: w["tensor_meta"].update(sizes=[{"as_int": 10**9}] * 2)), "call for"),
    "repeated": (
        weights(lambda w: w["tensor_meta"].update(sizes=[{"as_int": 10**4}] * 2, strides=[{"as_int": 0}] * 2)),
        "call for",
    ),
    "beyond": (weights(lambda w: w["tensor_meta"].update(storage_offset={"as_int": 10**6})), "call for"),
    "code": (calling("os.system"), "it calls os.system"),
    "file": (calling("torch.ops.aten.from_file.default"), "it calls torch.ops.aten.from_file.default"),
    "loop": (calling("torch.ops.higher_order.while_loop"), "its while_loop takes other graphs"),
    "other part": (calling("torch.ops.higher_order.invoke_subgraph"), "export the network without it"),
    "quantised": (
        calling("torch.ops.quantized_decomposed.dequantize_per_channel.default"),
        "save the network as it was before",
    ),
    "mapped": (calling("torch._functorch.predispatch.lazy_load_decompositions"), "after run_decompositions()"),
    "giant": (
        model(lambda g: g["graph"]["tensor_values"]["x"].update(sizes=[{"as_int": 10**12}])),
        "that many elements",
    ),
    "axes": (
        model(lambda g: g["graph"]["tensor_values"]["x"].update(sizes=[{"as_int": 1}] * 500)),
        "x has 500 axes",
    ),
    "json": ({"model.json": lambda content: content[:-9]}, "model.json is damaged: it is no JSON at line 1"),
    "deep": ({"model.json": lambda content: b"[" * 100_000}, "model.json is damaged: its parts are inside each other"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused_is_a_sentence(folder, tmp_path, name):
    entries, told = WRONG[name]
    path = rewritten(folder / "buffer.pt2", tmp_path / "wrong.pt2", entries)
    with pytest.raises(ModelFileError) as caught:
        describe(path)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_unpacks_to_too_much_is_refused(folder, tmp_path, monkeypatch):
    path = rewritten(folder / "buffer.pt2", tmp_path / "bomb.pt2", {"weight_0": lambda content: bytes(3 << 20)})
    monkeypatch.setattr("rnnbench.model_files.limits.WEIGHT_BYTES", 1 << 20)
    with pytest.raises(ModelFileError, match="unpacks to more than"):
        describe(path)


def test_an_expression_in_a_size_is_not_evaluated(folder, tmp_path):
    def change(graph):
        expression = {"as_expr": {"expr_str": "__import__('os').abort()", "hint": None}}
        graph["graph"]["tensor_values"]["x"]["sizes"][0] = expression

    path = rewritten(folder / "buffer.pt2", tmp_path / "sizes.pt2", model(change))
    assert describe(path).arrays[0].shape == (None, 3)


def test_damaged_bytes_never_raise_anything_else(folder, tmp_path):
    good, draw, path, refused = (folder / "buffer.pt2").read_bytes(), random.Random(0), tmp_path / "damaged.pt2", 0
    for _ in range(100):
        data = bytearray(good[: draw.randrange(8, len(good) + 1)] if draw.random() < 0.3 else good)
        for _ in range(draw.randrange(1, 20)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(data)
        try:
            describe(path)
        except ModelFileError:
            refused += 1
    assert refused > 20


def test_a_cast_to_a_narrower_type_rounds(tmp_path):
    class Half(torch.nn.Module):
        def forward(self, x):
            return x.half().float()

    torch.export.save(torch.export.export(Half(), (torch.zeros(1, 3),)), tmp_path / "half.pt2")
    oracle, x = oracle_of(tmp_path / "half.pt2"), np.full((1, 3), 0.1)
    (exact,) = oracle.run({"x": x}).values()
    np.testing.assert_array_equal(exact, x)
    (noisy,) = oracle.in_arithmetic(RandomRounding("float32", 0, 0)).run({"x": x}).values()
    assert 1e-6 < np.abs(noisy - x).max() < 1e-4


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("float16", 1e-5, 1e-2), ("bfloat16", 1e-4, 1e-1), ("float64", 1e-18, 1e-14)]
)
def test_roundings_are_as_fine_as_the_file_computes(tmp_path, dtype, low, high):
    torch.manual_seed(0)
    module, path = Streaming().to(getattr(torch, dtype)).eval(), tmp_path / "streaming.pt2"
    torch.export.save(torch.export.export(module, (torch.zeros(1, 3, dtype=getattr(torch, dtype)),)), path)
    found, oracle = describe(path), oracle_of(path)
    assert {array.dtype for array in found.arrays} == {dtype}
    assert found.weight_bytes == 122 * {"float64": 8}.get(dtype, 2)
    given = {"x": np.ones((1, 3)), "h": np.full((1, 4), 0.5)}
    widest = "float64" if dtype == "float64" else "float32"
    exact, noisy = (oracle.in_arithmetic(a).run(given) for a in (Arithmetic(), RandomRounding(widest, 0, 0)))
    for name, array in exact.items():
        assert low < np.abs(noisy[name] - array).max() < high
    with torch.no_grad():
        y = module.double()(torch.ones(1, 3, dtype=torch.float64))
    zeros = oracle.run({"x": np.ones((1, 3)), "h": np.zeros((1, 4))})
    np.testing.assert_allclose(zeros[found.arrays[2].name], y.numpy(), rtol=1e-12)


class Autocast(torch.nn.Module):
    """A product, an activation and a sum of both types under autocast, one region in the other."""

    def __init__(self):
        super().__init__()
        self.dense = torch.nn.Linear(3, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = torch.relu(self.dense(x))
            with torch.autocast("cpu", enabled=False):
                z = self.dense(x)
            return torch.cat([z, y], 1) + z.repeat(1, 2)


class WithoutGradient(torch.nn.Module):
    """Its state is written in a region of the graph."""

    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(3, 4)
        self.register_buffer("h", torch.zeros(1, 4))

    @torch.no_grad()
    def forward(self, x):
        self.h.copy_(self.cell(x, self.h))
        return self.h * 2


class CellUnderAutocast(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(3, 4)

    def forward(self, x, h):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.cell(x, h)


@pytest.mark.first(1)
@pytest.mark.parametrize("written_out", [False, True])
def test_what_is_under_autocast_is_cast_as_torch_does(tmp_path, written_out):
    torch.manual_seed(0)
    program, path, x = (
        torch.export.export(Autocast().eval(), (torch.zeros(1, 3),)),
        tmp_path / "a.pt2",
        torch.rand(1, 3),
    )
    torch.export.save(program.run_decompositions() if written_out else program, path)
    (made,) = Pt2Program(path)({"x": x}).values()
    theirs = program.module()(x)
    assert made.dtype == theirs.dtype == torch.float32
    assert torch.equal(made, theirs)
    (exact,), (noisy,) = (
        oracle_of(path).in_arithmetic(each).run({"x": x.numpy()}).values()
        for each in (Arithmetic(), RandomRounding("float32", 0, 0))
    )
    assert np.abs(theirs.detach().numpy() - exact).max() < 1e-2
    assert 1e-4 < np.abs(noisy - exact)[:, 4:].max() < 1e-1
    assert np.abs(noisy - exact)[:, :4].max() < 1e-6


def test_a_state_that_is_written_without_gradients_is_a_state(tmp_path):
    module, path = WithoutGradient().eval(), tmp_path / "a.pt2"
    torch.export.save(torch.export.export(module, (torch.zeros(1, 3),)), path)
    found, oracle = describe(path), oracle_of(path)
    assert [(pair.before, pair.after) for pair in found.state] == [("h", "h_next")]
    assert check_state(oracle, found, section_of(found, path.name)).ok
    x, h = np.ones((1, 3)), np.full((1, 4), 0.5)
    with torch.no_grad():
        expected = module.cell.double()(*map(torch.from_numpy, (x, h))).numpy()
    np.testing.assert_allclose(oracle.run({"x": x, "h": h})["h_next"], expected, rtol=1e-12)


def test_a_cell_under_autocast_is_refused(tmp_path):
    """Torch casts inside it, and drops these casts when it writes the cell out (run_decompositions, 2.13)."""
    path, given = tmp_path / "a.pt2", (torch.zeros(1, 3), torch.zeros(1, 4))
    program = torch.export.export(CellUnderAutocast().eval(), given)
    torch.export.save(program, path)
    with pytest.raises(ModelFileError, match=r"calls gru_cell under torch\.autocast.*; export it without autocast"):
        describe(path)


def test_a_share_of_whole_numbers_is_computed_in_float64(tmp_path):
    """Torch gives it in its default type."""

    class Share(torch.nn.Module):
        def forward(self, x, count):
            return x * (count / 3)

    given = torch.zeros(1, 3), torch.zeros(1, dtype=torch.int64)
    torch.export.save(torch.export.export(Share(), given), tmp_path / "share.pt2")
    (made,) = oracle_of(tmp_path / "share.pt2").run({"x": np.ones((1, 3)), "count": np.array([1])}).values()
    np.testing.assert_array_equal(made, np.full((1, 3), 1 / 3))
    assert torch.get_default_dtype() == torch.float32


def test_a_step_counter_and_a_position_are_states_of_whole_numbers(tmp_path):
    torch.export.save(torch.export.export(Ring().eval(), (torch.zeros(1, 3),)), tmp_path / "ring.pt2")
    found, oracle = describe(tmp_path / "ring.pt2"), oracle_of(tmp_path / "ring.pt2")
    assert {array.name: array.dtype for array in found.of_role("state_in")} == {
        "kept": "float32",
        "position": "int64",
        "count": "int32",
    }
    given = {"x": np.ones((1, 3)), "kept": np.zeros((4, 3)), "position": np.array([3]), "count": np.array(6, np.int32)}
    made = oracle.run(given)
    assert (made["position_next"], made["count_next"]) == (0, 7)
    np.testing.assert_allclose(made["sub"], np.full((1, 3), -1 / 7), rtol=1e-15)


@pytest.mark.parametrize("training", [False, True])
def test_a_dropout_draws_in_training_mode_alone(tmp_path, training):
    """Torch makes the operator that draws while it runs: the file names a dropout in both modes."""
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5)).train(training)
    torch.export.save(torch.export.export(module, (torch.zeros(1, 3),)), tmp_path / "dropout.pt2")
    oracle = oracle_of(tmp_path / "dropout.pt2")
    given = {"input": np.ones((1, 3))}
    if not training:
        assert next(iter(oracle.run(given).values())).shape == (1, 4)
        return
    with pytest.raises(ModelFileError, match="draws random numbers; export the network for inference"):
        oracle.run(given)


class Layers(torch.nn.Module):
    """Batch first, with a flag that makes the state zero."""

    def __init__(self):
        super().__init__()
        self.gru, self.out = torch.nn.GRU(3, 4, batch_first=True), torch.nn.Linear(4, 2)

    def forward(self, x, h, reset):
        y, h = self.gru(x, torch.where(reset, torch.zeros_like(h), h))
        return self.out(y), h


def test_axes_are_those_of_its_recurrent_operators_and_a_flag_does_not_hide_a_state(tmp_path):
    path, batch = tmp_path / "layers.pt2", torch.export.Dim("batch")
    given = torch.zeros(2, 5, 3), torch.zeros(1, 2, 4), torch.zeros(1, 2, 1, dtype=torch.bool)
    program = torch.export.export(Layers().eval(), given, dynamic_shapes=({0: batch}, {1: batch}, {1: batch}))
    torch.export.save(program, path)
    found = describe(path)
    assert [(a.name, a.time, a.batch) for a in found.arrays if a.name in ("x", "getitem_1")] == [
        ("x", 1, 0),
        ("getitem_1", None, 1),
    ]
    assert [(pair.before, pair.found) for pair in found.state] == [("h", "traced")]
    assert not [note for note in found.notes if "the export has lost it" in note]


class Masked(torch.nn.Module):
    """Attention over four kept rows, those that are not there yet masked by minus infinity."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(1, 4, 3))
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.rows.index_copy_(1, self.position % 4, x)
        there = torch.arange(4)[None, None] <= self.position
        shares = (x @ self.rows.transpose(1, 2)).masked_fill(~there, -torch.inf).softmax(-1)
        self.position.add_(1)
        return torch.nan_to_num(shares @ self.rows, posinf=torch.inf)


def test_infinities_are_read(tmp_path):
    """JSON has no infinity: the file has a text in its place."""
    module = Masked().eval()
    torch.export.save(torch.export.export(module, (torch.zeros(1, 1, 3),)), tmp_path / "masked.pt2")
    oracle = oracle_of(tmp_path / "masked.pt2")
    state = {"rows": np.zeros((1, 4, 3)), "position": np.zeros(1, np.int64)}
    for x in np.random.default_rng(0).standard_normal((3, 1, 1, 3)):
        made = oracle.run({"x": x, **state})
        state = {name: made[f"{name}_next"] for name in state}
        expected = module(torch.tensor(x, dtype=torch.float32)).numpy()
        np.testing.assert_allclose(next(iter(made.values())), expected, atol=1e-6)


class GivingItsState(torch.nn.Module):
    """h is y and the next state, and a number that is the same in every call is an argument."""

    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(3, 4)

    def forward(self, x, h, scale: float = 2.0):
        h = self.cell(x * scale, h)
        return h, h


def test_a_value_may_be_two_outputs_and_a_number_an_argument(tmp_path):
    """Each output has memory of its own: who writes y does not change the state."""
    given = torch.ones(1, 3), torch.ones(1, 4)
    torch.export.save(torch.export.export(GivingItsState().eval(), (*given, 2.0)), tmp_path / "cell.pt2")
    found = describe(tmp_path / "cell.pt2")
    assert [(array.name, array.role) for array in found.arrays] == [
        *(("x", "input"), ("h", "state_in"), ("gru_cell", "state_out"), ("gru_cell_1", "output"))
    ]
    assert check_state(oracle_of(tmp_path / "cell.pt2"), found, section_of(found, "cell.pt2")).ok
    made = Pt2Program(tmp_path / "cell.pt2")({"x": given[0], "h": given[1]})
    assert torch.equal(made["gru_cell"], made["gru_cell_1"])
    assert made["gru_cell"].data_ptr() != made["gru_cell_1"].data_ptr()


class Expanded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("share", torch.tensor([0.5]).expand(4))

    def forward(self, x):
        return x * self.share


def test_an_expanded_weight_repeats_what_is_stored(tmp_path):
    torch.export.save(torch.export.export(Expanded(), (torch.zeros(1, 4),)), tmp_path / "expanded.pt2")
    (made,) = oracle_of(tmp_path / "expanded.pt2").run({"x": np.ones((1, 4))}).values()
    np.testing.assert_array_equal(made, np.full((1, 4), 0.5))


class SharedMemory(torch.nn.Module):
    """`both` changes in each call, and `first` is a part of it."""

    def __init__(self, taken):
        super().__init__()
        self.register_buffer("both", torch.zeros(2, 1, 3))
        self.register_buffer("first", self.both[0])
        self.taken = taken

    def forward(self, x):
        self.both.mul_(0.5)
        self.both.add_(x)
        return x + (self.first if self.taken else self.both[0])


@pytest.mark.parametrize("taken", [False, True])
def test_a_part_of_a_state_that_is_a_buffer_too_is_refused(tmp_path, taken):
    """torch.export writes it as another buffer, in the same memory: it would stay as it was."""
    torch.export.save(torch.export.export(SharedMemory(taken), (torch.zeros(1, 3),)), tmp_path / "shared.pt2")
    if not taken:
        assert [pair.before for pair in describe(tmp_path / "shared.pt2").state] == ["both"]
        return
    with pytest.raises(ModelFileError, match="changes its buffer 'both', and takes 'first', which lies in the same"):
        describe(tmp_path / "shared.pt2")


@pytest.mark.parametrize("training", [False, True])
def test_a_normalisation_in_training_mode_is_refused(tmp_path, training):
    """It changes its running means, which torch does not declare."""
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).train(training)
    torch.export.save(torch.export.export(module, (torch.zeros(2, 3),)), tmp_path / "norm.pt2")
    if not training:
        assert not describe(tmp_path / "norm.pt2").state
        return
    with pytest.raises(ModelFileError, match="batch_norm is in training mode"):
        describe(tmp_path / "norm.pt2")
