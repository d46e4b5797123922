"""Branches and loops in `.pt2` files: their states, what they give, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from quick_tests import for_proof
from torch._higher_order_ops.map import map as mapped
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from rnnbench.backends.base import Request
from rnnbench.backends.torch import TorchBackend
from rnnbench.cases import Precision, Strategy
from rnnbench.model_files import (
    ModelFileError,
    check_state,
    describe,
    network_of,
    oracle_of,
    section_of,
)
from rnnbench.rnn import RandomRounding, Weights, draw_inputs, draw_state, run_reference

STEPS, INPUT, HIDDEN = 4, 3, 4


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.cell = torch.nn.GRUCell(INPUT, HIDDEN)


class Scanned(Network):
    def forward(self, x, h):
        def step(h, x):
            h = self.cell(x, h)
            return h, h * 2

        h, y = scan(step, h, x)
        return y, h


class WithWhile(Network):
    def forward(self, x, h):
        def goes_on(step, h, y):
            return step < x.shape[0]

        def body(step, h, y):
            place = step.reshape(1)
            h = self.cell(x.index_select(0, place)[0], h)
            return step + 1, h, y.index_copy(0, place, h[None] * 2)

        start = torch.zeros((), dtype=torch.int64), h, torch.zeros(x.shape[0], x.shape[1], HIDDEN)
        _, h, y = while_loop(goes_on, body, start)
        return y, h


class WithBranches(Network):
    def forward(self, x, h):
        def louder(x, h):
            return self.cell(x[0], h), h.sin()

        def quieter(x, h):
            return h * 0.5, h.cos()

        h, y = torch.cond(x.sum() > 0, louder, quieter, (x, h))
        return y[None] * 2, h


class Mapped(Network):
    def forward(self, x, h):
        seen = mapped(lambda row: row.tanh() * 2, x)
        return seen, self.cell(seen[-1], h)


class LoopInABranch(Network):
    def forward(self, x, h):
        def louder(x, h):
            return scan(lambda h, x: (self.cell(x, h), h * 2), h, x)

        def quieter(x, h):
            return h * 0.5, torch.zeros(x.shape[0], x.shape[1], HIDDEN)

        h, y = torch.cond(x.sum() > 0, louder, quieter, (x, h))
        return y, h


NETWORKS = (Scanned, WithWhile, WithBranches, Mapped, LoopInABranch)


def exported(network, path, rows=1):
    given = torch.zeros(STEPS, rows, INPUT), torch.zeros(rows, HIDDEN)
    with torch.no_grad():
        program = torch.export.export(network.eval(), given, strict=False)
    torch.export.save(program, path)
    return path


def names(found):
    return [array.name for array in found.arrays if array.role in ("output", "state_out")]


@pytest.mark.first(1)
@pytest.mark.parametrize("network", [*for_proof(Scanned, WithBranches), WithWhile, Mapped, LoopInABranch])
def test_the_oracle_gives_what_torch_gives(tmp_path, network):
    path = exported(network(), tmp_path / "flow.pt2", rows=2)
    y, after = names(describe(path))
    oracle, state, theirs = oracle_of(path), np.zeros((2, HIDDEN)), torch.zeros(2, HIDDEN)
    noise, off = oracle.in_arithmetic(RandomRounding("float32", 0, 0)), []
    for x in np.random.default_rng(0).standard_normal((4, STEPS, 2, INPUT)).astype(np.float32):
        made, rounded = (each.run({"x": x, "h": state}) for each in (oracle, noise))
        with torch.no_grad():
            expected, theirs = network()(torch.from_numpy(x), theirs)
        np.testing.assert_allclose(made[y], expected.numpy(), atol=1e-6)
        np.testing.assert_allclose(made[after], theirs.numpy(), atol=1e-6)
        off.append(np.abs(rounded[y] - made[y]).max())
        state = made[after]
    assert 1e-10 < max(off) < 1e-5


@pytest.mark.parametrize("network", [*for_proof(Scanned, WithWhile), LoopInABranch])
def test_the_state_of_a_loop_is_traced(tmp_path, network):
    path = exported(network(), tmp_path / "flow.pt2")
    found = describe(path)
    assert [(pair.before, pair.after, pair.found) for pair in found.state] == [("h", names(found)[1], "traced")]
    assert found.operators["gru_cell"] == 1
    check = check_state(oracle_of(path), found, section_of(found, path.name))
    assert check.ok
    assert check.lost == ()


@pytest.mark.parametrize(
    ("route", "network"),
    [("eager", LoopInABranch), *for_proof(("aoti", LoopInABranch), *(("eager", one) for one in NETWORKS[:-1]))],
)
def test_torch_runs_it_as_the_oracle(tmp_path, route, network):
    path = exported(network(), tmp_path / "flow.pt2")
    found = describe(path)
    section = replace(section_of(found, path.name), state={"h": names(found)[1]})
    network = network_of(path, section, found)
    x, start = draw_inputs(network, 3, 1, 0), draw_state(network, 1, 0)
    expected = run_reference(network, Weights(), x, start)
    request = Request(route, network, Weights(), Strategy("given", "stitched", 1), 1, Precision.of("float32"))
    session = TorchBackend().build(request, tmp_path).open()
    session.set_state(start)
    for step in range(3):
        np.testing.assert_allclose(session.step({"x": x[step : step + 1]})["y"], expected.y[step : step + 1], atol=1e-6)
    np.testing.assert_allclose(session.get_state()["h"], expected.final["h"], atol=1e-6)


def test_loops_for_ever_are_a_sentence(tmp_path, monkeypatch):
    class ForEver(torch.nn.Module):
        def forward(self, x, h):
            (h,) = while_loop(lambda h: h.sum() > -1, lambda h: (h * 0.5,), (h,))
            return x * 2, h

    path = exported(ForEver(), tmp_path / "ever.pt2")
    monkeypatch.setattr("rnnbench.model_files.limits.PASSES", 100)
    with pytest.raises(ModelFileError, match="its loops take more than 100 passes in one call"):
        oracle_of(path).run({"x": np.zeros((STEPS, 1, INPUT)), "h": np.zeros((1, HIDDEN))})


class InOneAxis(Network):
    """Rows and steps become one axis, whose size the file computes. The number of steps is a factor, too."""

    def forward(self, x, h):
        rows = x.reshape(x.shape[0] * x.shape[1], INPUT)
        y = self.cell(rows, h.repeat(x.shape[0], 1)).reshape(x.shape[0], -1, HIDDEN)
        return y * (x.shape[0] - 1), torch.tanh(y[-1] + h)


def sized(tmp_path):
    path, dims = tmp_path / "sizes.pt2", {0: torch.export.Dim("T", min=2, max=64)}
    given = torch.zeros(STEPS, 1, INPUT), torch.zeros(1, HIDDEN)
    torch.export.save(torch.export.export(InOneAxis().eval(), given, dynamic_shapes=(dims, None), strict=False), path)
    return path


def test_sizes_are_computed(tmp_path):
    path = sized(tmp_path)
    assert any(name.startswith("_operator.") for name in describe(path).operators)
    oracle = oracle_of(path)
    for steps in (3, 6):
        x = np.random.default_rng(0).standard_normal((steps, 1, INPUT)).astype(np.float32)
        made = oracle.run({"x": x, "h": np.ones((1, HIDDEN))})
        with torch.no_grad():
            expected = InOneAxis()(torch.from_numpy(x), torch.ones(1, HIDDEN))
        for ours, theirs in zip(made.values(), expected, strict=True):
            np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-6)


def test_a_size_without_bounds_is_a_sentence(tmp_path, monkeypatch):
    path = sized(tmp_path)
    monkeypatch.setattr("rnnbench.model_files.formats.pt2.sizes._LARGEST", 1)
    with pytest.raises(ModelFileError, match="a size that is larger than any array"):
        oracle_of(path).run({"x": np.zeros((STEPS, 1, INPUT)), "h": np.zeros((1, HIDDEN))})


class WritesInABranch(Network):
    def forward(self, x, h):
        def louder(x, h):
            return h.mul_(2) + x[0, :, :1]

        def quieter(x, h):
            return h * 0.5

        return x * 2, torch.cond(x.sum() > 0, louder, quieter, (x, h))


class WritesInALoop(Network):
    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(1, HIDDEN))

    def forward(self, x, h):
        def body(step, h):
            self.sum.add_(1)
            return step + 1, h * 0.5 + self.sum

        _, h = while_loop(lambda step, h: step < 3, body, (torch.zeros((), dtype=torch.int64), h))
        return x * 2, h


@pytest.mark.first(1)
@pytest.mark.parametrize("network", [WritesInABranch, WritesInALoop])
def test_what_a_branch_or_loop_writes_in_place_is_refused(tmp_path, network):
    path = exported(network(), tmp_path / "writes.pt2")
    with pytest.raises(ModelFileError, match="a branch or the body of a loop writes what it is given in place"):
        describe(path)
