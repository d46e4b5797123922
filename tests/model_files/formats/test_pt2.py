"""`.pt2` files: what is in them, what they give in float64, and what is refused. No pickle is ever read."""

from __future__ import annotations

import json
import random
import zipfile

import numpy as np
import pytest
import torch
from pt2_modules import Streaming

from rnnbench.backends.base import Request
from rnnbench.backends.torch import TorchBackend
from rnnbench.cases import Precision, Strategy
from rnnbench.model_files import (
    FileSection,
    ModelFileError,
    check_state,
    describe,
    network_of,
    open_questions,
    oracle_of,
    section_of,
)
from rnnbench.rnn import Arithmetic, RandomRounding, Weights, draw_inputs, draw_state, run_reference


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
    x, start = draw_inputs(network, 5, rows, 0), draw_state(network, rows, 0)
    expected = run_reference(network, Weights(), x, start)
    request = Request("eager", network, Weights(), Strategy("given", "stitched", 1), rows, Precision.of("float32"))
    program = TorchBackend().build(request, tmp_path)
    session = program.open()
    session.set_state(start)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, atol=1e-6)
    np.testing.assert_allclose(session.get_state()["h"], expected.final["h"], atol=1e-6)
    session.set_state(start)
    bound = session.bind([{"x": x[:1]}, {"x": x[1:2]}])
    for step in range(2):
        bound()
        np.testing.assert_allclose(bound.output()["y"], expected.y[step : step + 1], atol=1e-6)


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


def model(change):
    return {"model.json": in_json(lambda value: change(value["graph_module"]))}


WRONG = {
    "pickle": (weights(lambda w: w.update(use_pickle=True)), "is a pickle, which can run any program"),
    "outside": (weights(lambda w: w.update(path_name="../../etc/passwd")), "it is not read"),
    "size": (weights(lambda w: w["tensor_meta"].update(sizes=[{"as_int": 10**9}] * 2)), "calls for"),
    "code": (model(lambda g: g["graph"]["nodes"][0].update(target="os.system")), "it calls os.system"),
    "file": (
        model(lambda g: g["graph"]["nodes"][0].update(target="torch.ops.aten.from_file.default")),
        "it calls torch.ops.aten.from_file.default",
    ),
    "giant": (
        model(lambda g: g["graph"]["tensor_values"]["x"].update(sizes=[{"as_int": 10**12}])),
        "that many elements",
    ),
    "json": ({"model.json": lambda content: content[:-9]}, "it is damaged"),
    "bomb": ({"weight_0": lambda content: bytes(3 << 20)}, "calls for"),
    "deep": ({"model.json": lambda content: b"[" * 100_000}, "it is damaged"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused_is_a_sentence(folder, tmp_path, name):
    entries, told = WRONG[name]
    path = rewritten(folder / "buffer.pt2", tmp_path / "wrong.pt2", entries)
    with pytest.raises(ModelFileError) as caught:
        describe(path)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


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
