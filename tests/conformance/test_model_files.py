"""Checks of users' model files keep to what a file takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_files as files
import pytest
import stablehlo_files
from harness_trials import make_trial
from honest_adapter import HonestProgram, HonestSession
from onnx import TensorProto, helper, numpy_helper
from quick_tests import for_proof
from verdicts import failures, verdicts

from rnnbench.backends import request_of
from rnnbench.conformance import (
    ReferenceTrajectories,
    arrays,
    contents,
    edge_cases,
    exchanged_states,
    refusal,
    suite,
    threads,
    values_and_states,
)
from rnnbench.conformance.timed_path import TimedPath
from rnnbench.model_files import FileSection, UserInputs, answered, describe, network_of, section_of
from rnnbench.rnn import rounded
from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.reference import run_in

pytestmark = pytest.mark.usefixtures("few_turns")


class InRange(HonestSession):
    """A table of tokens 5 to 9 alone, which a runtime may read without looking at bounds."""

    def compute(self, x):
        assert x.min() >= 5
        assert x.max() <= 9
        return super().compute(x)


def test_whole_numbers_stay_in_their_range_in_every_row(tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "CHECKS", (*edge_cases.EDGE_CASES, *threads.THREADS, *refusal.REFUSAL))
    path = files.saved(files.embedding(), tmp_path / "tokens.onnx")
    section = FileSection(path.name, {"h": "next_h"}, batch=0)
    model = network_of(path, section, describe(path), UserInputs(ranges={"tokens": (5, 9)}))
    trial = replace(make_trial(time="given", chunk=1), model=model, batch=3)
    assert not failures(trial, InRange, tmp_path)


class FileSession(HonestSession):
    """Computes in float32, or float64 where the file does, and gives arrays of the types of the signature."""

    def compute(self, x):
        arithmetic = Arithmetic(self.model.arithmetic_of(self.dtype))
        run = run_in(arithmetic, self.model, self.weights, x, self.state if self._streams else None)
        self.state = self.kept({s.name: run.final[s.name].astype(s.dtype) for s in self._states})
        return run.y.astype(x.dtype)

    def kept(self, state):
        return state


class StateInFloat16(FileSession):
    def kept(self, state):
        return {n: a.astype(np.float16).astype(a.dtype) if a.dtype.kind == "f" else a for n, a in state.items()}


class StateInBfloat16(FileSession):
    def kept(self, state):
        return {n: rounded(a, "bfloat16") if a.dtype.kind == "f" else a for n, a in state.items()}


class StateOfFloat32(FileSession):
    """Gives states of float32 where the file has another type."""

    def _read_state(self):
        return {name: array.astype(np.float32) for name, array in self.state.items()}


class OneBehind(FileSession):
    """Whole numbers that stay where they are at every eighth call."""

    calls = 0

    def kept(self, state):
        self.calls += 1
        stays = self.calls % 8 == 0
        return {n: self.state[n] if stays and a.dtype.kind != "f" else a for n, a in state.items()}


class ClipsAPositionThatIsSet(FileSession):
    """A table of three places, of the four that there are."""

    def _write_state(self, state):
        super()._write_state({**state, "step": np.minimum(state["step"], 2)})


class FirstCallHasNoConstant(FileSession):
    """A constant is put into its place after the first call of a session."""

    calls = 0

    def compute(self, x):
        given, self.calls = self.model, self.calls + 1
        if self.calls == 1:
            without = tuple((name, 0.0, dtype) for name, _, dtype in given.constants)
            self.model = given.model_copy(update={"constants": without})
        y = super().compute(x)
        self.model = given
        return y


@pytest.fixture
def on_states(monkeypatch):
    """The checks of values, states and signatures alone."""
    signature = tuple(check for check in arrays.ARRAYS if check.name == "signature")
    checks = (*values_and_states.VALUES_AND_STATES, *signature, *exchanged_states.EXCHANGED_STATES)
    monkeypatch.setattr(suite, "CHECKS", checks)


def file_trial(proto, tmp_path, chunk=4, **said):
    path = files.saved(proto, tmp_path / "mine.onnx")
    description = describe(path)
    model = network_of(path, FileSection(path.name, **said), description)
    return replace(make_trial(time="given", chunk=chunk), model=model, dtype=model.dtype, batch=2)


def gru(kind, tmp_path, chunk=4):
    proto = files.typed(files.recurrent("GRU"), kind)
    return file_trial(proto, tmp_path, chunk, state={"h0": "hn"}, time=0, batch=1)


def numbered(kind, tmp_path):
    said = {"state": {"buffer": "next_buffer", "step": "next_step"}, "batch": 0}
    return file_trial(files.ring_buffer(kind), tmp_path, chunk=1, **said)


@pytest.mark.proof
def test_a_program_in_float32_of_a_file_in_float16_passes_every_check(tmp_path):
    results = verdicts(gru(TensorProto.FLOAT16, tmp_path), FileSession, tmp_path)
    assert not {name: result.detail for name, result in results.items() if result.verdict == "fail"}
    assert results["values"].verdict == results["start"].verdict == "pass"


@pytest.mark.proof
def test_a_program_in_float64_of_a_file_in_float64_passes(tmp_path, on_states):
    results = verdicts(gru(TensorProto.DOUBLE, tmp_path), FileSession, tmp_path)
    assert {result.verdict for result in results.values()} == {"pass"}


@pytest.mark.proof
def test_a_state_of_whole_numbers_passes_every_check(tmp_path):
    results = verdicts(numbered(TensorProto.INT64, tmp_path), FileSession, tmp_path)
    assert not {name: result.detail for name, result in results.items() if result.verdict == "fail"}
    assert {results[name].verdict for name in ("values", "state", "start", "exchange", "magnitudes")} == {"pass"}


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.BOOL])
def test_whole_numbers_have_no_negative_zero(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(suite, "CHECKS", contents.CONTENTS)
    assert verdicts(numbered(kind, tmp_path), FileSession, tmp_path)["contents"].verdict == "pass"


@pytest.mark.proof
@pytest.mark.parametrize("kind", [*for_proof(TensorProto.INT8, TensorProto.UINT8), TensorProto.BOOL])
def test_a_state_of_few_bits_passes(tmp_path, on_states, kind):
    results = verdicts(numbered(kind, tmp_path), FileSession, tmp_path)
    assert {result.verdict for result in results.values()} == {"pass"}


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, *for_proof(TensorProto.DOUBLE)])
def test_a_state_that_is_rounded_to_float16_is_found(tmp_path, on_states, kind):
    assert {"values", "state", "start", "bound"} <= failures(gru(kind, tmp_path), StateInFloat16, tmp_path).keys()


@pytest.mark.proof
def test_a_state_of_float32_that_is_rounded_to_the_float16_of_x_and_y_is_found(tmp_path, on_states):
    """The tolerance of such a file does not show it."""
    trial = replace(file_trial(files.wide_state(), tmp_path, chunk=1, state={"h": "next_h"}), batch=1)
    assert trial.dtype == "float16"
    assert not failures(trial, FileSession, tmp_path)
    assert "h is float32, and all its numbers are of float16" in failures(trial, StateInFloat16, tmp_path)["state"]


def module_trial(name, tmp_path, types=()):
    path = stablehlo_files.saved(name, tmp_path, types)
    found = describe(path)
    section = answered(section_of(found, path.name), found, stablehlo_files.ANSWERS[name])
    model = network_of(path, section, found)
    return replace(make_trial(time="given", chunk=1), model=model, dtype=model.dtype, batch=1)


@pytest.mark.proof
@pytest.mark.parametrize("name", ["kept", *for_proof("ring")])
def test_a_state_of_float32_that_is_rounded_to_bfloat16_is_found(tmp_path, on_states, name):
    trial = module_trial(name, tmp_path)
    assert not failures(trial, FileSession, tmp_path)
    assert {"values", "state"} <= failures(trial, StateInBfloat16, tmp_path).keys()


@pytest.mark.proof
def test_a_state_of_float32_that_is_rounded_to_the_bfloat16_of_x_and_y_is_found(tmp_path, on_states):
    trial = module_trial("wide", tmp_path)
    assert trial.dtype == "bfloat16"
    assert not failures(trial, FileSession, tmp_path)
    assert "h is float32, and all its numbers are of bfloat16" in failures(trial, StateInBfloat16, tmp_path)["state"]


@pytest.mark.proof
@pytest.mark.parametrize("element", ["bf16", *for_proof("f16")])
def test_a_program_in_float32_of_a_module_in_a_narrower_type_passes_every_check(tmp_path, element):
    results = verdicts(module_trial("kept", tmp_path, {"f32": element}), FileSession, tmp_path)
    assert not {name: result.detail for name, result in results.items() if result.verdict == "fail"}
    assert results["values"].verdict == results["start"].verdict == "pass"


def test_a_state_of_another_type_than_the_files_is_found(tmp_path, on_states):
    failed = failures(gru(TensorProto.FLOAT16, tmp_path, chunk=1), StateOfFloat32, tmp_path)
    assert "expected float16 [1, 2, 4], got float32 [1, 2, 4]" in failed["signature"]


def test_a_whole_number_that_is_one_behind_is_found(tmp_path, on_states):
    failed = failures(numbered(TensorProto.INT64, tmp_path), OneBehind, tmp_path)
    assert "state step" in failed["values"]


@pytest.mark.proof
def test_a_whole_number_that_is_clipped_where_it_is_set_is_found(tmp_path, on_states):
    failed = failures(numbered(TensorProto.INT64, tmp_path), ClipsAPositionThatIsSet, tmp_path)
    assert {"start", "state", "bound"} <= failed.keys()


@pytest.mark.proof
def test_a_constant_that_comes_a_call_late_is_found(tmp_path, on_states):
    trial = file_trial(files.odd(), tmp_path, chunk=1, state={"s": "next_s"}, constants={"gain": 0.75}, batch=0)
    assert not failures(trial, FileSession, tmp_path)
    assert {"chunks", "start", "bound"} <= failures(trial, FirstCallHasNoConstant, tmp_path).keys()


def test_timed_calls_that_began_in_the_middle_of_the_ring_keep_their_position(tmp_path):
    """A position goes round with the ring, and depends on the chunk at which it began."""
    trial = numbered(TensorProto.INT64, tmp_path)
    reference = ReferenceTrajectories(trial, tmp_path)
    program = HonestProgram(request_of(trial, reference.weights), "digest", True, lambda: program)
    timed = TimedPath(FileSession(program), reference)
    for calls in (3, 50):
        timed.start()
        for _ in range(calls):
            timed.bound()
        timed.called(calls)
    assert timed.verify().verdict == "pass"


BESIDE = {
    "another output": ("large", [1e6] * 4, slice(0, 4)),
    "another column": ("y", [1e3, 1e-4, 1.0, 1.0], slice(1, 2)),
}
"""An output that is larger than y, or y itself: what it is multiplied by, and a column of small numbers."""


def beside_large_numbers(name, tmp_path):
    """A GRU whose y, or another output, has numbers that are very much larger than others."""
    output, factors, _ = BESIDE[name]
    proto = files.recurrent("GRU")
    proto.graph.initializer.append(files.weight("factors", np.array(factors, np.float32)))
    if output == "y":
        proto.graph.node[-1].output[0] = "plain"
    else:
        proto.graph.output.insert(1, files.arrays((output, ("T", "B", 4)))[0])
    proto.graph.node.append(helper.make_node("Mul", [proto.graph.node[-1].output[0], "factors"], [output]))
    return file_trial(proto, tmp_path, state={"h0": "hn"}, time=0, batch=1)


@pytest.mark.parametrize("name", ["another output", *for_proof("another column")])
def test_large_numbers_hide_no_error_of_small_ones_beside_them(tmp_path, on_states, name):
    small = BESIDE[name][2]

    class Off(FileSession):
        def compute(self, x):
            y = super().compute(x)
            y[..., small] *= np.float32(1.001)
            return y

    trial = beside_large_numbers(name, tmp_path)
    assert not failures(trial, FileSession, tmp_path)
    assert {"values", "chunks", "start", "bound"} <= failures(trial, Off, tmp_path).keys()


@pytest.mark.proof
def test_numbers_beyond_the_range_of_the_dtype_hide_no_error_of_others(tmp_path, on_states):
    """Another output of the file, which no state depends on, is infinite in float16."""
    proto = files.recurrent("GRU")
    proto.graph.initializer.append(files.weight("factors", np.array([6e4] * 4, np.float32)))
    proto.graph.output.insert(1, files.arrays(("large", ("T", "B", 4)))[0])
    for one, product in ((proto.graph.node[-1].output[0], "larger"), ("larger", "large")):
        proto.graph.node.append(helper.make_node("Mul", [one, "factors"], [product]))
    trial = file_trial(files.typed(proto, TensorProto.FLOAT16), tmp_path, state={"h0": "hn"}, time=0, batch=1)

    class Off(FileSession):
        def compute(self, x):
            y = super().compute(x)
            y[..., :4] *= np.float16(1.25)
            return y

    honest = verdicts(trial, FileSession, tmp_path)
    assert not {name: result.detail for name, result in honest.items() if result.verdict == "fail"}
    assert "columns 4-7, on" in honest["values"].detail
    assert {"values", "chunks", "start", "bound"} <= failures(trial, Off, tmp_path).keys()


@pytest.mark.proof
@pytest.mark.parametrize("name", BESIDE)
def test_small_numbers_beside_large_ones_pass_every_check(tmp_path, name):
    assert not failures(beside_large_numbers(name, tmp_path), FileSession, tmp_path)


def spoiled(proto, name, value):
    """The file with one number of a weight replaced."""
    weight = next(each for each in proto.graph.initializer if each.name == name)
    numbers = numpy_helper.to_array(weight).copy()
    numbers.flat[5] = value
    weight.CopyFrom(numpy_helper.from_array(numbers, name))
    return proto


@pytest.mark.parametrize("name", ["W", "R"])
def test_a_file_with_nan_in_a_weight_is_compared_with_nothing_and_the_weight_is_named(tmp_path, name):
    trial = file_trial(spoiled(files.recurrent("GRU"), name, np.nan), tmp_path, state={"h0": "hn"}, time=0, batch=1)
    told = ReferenceTrajectories(trial, tmp_path).not_finite()
    assert told.startswith("the float64 reference has NaN or infinities in y, h0 after one step from zeros")
    assert told.endswith(f"weights of the file are NaN or infinite: {name} (1 of {36 if name == 'W' else 48} numbers)")


def test_a_weight_that_is_infinite_and_decides_a_gate_alone_is_compared(tmp_path):
    trial = file_trial(spoiled(files.recurrent("GRU"), "B", np.inf), tmp_path, state={"h0": "hn"}, time=0, batch=1)
    assert not ReferenceTrajectories(trial, tmp_path).not_finite()
