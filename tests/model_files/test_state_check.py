"""A state moves, matters, and two halves equal the whole; what is lost is named."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import onnx_files as files
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper

from rnnbench.cases import case_of_file
from rnnbench.model_files import (
    FileSection,
    ModelFileError,
    answered,
    check_state,
    describe,
    fault_of,
    keys_of,
    network_of,
    open_questions,
    open_sizes,
    oracle_of,
    section_of,
    sized,
)
from rnnbench.model_files.state_calls import STEPS

WIDE = 0.9
"""A bound that states reach with large inputs alone."""


def checked(tmp_path, proto, *answers):
    path = files.saved(proto, tmp_path / "network.onnx")
    description = describe(path)
    return check_state(oracle_of(path), description, answered(section_of(description, path.name), description, answers))


@pytest.mark.parametrize("operator", files.GATES)
def test_honest_states_pass(tmp_path, operator):
    check = checked(tmp_path, files.recurrent(operator))
    assert check.ok
    assert not check.lost
    assert check.halves is not None
    assert check.halves < 1e-14


def with_output_of(proto, name, node):
    """The file with another node that gives one of its outputs."""
    for one in proto.graph.node:
        one.output[:] = ["unused" if output == name else output for output in one.output]
    proto.graph.node.append(node)
    return proto


def test_a_state_that_is_handed_through_is_lost(tmp_path):
    same = with_output_of(files.recurrent("LSTM"), "cn", helper.make_node("Identity", ["c0"], ["cn"]))
    check = checked(tmp_path, same, "state.c0=cn")
    assert check.lost == ("c0",)
    assert check.moved == {"h0": True, "c0": False}


def test_a_state_that_nothing_depends_on_is_lost(tmp_path):
    """The operator starts from its default, and h0 is an input all the same."""
    proto = files.recurrent("GRU")
    proto.graph.node[0].input[5] = ""
    check = checked(tmp_path, proto, "state.h0=hn")
    assert check.moved == {"h0": True}
    assert check.used == {"h0": False}
    assert check.lost == ("h0",)
    assert check.halves > 1e-3


def test_a_bidirectional_network_is_no_stream(tmp_path):
    check = checked(tmp_path, files.recurrent("GRU", direction="bidirectional"))
    assert not check.lost
    assert check.halves > 1e-3
    assert not check.ok


def test_swapped_states_are_no_stream(tmp_path):
    check = checked(tmp_path, files.recurrent("LSTM"), "state.h0=cn", "state.c0=hn")
    assert check.halves > 1e-3


def test_a_state_that_only_the_end_of_a_call_keeps_in_a_range_makes_calls_of_one_step(tmp_path):
    """As where the next state is quantised. The range holds the states of usual inputs."""
    proto = files.recurrent("GRU")
    for node in proto.graph.node:
        node.output[:] = ["unclipped" if output == "hn" else output for output in node.output]
    proto.graph.initializer.extend(numpy_helper.from_array(np.float32(end), f"end{end}") for end in (-WIDE, WIDE))
    proto.graph.node.append(helper.make_node("Clip", ["unclipped", f"end{-WIDE}", f"end{WIDE}"], ["hn"]))
    path = files.saved(proto, tmp_path / "network.onnx")
    description = describe(path)
    section = section_of(description, path.name)
    check = check_state(oracle_of(path), description, section)
    assert check.halves == 0.0
    assert check.large_halves > 1e-3
    assert check.is_stream_of_small
    told = fault_of(check, description, section)
    assert "with inputs 8 times as large" in told
    answers = re.findall(r"--set ([\w.=]+)", told)
    assert answers[0] == "time=null"
    single = answered(section, description, answers)
    assert check_state(oracle_of(path), sized(description, single.sizes), single).ok


def test_a_fixed_number_of_steps_cannot_be_halved(tmp_path):
    proto = files.recurrent("GRU")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 3
    check = checked(tmp_path, proto, "time=0")
    assert check.halves is None
    assert "fixes the number of steps" in check.not_compared
    assert check.ok


def test_an_open_constant_is_asked_for(tmp_path):
    proto = files.recurrent("GRU")
    proto.graph.input.extend(files.arrays(("sr", files.INT64, ())))
    with pytest.raises(ModelFileError, match="constants have no values"):
        checked(tmp_path, proto)
    assert checked(tmp_path, proto, "constants.sr=8000").ok


def test_a_size_that_is_neither_time_nor_batch_is_named(tmp_path):
    with pytest.raises(ModelFileError, match="size 0 of x is open, and is neither time nor batch"):
        checked(tmp_path, files.recurrent("GRU"), "time=null")


def test_an_answer_closes_its_question_alone(tmp_path):
    proto = files.recurrent("GRU")
    proto.graph.input.extend(files.arrays(("sr", files.INT64, ()), ("gain", ())))
    path = files.saved(proto, tmp_path / "network.onnx")
    description = describe(path)
    answers = ["constants.gain=0.5"]
    section = answered(section_of(description, path.name), description, answers)
    assert [question.array for question in open_questions(section, description, keys_of(answers))] == ["sr"]


def test_a_state_that_loses_axes_of_one_element_is_carried(tmp_path):
    proto = with_output_of(files.recurrent("GRU"), "hn", helper.make_node("Squeeze", ["unused", "first"], ["hn"]))
    proto.graph.initializer.append(files.weight("first", np.array([0])))
    del proto.graph.output[1].type.tensor_type.shape.dim[0]
    assert checked(tmp_path, proto).ok


def test_a_constant_has_the_shape_of_its_input(tmp_path):
    proto = files.cell("x", ["h"], ["next_h"])
    proto.graph.input.extend(files.arrays(("rate", (1,))))
    assert checked(tmp_path, proto, "constants.rate=16000").ok


def test_a_state_that_grows_is_told(tmp_path):
    proto = files.model(
        [helper.make_node("Concat", ["past", "x"], ["present"], axis=1), helper.make_node("Relu", ["x"], ["y"])],
        files.arrays(("x", (1, 1, 4)), ("past", (1, "P", 4))),
        files.arrays(("y", (1, 1, 4)), ("present", (1, "P+1", 4))),
    )
    path = files.saved(proto, tmp_path / "network.onnx")
    description, oracle = sized(describe(path), {"P": 2}), oracle_of(path)
    section = answered(section_of(description, path.name), description, ["state.past=present"])
    with pytest.raises(ModelFileError, match=r"the next value of past has the shape \[1, 3, 4\], not \[1, 2, 4\]"):
        check_state(oracle, description, section)


def test_the_batch_of_a_state_is_its_open_axis(tmp_path):
    proto = files.cell("x", ["h"], ["next_h"])
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].ClearField("dim_value")
    assert checked(tmp_path, proto, "state.h=next_h", "batch=0", "time=null").ok


def test_a_state_of_one_row_is_checked_with_one_row(tmp_path):
    proto = files.cell("x", ["h"], ["next_h"])
    proto.graph.input[0].type.tensor_type.shape.dim[0].ClearField("dim_value")
    assert checked(tmp_path, proto, "state.h=next_h", "batch=0", "time=null").ok


def test_a_state_that_is_no_number_is_not_called_lost(tmp_path):
    proto = files.cell("x", ["h"], ["next_h"])
    (recurrent,) = (each for each in proto.graph.initializer if each.name == "~R0")
    recurrent.CopyFrom(files.weight("~R0", np.full((4, 4), np.nan, np.float32)))
    with pytest.raises(ModelFileError, match=r"h becomes NaN .*: ~R0 \(16 of 16 numbers\)"):
        checked(tmp_path, proto, "state.h=next_h")


def test_a_state_that_overflows_is_told_how_to_say_the_range_of_the_inputs(tmp_path):
    names = ["x", "a", "b", "c", "d"]
    nodes = [helper.make_node("Exp", [one], [other]) for one, other in itertools.pairwise(names)]
    nodes.append(helper.make_node("Add", ["d", "h"], ["next_h"]))
    ends = files.arrays(("x", (1, 40)), ("h", (1, 40))), files.arrays(("next_h", (1, 40)))
    proto = files.model(nodes, *ends)
    with pytest.raises(ModelFileError, match=r"--set 'ranges.x=\[0, 1\]' for `new` and `inspect`"):
        checked(tmp_path, proto, "state.h=next_h")


def test_a_state_that_stays_zero_for_some_calls_is_not_lost(tmp_path):
    """A delay of three calls: each state is what the one before it was."""
    nodes = [helper.make_node("Tanh", ["x"], ["next_a"])]
    nodes += [helper.make_node("Identity", [b], [a]) for b, a in (("a", "next_b"), ("b", "next_c"), ("c", "y"))]
    names = ("a", "b", "c")
    proto = files.model(
        nodes,
        files.arrays(("x", (1, 2)), *((name, (1, 2)) for name in names)),
        files.arrays(("y", (1, 2)), *((f"next_{name}", (1, 2)) for name in names)),
    )
    assert checked(tmp_path, proto, *(f"state.{name}=next_{name}" for name in names)).ok


def test_steps_that_an_exporter_fixed_are_named_where_the_input_leaves_them_open(tmp_path):
    """Torch's exporter writes the number of steps that it saw into a Reshape: more steps become rows."""
    proto = files.recurrent("GRU", hidden=3)
    proto.graph.initializer.append(files.weight("sizes", np.array([4, -1, 3])))
    proto = with_output_of(proto, "y", helper.make_node("Reshape", ["Y", "sizes"], ["y"]))
    proto.graph.output[0].CopyFrom(files.arrays(("y", [4, "B", 3]))[0])
    shown = r"y has the shape \[4, 4, 3\] in a call of 8 steps and \[4, 2, 3\] in one of 4"
    with pytest.raises(ModelFileError, match=shown):
        checked(tmp_path, proto)


def test_a_call_that_fails_says_which_sizes_it_had(tmp_path):
    """A convolution over more steps than the check takes, as of a network that takes frames of sound."""
    proto = files.model(
        [helper.make_node("Conv", ["x", "k"], ["y"])],
        files.arrays(("x", (1, 1, "samples"))),
        files.arrays(("y", (1, 1, "left"))),
        [files.weight("k", np.ones((1, 1, 9), np.float32))],
    )
    with pytest.raises(ModelFileError, match=r"was called with x \[1, 1, 4\]; .* --set sizes.NAME=512"):
        checked(tmp_path, proto, "time=2")


def test_a_file_that_takes_one_row_is_checked_with_one(tmp_path):
    check = checked(tmp_path, files.one_row(), "batch=0", "time=null", "state.h=hn")
    assert check.ok
    assert "It was called with x [2, 4]" in check.one_row
    assert check.made_sizes == {"y.1": 1, "x.0": 1, "h.0": 1}


def of_dependent_rows(rows):
    """y is x and the first row of x."""
    nodes = [helper.make_node("Gather", ["x", "first"], ["row"]), helper.make_node("Add", ["x", "row"], ["y"])]
    weights = [files.weight("first", np.zeros(1, np.int64))]
    return files.model(nodes, files.arrays(("x", (rows, 3))), files.arrays(("y", (rows, 3))), weights)


def test_rows_that_depend_on_each_other_are_told_and_an_open_batch_is_one_row(tmp_path):
    with pytest.raises(ModelFileError, match=r"its 2 rows depend on each other, .* y is not in that order"):
        checked(tmp_path, of_dependent_rows(2), "time=null", "batch=0")
    assert checked(tmp_path, of_dependent_rows(2), "time=null", "batch=null").ok
    check = checked(tmp_path, of_dependent_rows("B"), "time=null", "batch=0")
    assert "its 2 rows depend on each other" in check.one_row
    assert check.made_sizes == {"x.0": 1, "y.0": 1}


@pytest.mark.parametrize(("shape", "size"), [((2, 3), 6), ((1, 2), 2)])
def test_sizes_of_outputs_that_only_a_call_shows_are_told(tmp_path, shape, size):
    """Shape arithmetic in the graph hides the size of y. It may be the number of rows of other files' calls."""
    proto = files.model(
        [helper.make_node("NonZero", ["x"], ["places"]), helper.make_node("Cast", ["places"], ["y"], to=1)],
        files.arrays(("x", shape)),
        files.arrays(("y", (2, "found"))),
    )
    assert checked(tmp_path, proto).made_sizes == {"y.1": size}


def test_a_call_without_a_batch_shows_the_sizes_of_all_axes(tmp_path):
    """The graph shows which axis of y is the batch. The call has none, as where inputs have it in different places."""
    found = describe(files.saved(files.recurrent("GRU"), tmp_path / "network.onnx"))
    section = replace(section_of(found, "network.onnx"), time=None, batch=None)
    assert open_sizes(found, section) == [("y", 0), ("y", 1)]
    assert open_sizes(found, replace(section, batch=1)) == [("y", 0)]


def test_the_rows_of_a_call_are_no_size_that_it_shows(tmp_path):
    """y has as many rows as x, wherever the file has them, and 3 in another axis."""
    proto = files.model(
        [helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])],
        files.arrays(("x", ("B", 3))),
        files.arrays(("y", ("units", "rows"))),
    )
    assert checked(tmp_path, proto, "time=null", "batch=0").made_sizes == {}
    proto.graph.input[0].type.tensor_type.shape.dim.add().dim_value = 5
    proto.graph.output[0].type.tensor_type.shape.dim.add().dim_param = "width"
    proto.graph.node[0].attribute[0].ints.append(2)
    assert checked(tmp_path, proto, "time=null", "batch=0").made_sizes == {"y.2": 5}


def test_a_call_of_several_steps_shows_the_sizes_that_do_not_follow_them(tmp_path):
    """As of a loop whose exporter leaves the sizes of its results open. A step has as many products as there are."""
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
        helper.make_node("Transpose", ["x"], ["turned"]),
        helper.make_node("MatMul", ["x", "turned"], ["products"]),
    ]
    proto = files.model(
        nodes,
        files.arrays(("x", ("T", 6))),
        files.arrays(("y", ("T", "rows", "units")), ("products", ("T", "steps"))),
        [files.weight("shape", np.array([-1, 2, 3]))],
    )
    assert checked(tmp_path, proto, "time=0", "batch=null").made_sizes == {"y.1": 2, "y.2": 3}


def test_inputs_that_are_no_numbers_are_named(tmp_path):
    nodes = [helper.make_node("StringNormalizer", ["s"], ["t"])]
    proto = files.model(nodes, files.arrays(("s", 8, [1])), files.arrays(("t", 8, [1])))
    with pytest.raises(ModelFileError, match="s is string; inputs and states are numbers"):
        checked(tmp_path, proto)


@pytest.mark.parametrize("declared", [[7, 9], [1, 4, 1]])
def test_a_shape_that_the_file_declares_wrongly_is_named(tmp_path, declared):
    """Each comparison would be with another array, and a runtime would be accused."""
    nodes = [helper.make_node("Add", ["x", "h"], ["y"]), helper.make_node("Tanh", ["y"], ["h_out"])]
    inputs, outputs = files.arrays(("x", [1, 4]), ("h", [1, 4])), files.arrays(("y", declared), ("h_out", [1, 4]))
    with pytest.raises(ModelFileError, match=r"y has the shape \[1, 4\], and the file declares \["):
        checked(tmp_path, files.model(nodes, inputs, outputs))


def test_a_width_that_the_file_declares_wrongly_is_named_where_it_equals_the_steps(tmp_path):
    """The number of steps in a call may stand along the axis of time alone."""
    proto = files.recurrent("LSTM", hidden=STEPS)
    proto.graph.output[0].type.tensor_type.shape.dim[-1].dim_value = 7
    with pytest.raises(ModelFileError, match=r"y has the shape .* and the file declares .*7\]; correct that"):
        checked(tmp_path, proto)


def test_a_state_that_matters_on_one_side_of_a_condition_is_not_lost(tmp_path):
    """One call in four has inputs with which an output depends on it."""
    nodes = [
        helper.make_node("ReduceMin", ["x"], ["least"], keepdims=0),
        helper.make_node("Greater", ["least", "bound"], ["opened"]),
        helper.make_node("Where", ["opened", "h", "x"], ["y"]),
        helper.make_node("Add", ["y", "x"], ["h_out"]),
    ]
    arrays = files.arrays(("x", [1, 2]), ("h", [1, 2])), files.arrays(("y", [1, 2]), ("h_out", [1, 2]))
    proto = files.model(nodes, *arrays, [files.weight("bound", np.float32(0))])
    path = files.saved(proto, tmp_path / "gated.onnx")
    description = describe(path)
    section = section_of(description, path.name)
    assert section.state == {"h": "h_out"}
    found = [check_state(oracle_of(path), description, section, seed) for seed in range(4)]
    assert all(check.ok for check in found)


def test_numbers_of_steps_that_fail_are_told_and_no_case_has_them(tmp_path):
    """As of lengths that the user gave for another number of steps."""
    proto = files.recurrent("GRU")
    (node,) = (node for node in proto.graph.node if node.op_type == "GRU")
    node.input[4] = "lengths"
    proto.graph.input.extend(files.arrays(("lengths", TensorProto.INT32, ["B"])))
    path = files.saved(proto, tmp_path / "packed.onnx")
    found = describe(path)
    section = answered(
        section_of(found, path.name), found, ["constants.lengths=4", "state={}", "constants.h0=0", "outputs=[y]"]
    )
    check = check_state(oracle_of(path), found, section)
    assert {steps: "sequence_lens must be 1 to 1" in why for steps, why in check.failing_steps.items()} == {1: True}
    network = network_of(path, section, found)
    text = case_of_file(section, "packed", network, failing_steps=check.failing_steps)
    assert "  chunk: [8] " in text
    assert "# Calls of 1 step fail, so there are none:" in text
    with pytest.raises(ModelFileError, match="calls of 1 and of 8 steps fail: why"):
        case_of_file(section, "packed", network, failing_steps={1: "why", 8: "why"})


@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028", "\u2029", "\x0c", "\ufffe"])
def test_a_note_of_a_file_is_a_comment_whatever_names_are_in_it(tmp_path, end):
    """The name of a Keras layer can have any character, and some end a line of YAML."""
    path = files.saved(files.recurrent("GRU"), tmp_path / "gru.onnx")
    found = describe(path)
    section = section_of(found, path.name)
    network = network_of(path, section, found)
    texts = [case_of_file(section, "own", network, notes) for notes in ((), (f"layer{end}name: other is long",))]
    assert "layer name: other" in texts[1]
    assert yaml.safe_load(texts[1]) == yaml.safe_load(texts[0])


def test_a_file_whose_only_input_has_no_elements_is_told(tmp_path):
    proto = files.recurrent("GRU")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 0
    with pytest.raises(ModelFileError, match="all its inputs are states or constants"):
        checked(tmp_path, proto)


class OtherOracle:
    """An oracle whose calls are kept, and whose results `change` may replace."""

    def __init__(self, oracle, change=None):
        self.oracle, self.change, self.calls = oracle, change or (lambda arrays, results: results), []

    def run(self, arrays):
        self.calls.append(arrays)
        return self.change(arrays, self.oracle.run(arrays))


@pytest.mark.parametrize("small", [0.0, 1e-12])
def test_halves_of_zeros_and_of_tiny_values_are_equal(tmp_path, small):
    """The difference is relative to 1 where all values are smaller."""
    path = files.saved(files.recurrent("GRU"), tmp_path / "network.onnx")
    description = describe(path)

    def almost_zero(arrays, results):
        value = small if len(arrays["x"]) == 2 * STEPS else 0.0
        return {name: np.full_like(array, value) for name, array in results.items()}

    check = check_state(OtherOracle(oracle_of(path), almost_zero), description, section_of(description, path.name))
    assert check.halves == small
    assert check.is_stream


@pytest.mark.parametrize(
    ("steps", "value", "is_stream"),
    [((STEPS, 2 * STEPS), -np.inf, True), ((2 * STEPS,), np.nan, False), ((STEPS,), -np.inf, False)],
)
def test_halves_with_results_that_are_not_finite(tmp_path, steps, value, is_stream):
    """A score of what a mask forbids is minus infinity in every call; one that is NaN in the whole alone is a fault."""
    path = files.saved(files.recurrent("GRU"), tmp_path / "network.onnx")
    description = describe(path)

    def masked(arrays, results):
        if len(arrays["x"]) in steps:
            results["y"][..., 0] = value
        return results

    check = check_state(OtherOracle(oracle_of(path), masked), description, section_of(description, path.name))
    assert check.is_stream == is_stream
    assert check.halves == pytest.approx(0.0 if is_stream else np.inf)


def test_whole_numbers_are_drawn_from_their_whole_range(tmp_path):
    path = files.saved(files.embedding(), tmp_path / "tokens.onnx")
    section = FileSection(path.name, {"h": "next_h"}, batch=0, ranges={"tokens": (5, 6)})
    oracle = OtherOracle(oracle_of(path))
    for seed in range(5):
        check_state(oracle, describe(path), section, seed)
    assert {int(value) for call in oracle.calls for value in call["tokens"].flat} == {5, 6}


def test_an_output_may_keep_the_number_of_steps_of_its_export(tmp_path):
    proto = files.recurrent("GRU")
    proto.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 5
    path = files.saved(proto, tmp_path / "network.onnx")
    section = FileSection(path.name, {"h0": "hn"}, time=0, batch=1)
    assert check_state(oracle_of(path), describe(path), section).ok


def test_what_is_said_of_lengths_makes_a_stream(tmp_path):
    proto = files.recurrent("LSTM")
    proto.graph.node[0].input[4] = "lengths"
    proto.graph.input.extend(files.arrays(("lengths", TensorProto.INT32, ("B",))))
    path = files.saved(proto, tmp_path / "packed.onnx")
    found = describe(path)
    (told,) = (note for note in found.notes if note.startswith("lengths gives the length of each sequence"))
    assert told.endswith("fix it (--set constants.lengths=8 --set sizes.T=8 --set time=null)")
    answers = ["constants.lengths=8", "sizes.T=8", "time=null"]
    section = answered(section_of(found, path.name), found, answers)
    assert check_state(oracle_of(path), sized(found, section.sizes), section).ok
