"""The private line carries whole messages, in order, and tells when the other end is gone."""

from __future__ import annotations

import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnbench.run.wire import Wire, WireClosedError


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    yield Wire(ours), Wire(theirs)
    ours.close()
    theirs.close()


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.none()), max_size=5))
def test_messages_arrive_whole_and_in_order(messages):
    ours, theirs = map(Wire, socket.socketpair())
    for message in messages:
        ours.send(message)
    assert [theirs.receive() for _ in messages] == messages
    ours.close()
    theirs.close()


def test_a_long_message_comes_in_parts(ends):
    ours, theirs = ends
    message = {"seconds": "x" * 3_000_000}
    sender = threading.Thread(target=ours.send, args=(message,))
    sender.start()
    assert theirs.receive() == message
    sender.join()


def test_nothing_within_the_timeout_is_none(ends):
    assert ends[0].receive(timeout=0.01) is None


def test_a_message_in_two_halves_waits_for_the_second(ends):
    ours, theirs = ends
    ours._socket.sendall(b'{"a": ')
    assert theirs.receive(timeout=0.01) is None
    ours._socket.sendall(b"1}\n")
    assert theirs.receive(timeout=1) == {"a": 1}


def test_an_end_that_closes_is_told(ends):
    ours, theirs = ends
    ours.close()
    with pytest.raises(WireClosedError):
        theirs.receive()
    with pytest.raises(WireClosedError):
        theirs.send({"a": "x" * 1_000_000})
