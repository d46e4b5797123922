"""Names and digests of programs depend on their content alone, not on the order in which a process made them."""

from __future__ import annotations

import pytest

from rnnbench.rnn.weights import draw_weights

pytest.importorskip("tensorflow")


def traced(request):
    from rnnbench.backends.tensorflow.canonical import library
    from rnnbench.backends.tensorflow.traced_function import authored

    function = authored(request, copies=1, jit=False).step.get_concrete_function()
    return library(function, function.variables)


def test_a_program_traced_twice_is_one_program(build, ask) -> None:
    build("graph")  # sets the sizes of the thread pools
    first, second = traced(ask("graph")), traced(ask("graph"))
    assert first.digest == second.digest
    assert [f.signature.name for f in first.functions] == [f.signature.name for f in second.functions]


def test_a_program_includes_the_body_and_condition_of_its_loop(build, ask) -> None:
    build("graph")
    library = traced(ask("graph"))
    names = [function.signature.name for function in library.functions]
    called = {a.func.name for f in library.functions for n in f.node_def for a in n.attr.values() if a.HasField("func")}
    assert len(names) == 3
    assert called == set(names[1:])
    assert all(name.startswith(f"rnn_{library.digest[:16]}_") for name in names)


def test_other_weights_and_other_shapes_are_other_programs(build, ask) -> None:
    build("graph")
    request = ask("graph")
    other_weights = type(request)(**{**vars(request), "weights": draw_weights(request.model, 1)})
    digests = {traced(each).digest for each in (request, other_weights, ask("graph", chunk=8), ask("graph", hidden=18))}
    assert len(digests) == 4
