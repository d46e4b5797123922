"""What the reference makes of weights is made once, and only where the weights stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

from rnnbench.rnn import Arithmetic, Model, draw_inputs, draw_weights, run_in
from rnnbench.rnn import weight_forms as module
from rnnbench.rnn.weight_forms import WeightForms


@pytest.fixture
def weight() -> np.ndarray:
    array = np.arange(6.0).reshape(2, 3)
    array.setflags(write=False)
    return array


def counted(made: list[int], form: np.ndarray) -> np.ndarray:
    made.append(1)
    return form


def test_a_form_of_an_array_is_made_once_and_another_form_by_itself(weight: np.ndarray) -> None:
    forms, made = WeightForms(), list[int]()
    for _ in range(2):
        np.testing.assert_array_equal(forms.get(weight, "twice", lambda: counted(made, 2 * weight)), 2 * weight)
        np.testing.assert_array_equal(forms.get(weight, "squares", lambda: counted(made, weight**2)), weight**2)
        rows = forms.get(weight[1:], "twice", lambda: counted(made, 2 * weight[1:]))
        np.testing.assert_array_equal(rows, 2 * weight[1:])
    assert len(made) == 3


def test_forms_of_an_array_that_may_change_are_made_anew() -> None:
    forms, weight = WeightForms(), np.ones((2, 2))
    assert forms.get(weight, "twice", lambda: 2 * weight).sum() == 8
    weight[:] = 3
    assert forms.get(weight, "twice", lambda: 2 * weight).sum() == 24


def test_forms_beyond_the_bound_are_made_anew(weight: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES", weight.nbytes)
    forms, made = WeightForms(), list[int]()
    for _ in range(2):
        forms.get(weight, "first", lambda: counted(made, weight.copy()))
        forms.get(weight, "second", lambda: counted(made, weight.copy()))
    assert len(made) == 3


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_a_run_is_the_same_whether_or_not_earlier_runs_have_made_the_forms(dtype: str) -> None:
    model = Model(cell="gru", input=3, hidden=5, layers=2)
    weights, x = draw_weights(model, 0, "float32"), draw_inputs(model, 4, 2, 0)
    for summation in (None, 0, 1):
        alone = run_in(Arithmetic(dtype, summation), model, draw_weights(model, 0, "float32"), x)
        for _ in range(2):
            np.testing.assert_array_equal(run_in(Arithmetic(dtype, summation), model, weights, x).y, alone.y)
