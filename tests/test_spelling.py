"""Names that are not known: the nearest one is offered, or all of them."""

from rnnbench.spelling import did_you_mean, hint

NAMES = ("hidden", "input")


def test_the_nearest_name_is_offered():
    assert hint("hiden", NAMES) == did_you_mean("hiden", NAMES) == "did you mean 'hidden'?"


def test_where_no_name_is_near_all_are_named():
    assert hint("batch", NAMES) == "expected one of hidden, input"
    assert did_you_mean("batch", NAMES) == ""
