"""The search finds the largest number of streams that is held, and says so of full tests alone."""

from __future__ import annotations

import pytest

from rnnbench.measure.stream_search import FRAMES, MOST_STREAMS, QUICK_FRAMES, Attempt, StreamSearch, most_missed


def searched(search: StreamSearch, limit: int) -> list[Attempt]:
    """The attempts of a search where so many streams are held and no more."""
    attempts = []
    while (attempt := search.next()) is not None:
        attempts.append(attempt)
        assert len(attempts) < 60
        search.note(attempt, attempt.streams <= limit)
    return attempts


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 7, 8, 16, 41, 63, 1_000, MOST_STREAMS - 1])
@pytest.mark.parametrize("start", [(1, 1), (16, 3), (64, 1), (200, 20)])
def test_it_ends_between_the_largest_that_holds_and_the_smallest_that_does_not(limit, start):
    search = StreamSearch(0.0, *start)
    attempts = searched(search, limit)
    assert (search.held, search.failed) == (limit, limit + 1)
    full = {attempt.streams for attempt in attempts if attempt.frames == FRAMES}
    assert full >= ({limit, limit + 1} if limit else {1})


def test_it_doubles_with_short_tests_and_bisects_with_full_ones():
    attempts = searched(StreamSearch(0.05), 41)
    assert [attempt.streams for attempt in attempts] == [1, 2, 4, 8, 16, 32, 64, 64, 48, 40, 44, 42]
    assert [attempt.frames < FRAMES for attempt in attempts] == [True] * 7 + [False] * 5


def test_it_stops_at_the_precision_that_is_asked_for():
    search = StreamSearch(0.10)
    searched(search, 1_000)
    assert search.held <= 1_000 < search.failed
    assert search.failed - search.held <= 0.10 * search.held


def test_a_later_process_begins_where_the_one_before_ended():
    attempts = searched(StreamSearch(0.05, 40, 2), 40)
    assert attempts == [Attempt(40, FRAMES), Attempt(42, FRAMES)]


def test_a_short_test_that_fails_by_accident_is_made_again_in_full():
    search = StreamSearch(0.05)
    search.note(search.next(), False)
    assert search.next() == Attempt(1, FRAMES)
    search.note(Attempt(1, FRAMES), True)
    assert search.next().streams == 2


def test_a_number_that_only_short_tests_held_may_fail_its_full_test():
    search = StreamSearch(0.05)
    while (attempt := search.next()) is not None:
        search.note(attempt, attempt.streams <= (8 if attempt.frames < FRAMES else 3))
    assert (search.held, search.failed) == (3, 4)


def test_where_no_more_can_be_opened_there_is_no_smallest_that_fails():
    search = StreamSearch(0.05)
    while (attempt := search.next()) is not None:
        if attempt.streams > 10:
            search.cannot_open(10)
        else:
            search.note(attempt, True)
    assert (search.held, search.failed) == (10, None)


def test_one_frame_in_a_hundred_may_be_late():
    assert most_missed(FRAMES) == 3


def test_one_frame_of_a_short_test_may_be_late():
    assert most_missed(QUICK_FRAMES) == 1


def test_the_least_that_could_be_opened_is_the_most():
    search = StreamSearch(0.05)
    for most in (10, 20):
        search.cannot_open(most)
    attempts = searched(search, 100)
    assert max(attempt.streams for attempt in attempts) == search.held == 10


def test_a_short_test_takes_nothing_from_a_full_one():
    search = StreamSearch(0.05)
    for frames in (FRAMES, QUICK_FRAMES):
        search.note(Attempt(4, frames), True)
    assert search.held == 4
