"""What values of the adapters' contract say by themselves."""

from rnnbench.backends import Allocated


def test_a_count_since_another_is_what_was_added_and_its_peak_is_left_out_where_it_is_an_earlier_one() -> None:
    before = Allocated(100, 300)
    assert Allocated(150, 300).since(before) == Allocated(50, None)
    assert Allocated(150, 400).since(before) == Allocated(50, 300)
    assert Allocated(90, 400).since(before) is None
